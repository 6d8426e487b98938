//! Age of a sign of trouble. It counts from the operator's own first look, in attended time: kubelets, schedulers and
//! controllers write times of their own clocks, which may be minutes ahead or behind.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::SignStatus;

use crate::attendance::Limit;
use crate::diagnosis::pods::{Judged, Proof, Sign};
use crate::pass::Pass;

/// Judges the signs that a look found. `is_complete`: true if it could read all sources of signs; a sign of an unread
/// source may still be there.
pub(crate) fn judge(pass: &mut Pass<'_>, found: Vec<Sign>, is_complete: bool) -> Vec<Judged> {
    let mut known = pass.status.state.signs.clone();
    known.retain(|one| !is_complete || found.iter().any(|sign| shows(one, sign)));
    for sign in &found {
        note(&mut known, sign, pass.now);
    }
    let mut judged = Vec::new();
    for sign in found {
        let one = known.iter().find(|one| shows(one, &sign));
        let lasted = one.map_or(Duration::ZERO, |one| pass.attended_since(one.since));
        if lasted >= sign.normal_for {
            let is_sure = is_sure(pass, &sign, one);
            let trouble = sign.trouble;
            judged.push(Judged { trouble, is_sure });
        }
    }
    pass.status.state.signs = known;
    judged
}

/// Time from which something has been waited for, which is all that the run waits for now.
pub(crate) fn waits_since(pass: &mut Pass<'_>, cause: &str, subject: &str) -> DateTime<Utc> {
    let now = pass.now;
    let signs = &mut pass.status.state.signs;
    signs.retain(|one| one.cause == cause && one.subject == subject);
    if signs.is_empty() {
        signs.push(begun(cause, subject, None, now));
    }
    signs.first().map_or(now, |one| one.since)
}

/// Nothing is waited for any more.
pub(crate) fn forget(pass: &mut Pass<'_>) {
    pass.status.state.signs.clear();
}

fn shows(one: &SignStatus, sign: &Sign) -> bool {
    one.cause == sign.trouble.obstacle.name() && one.subject == sign.subject
}

/// Of several pods with the same trouble only one is kept: another one takes its place when it is over. So a pod that has just
/// got it is never judged by the time of an earlier one.
fn note(known: &mut Vec<SignStatus>, sign: &Sign, now: DateTime<Utc>) {
    let cause = sign.trouble.obstacle.name();
    let event_at = match sign.proof {
        Proof::Lasts => None,
        Proof::Repeats(newest) => newest,
        Proof::Missing | Proof::Seen => return,
    };
    let Some(one) = known.iter_mut().find(|one| one.cause == cause) else {
        known.push(begun(cause, &sign.subject, event_at, now));
        return;
    };
    if one.subject == sign.subject && !one.repeated && one.event_at < event_at {
        *one = SignStatus {
            repeated: true,
            ..begun(cause, &sign.subject, event_at, now)
        };
    }
}

fn begun(cause: &str, subject: &str, event_at: Option<DateTime<Utc>>, since: DateTime<Utc>) -> SignStatus {
    SignStatus {
        cause: cause.to_owned(),
        subject: subject.to_owned(),
        since,
        event_at,
        repeated: false,
    }
}

fn is_sure(pass: &mut Pass<'_>, sign: &Sign, one: Option<&SignStatus>) -> bool {
    let patience = sign.trouble.obstacle.patience();
    let mut lasts = || match one {
        Some(one) => patience.is_zero() || pass.has_passed(&Limit::new(one.since, patience)),
        None => false,
    };
    match sign.proof {
        Proof::Missing => false,
        Proof::Seen => true,
        Proof::Lasts => lasts(),
        Proof::Repeats(newest) => {
            // Both times are by the same clock.
            let first = one.filter(|one| one.repeated).and_then(|one| one.event_at);
            let repeated = newest
                .zip(first)
                .and_then(|(newest, first)| (newest - first).to_std().ok());
            repeated.is_some_and(|repeated| repeated >= patience) && lasts()
        }
    }
}
