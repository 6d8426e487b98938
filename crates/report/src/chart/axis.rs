/// Rough upper limit of the marks on an axis.
const TICKS: f64 = 5.0;
/// A logarithmic axis is drawn from this ratio of its ends on.
const LOGARITHMIC: f64 = 25.0;

/// One side of a drawing.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub label: String,
    pub ticks: Vec<f64>,
    from: f64,
    to: f64,
    logarithmic: bool,
    /// True if the marks are names of trials and not amounts.
    whole: bool,
}

impl Axis {
    /// From zero to a round number above the largest value.
    pub fn from_zero(label: impl Into<String>, largest: f64) -> Self {
        Self::between(label, 0.0, largest)
    }

    /// Over all of these values, from round number to round number.
    pub fn between(label: impl Into<String>, smallest: f64, largest: f64) -> Self {
        let largest = if largest > smallest { largest } else { smallest + 1.0 };
        let step = step((largest - smallest) / TICKS);
        let (first, last) = ((smallest / step).floor(), (largest / step).ceil());
        Self {
            ticks: count(first, last).map(|index| index * step).collect(),
            from: first * step,
            to: last * step,
            ..Self::empty(label)
        }
    }

    /// The same, ending with the last value: for seconds.
    pub fn exactly(label: impl Into<String>, largest: f64) -> Self {
        let mut axis = Self::from_zero(label, largest);
        axis.ticks.retain(|tick| *tick <= largest);
        axis.to = largest.max(1.0);
        axis
    }

    /// Logarithmic where the values are of different sizes.
    pub fn spanning(label: impl Into<String>, smallest: f64, largest: f64) -> Self {
        if smallest <= 0.0 || largest / smallest < LOGARITHMIC {
            return Self::from_zero(label, largest);
        }
        let (first, last) = (smallest.log10().floor(), largest.log10().ceil());
        let decades = count(first, last).map(|exponent| 10_f64.powf(exponent));
        let marks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * decade));
        let mut axis = Self {
            logarithmic: true,
            from: smallest,
            to: largest,
            ..Self::empty(label)
        };
        let many = largest / smallest > 300.0;
        axis.ticks = marks
            .filter(|mark| (smallest..=largest).contains(mark))
            .filter(|mark| !many || mark.log10().fract().abs() < 1e-9)
            .collect();
        axis
    }

    /// Numbers from 1 on, such as those of trials.
    pub fn numbers(label: impl Into<String>, last: i64) -> Self {
        let last = f64::from(i32::try_from(last).unwrap_or(i32::MAX)).max(1.0);
        let every = (last / 10.0).ceil().max(1.0);
        Self {
            ticks: count(1.0, last)
                .filter(|number| (number - 1.0) % every == 0.0)
                .collect(),
            from: 0.4,
            to: last + 0.6,
            whole: true,
            ..Self::empty(label)
        }
    }

    fn empty(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ticks: Vec::new(),
            from: 0.0,
            to: 1.0,
            logarithmic: false,
            whole: false,
        }
    }

    /// Position of a value, 0 to 1; a value beyond the axis is at its end.
    pub fn part(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            (value.max(self.from) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        part.clamp(0.0, 1.0)
    }

    /// Its length in its own unit.
    pub fn length(&self) -> f64 {
        self.to - self.from
    }

    /// Returns true if a value lies on it.
    pub fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// A mark as text.
    pub fn shown(&self, tick: f64) -> String {
        if self.whole { format!("{tick}") } else { short(tick) }
    }
}

/// 1, 2 or 5 times a power of ten, at least this.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|digit| digit * power >= least * 0.999);
    digit.unwrap_or(10.0) * power
}

/// Whole numbers from one to another, never more than a drawing can hold.
fn count(first: f64, last: f64) -> impl Iterator<Item = f64> {
    (0..=1000)
        .map(move |index| first + f64::from(index))
        .take_while(move |number| *number <= last)
}

/// A number for people: `12.5k`, `250`, `0.35`.
pub(crate) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        size if size >= 100.0 => 1.0,
        size if size >= 10.0 => 10.0,
        size if size >= 1.0 => 100.0,
        _ => 1000.0,
    };
    format!("{}{unit}", (scaled * digits).round() / digits + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_numbers_on_the_axis() {
        for (axis, ticks) in [
            (Axis::from_zero("", 27_347.0), vec![0.0, 10_000.0, 20_000.0, 30_000.0]),
            (Axis::from_zero("", 0.0), vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (Axis::between("", -3.0, 2.9), vec![-4.0, -2.0, 0.0, 2.0, 4.0]),
            (Axis::exactly("", 47.0), vec![0.0, 10.0, 20.0, 30.0, 40.0]),
            (Axis::spanning("", 80.0, 1100.0), vec![0.0, 500.0, 1000.0, 1500.0]),
            (
                Axis::spanning("", 80.0, 9000.0),
                vec![100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0],
            ),
            (Axis::numbers("", 3), vec![1.0, 2.0, 3.0]),
        ] {
            let near = axis
                .ticks
                .iter()
                .zip(&ticks)
                .all(|(one, other)| (one - other).abs() < 1e-9);
            assert!(
                near && axis.ticks.len() == ticks.len(),
                "{:?} is not {ticks:?}",
                axis.ticks
            );
            assert!(axis.ticks.iter().all(|tick| axis.holds(*tick)), "{axis:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (27_347.6, "27.3k"),
            (1_250_000.0, "1.25M"),
            (0.0, "0"),
            (14.29, "14.3"),
            (0.35, "0.35"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!((short(-0.0001), short(9_999.4)), ("0".to_owned(), "9999".to_owned()));
    }
}
