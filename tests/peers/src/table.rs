//! The operators beside each other, as a table for the documentation.

use crate::calls::Reaction;
use crate::measure::{Measured, Rest};

/// A number that not everything has.
type Read = dyn Fn(&Measured) -> Option<f64>;

/// All figures, and in brackets how many times those of the first.
pub fn of(all: &[Measured], objects: usize) -> String {
    let Some(first) = all.first() else { return String::new() };
    let mut text = String::from("| |");
    for one in all {
        text.extend([" ", one.title, " |"]);
    }
    text.extend(["\n|---|", &"---|".repeat(all.len()), "\n"]);
    let mut row = |what: &str, digits: usize, read: &Read| {
        let cells = all
            .iter()
            .map(|one| cell(read(one), read(first), std::ptr::eq(one, first), digits));
        let cells: Vec<_> = cells.collect();
        text.extend([format!("| {what} | {} |\n", cells.join(" | "))]);
    };
    row("what is shipped to run it, MiB", 0, &|one| {
        u32::try_from(one.mebibytes).map(f64::from).ok()
    });
    row("start to ready, s", 2, &|one| Some(one.ready));
    at_rest(&mut row, "at rest", |one| &one.idle);
    reacts(
        &mut row,
        "one new object: to the first write, s (median)",
        "one new object: to its first status, s (median)",
        |one| one.reaction,
    );
    row("so many new objects at once", 0, &|one| {
        u32::try_from(one.objects).map(f64::from).ok()
    });
    reacts(
        &mut row,
        "these: to the first write, s (median)",
        "these: to the first status, s (median)",
        |one| one.at_once,
    );
    row("these: writes for each", 1, &|one| each(one.creation.written(), one));
    row("these: all requests for each", 1, &|one| {
        each(one.creation.total(), one)
    });
    at_rest(&mut row, &format!("{objects} objects wait"), |one| &one.waiting);
    row("killed, with all of them there: start to ready, s", 2, &|one| {
        Some(one.ready_again)
    });
    row("the same: start to the reaction to a new object, s", 2, &|one| {
        one.first_again
    });
    row("most memory, MiB", 0, &|one| one.peak);
    text
}

/// Count for each object.
fn each(count: usize, one: &Measured) -> Option<f64> {
    let number = |count: usize| u32::try_from(count).map(f64::from).ok();
    Some(number(count)? / number(one.objects.max(1))?)
}

fn at_rest(row: &mut impl FnMut(&str, usize, &Read), when: &str, rest: fn(&Measured) -> &Rest) {
    row(&format!("{when}: resident, MiB"), 0, &move |one| rest(one).mebibytes);
    row(&format!("{when}: % of a core"), 2, &move |one| rest(one).cpu);
    row(&format!("{when}: % of a core, API server"), 1, &move |one| {
        rest(one).api_server
    });
    row(&format!("{when}: requests a minute"), 0, &move |one| {
        Some(rest(one).requests)
    });
}

fn reacts(row: &mut impl FnMut(&str, usize, &Read), first: &str, status: &str, reaction: fn(&Measured) -> Reaction) {
    row(first, 3, &move |one| reaction(one).first);
    row(status, 3, &move |one| reaction(one).status);
}

fn cell(value: Option<f64>, first: Option<f64>, is_first: bool, digits: usize) -> String {
    let Some(value) = value else { return "?".to_owned() };
    let shown = format!("{value:.digits$}");
    match first.filter(|first| !is_first && *first > 0.0) {
        Some(first) => format!("{shown} (×{:.1})", value / first),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::{cell, of};
    use crate::measure::{Measured, Rest};

    fn measured(title: &'static str, mebibytes: f64) -> Measured {
        let idle = Rest {
            mebibytes: Some(mebibytes),
            ..Rest::default()
        };
        Measured {
            title,
            idle,
            ..Measured::default()
        }
    }

    #[test]
    fn each_figure_has_its_ratio_to_the_first_and_an_unknown_one_no_number() {
        let table = of(&[measured("ours", 10.0), measured("theirs", 25.0)], 100);
        assert!(table.contains("| at rest: resident, MiB | 10 | 25 (×2.5) |"), "{table}");
        assert!(table.contains("| at rest: % of a core | ? | ? |"), "{table}");
        assert_eq!(cell(Some(1.0), Some(0.0), false, 0), "1");
    }
}
