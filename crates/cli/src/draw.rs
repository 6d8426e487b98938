//! Small pictures in text, and times in everyday words.

use chrono::TimeDelta;
use perfval_api::GateResult;

/// Result of a gate; a missed one stands out.
pub fn gate_result(result: GateResult) -> &'static str {
    match result {
        GateResult::Met => "met",
        GateResult::Missed => "MISSED",
        GateResult::Warned => "missed (Warn)",
        GateResult::Unmeasured => "not measured",
    }
}

/// The characters of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Ink {
    /// True if bars and arrows are Unicode.
    pub unicode: bool,
}

/// Cells of a bar.
pub const BAR: usize = 20;

impl Ink {
    /// A number against its threshold, which is in the middle of `cells` cells: the bar is full at twice the
    /// threshold.
    pub fn against(self, ratio: f64, cells: usize) -> String {
        let mut bar = self.part(ratio / 2.0, cells);
        let middle = bar.char_indices().nth(cells / 2).map_or(bar.len(), |(at, _)| at);
        bar.insert(middle, if self.unicode { '│' } else { '|' });
        bar
    }

    /// A part of a whole.
    pub fn part(self, ratio: f64, cells: usize) -> String {
        let (full, empty) = if self.unicode { ('█', '·') } else { ('#', '.') };
        let filled = share(ratio, cells);
        (0..cells).map(|at| if at < filled { full } else { empty }).collect()
    }

    /// A bar of `of` cells, `taken` of them filled.
    pub fn cells(self, taken: usize, of: usize) -> String {
        let (full, empty) = if self.unicode { ('■', '□') } else { ('#', '.') };
        (0..of.max(taken))
            .map(|at| if at < taken { full } else { empty })
            .collect()
    }

    /// Values over time, the last ones.
    pub fn line(self, values: &[i64], cells: usize) -> String {
        const UNICODE: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 8] = ['_', '.', '-', '-', '=', '=', '*', '#'];
        let steps = if self.unicode { UNICODE } else { ASCII };
        let shown = &values[values.len().saturating_sub(cells)..];
        let highest = shown.iter().copied().max().unwrap_or_default().max(1);
        let step = |value: i64| usize::try_from(value.max(0) * 7 / highest).unwrap_or_default().min(7);
        shown.iter().map(|value| steps[step(*value)]).collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "bounded by the number of cells"
)]
fn share(ratio: f64, cells: usize) -> usize {
    let ratio = if ratio.is_finite() { ratio.clamp(0.0, 1.0) } else { 0.0 };
    (ratio * cells as f64).round() as usize
}

/// A time as kubectl writes an age: `45s`, `3m12s`, `5h3m`, `2d4h`, `3y120d`.
pub fn age(age: TimeDelta) -> String {
    let seconds = age.num_seconds().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: i64, unit: char, small: i64, of: char| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{of}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

/// The time between two moments of a run.
pub fn span(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A text in lines of at most `columns` characters, broken between words.
pub fn wrap(text: &str, columns: usize, indent: &str) -> String {
    flow(text.split_whitespace(), " ", columns, indent)
}

/// The same on a terminal with `columns` columns; elsewhere in one line, for programs that read it.
pub fn wrap_on(text: &str, columns: Option<usize>, indent: &str) -> String {
    match columns {
        Some(columns) => wrap(text, columns, indent),
        None => format!("{indent}{text}\n"),
    }
}

/// Pieces behind each other in lines of at most `columns` characters. Only a piece that is longer than a line is
/// broken.
pub fn flow<'a>(pieces: impl IntoIterator<Item = &'a str>, gap: &str, columns: usize, indent: &str) -> String {
    let room = columns.saturating_sub(indent.chars().count()).max(1);
    let mut lines = vec![String::new()];
    for piece in pieces {
        for part in parts(piece, room) {
            let used = lines.last().map_or(0, |line| line.chars().count());
            if used > 0 && used + gap.chars().count() + part.chars().count() > room {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                if !line.is_empty() {
                    line.push_str(gap);
                }
                line.push_str(&part);
            }
        }
    }
    let ended = lines.iter().map(|line| format!("{indent}{}\n", line.trim_end()));
    ended.collect::<Vec<_>>().concat()
}

/// A piece, or what fits of it into a line each: words, and of a word that is too long as much as there is room for.
fn parts(piece: &str, room: usize) -> Vec<String> {
    if piece.chars().count() <= room {
        return vec![piece.to_owned()];
    }
    if piece.contains(' ') {
        return wrap(piece, room, "").lines().map(str::to_owned).collect();
    }
    let letters: Vec<char> = piece.chars().collect();
    letters.chunks(room).map(|part| part.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_stay_in_their_frame_for_every_number() {
        let ink = Ink { unicode: true };
        assert_eq!(ink.against(1.0, BAR), "██████████│··········");
        assert_eq!(ink.against(0.5, BAR), "█████·····│··········");
        for wild in [f64::NAN, f64::INFINITY, -3.0, 1e300] {
            assert_eq!(ink.against(wild, BAR).chars().count(), BAR + 1, "{wild}");
        }
        assert_eq!(ink.cells(4, 8), "■■■■□□□□");
        assert_eq!(ink.line(&[0, 50, 100, -5], 3), "▄█▁");
        assert_eq!(Ink { unicode: false }.part(0.5, 4), "##..");
        assert_eq!(ink.line(&[], 5), "");
    }

    #[test]
    fn ages_match_kubectl() {
        for (seconds, shown) in [
            (0, "0s"),
            (119, "119s"),
            (185, "3m5s"),
            (660, "11m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (70_000_000, "2y80d"),
        ] {
            assert_eq!(age(TimeDelta::seconds(seconds)), shown);
        }
        assert_eq!([span(5), span(65), span(3700)], ["5s", "1m05s", "1h01m"]);
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(
            wrap("one two three four five six", 24, "  "),
            "  one two three four\n  five six\n"
        );
        assert_eq!(
            wrap("a sha256:0123456789abcdef", 12, ""),
            "a\nsha256:01234\n56789abcdef\n"
        );
    }

    #[test]
    fn pieces_stay_whole_where_a_line_has_room_for_them() {
        assert_eq!(
            flow(["TOOK 28s", "CAUSES SlowWorker, Stall"], "  ", 24, ""),
            "TOOK 28s\nCAUSES SlowWorker, Stall\n"
        );
        assert_eq!(flow(["one two three"], "  ", 9, ""), "one two\nthree\n");
    }
}
