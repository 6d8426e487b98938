//! Times before the lines of a log.

use std::borrow::Cow;

use k8s_openapi::jiff::Timestamp;

/// Time of each line of a log that is kept without times.
const TIME: &[u8] = b"2026-11-20T00:00:00.000000000Z ";
/// A time is not longer.
const LONGEST: usize = 40;

/// A log as a kubelet shows it: each line with its time, or none. A log is kept with times if its first line has one.
pub(super) fn shown(kept: &[u8], timestamps: bool) -> Cow<'_, [u8]> {
    if kept.is_empty() || after_time(kept).is_some() == timestamps {
        return Cow::Borrowed(kept);
    }
    let show = |line: &[u8]| {
        if timestamps {
            [TIME, line].concat()
        } else {
            after_time(line).unwrap_or(line).to_vec()
        }
    };
    kept.split_inclusive(|byte| *byte == b'\n').flat_map(show).collect()
}

/// A line without the time at its beginning; `None` if it has none.
fn after_time(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().take(LONGEST).position(|byte| *byte == b' ')?;
    let time = std::str::from_utf8(&line[..end]).ok()?;
    time.parse::<Timestamp>().is_ok().then(|| &line[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn times_are_shown_only_on_request() {
        let (dated, plain) = (
            &b"2026-09-21T14:13:33.2Z a\n2026-09-21T16:13:34+02:00 b"[..],
            &b"a\nb"[..],
        );
        assert_eq!(&*shown(dated, true), dated);
        assert_eq!(&*shown(dated, false), plain);
        assert_eq!(&*shown(plain, false), plain);
        let fixed = b"2026-11-20T00:00:00.000000000Z a\n2026-11-20T00:00:00.000000000Z b";
        assert_eq!(&*shown(plain, true), fixed);
    }
}
