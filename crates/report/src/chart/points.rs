use std::fmt::Write as _;

use crate::timeline::ChartLine;

/// At most about `limit` points: of each group the lowest and the highest stay, in their order, so that no stall is smoothed
/// away.
pub(super) fn thin(line: &ChartLine, limit: usize) -> ChartLine {
    let all: usize = line.iter().map(Vec::len).sum();
    let group = (2 * all).div_ceil(limit.max(2));
    if all <= limit {
        return line.clone();
    }
    let ends = |points: &[(f64, f64)]| {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let mut ends: Vec<(f64, f64)> = (points.iter().min_by(by_height).into_iter())
            .chain(points.iter().max_by(by_height))
            .copied()
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends.dedup();
        ends
    };
    line.iter()
        .map(|part| part.chunks(group).flat_map(ends).collect())
        .collect()
}

/// The parts of a line as the `d` of a path; a part of one point is a short stroke, which would not be seen otherwise.
pub(super) fn path(line: &ChartLine, place: impl Fn((f64, f64)) -> (f64, f64)) -> String {
    let mut path = String::new();
    for part in line {
        for (index, point) in part.iter().enumerate() {
            let (x, y) = place(*point);
            path.push_str(if index == 0 { "M" } else { "L" });
            // Writing into a String never fails.
            let _ = write!(path, "{} {}", n(x), n(y));
        }
        if part.len() == 1 {
            path.push_str("h1");
        }
    }
    path
}

/// A number of the drawing: a tenth of a unit is finer than any screen.
pub(super) fn n(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    // -0 is another text than 0.
    format!("{}", tenths + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_of_one_second_survives() {
        let second = |second: i32| (f64::from(second), if second == 777 { 0.0 } else { 100.0 });
        let line: ChartLine = vec![(0..2000).map(second).collect()];
        let thin = thin(&line, 100);
        assert!(thin[0].len() <= 102, "{}", thin[0].len());
        assert!(thin[0].contains(&(777.0, 0.0)));
        assert!(thin[0].windows(2).all(|pair| pair[0].0 < pair[1].0), "in order of time");
    }

    #[test]
    fn a_gap_is_no_line() {
        let line: ChartLine = vec![vec![(0.0, 1.0), (1.0, 2.0)], vec![(5.0, 3.0)]];
        assert_eq!(path(&line, |point| point), "M0 1L1 2M5 3h1");
    }
}
