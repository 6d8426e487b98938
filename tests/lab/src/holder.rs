//! The process that holds a lab: it takes the lab down again. A lab without a holder belongs to a person.

use std::time::SystemTime;
use std::{fs, io};

use crate::error::{Error, FileResult as _};
use crate::namespace;
use crate::paths::StateDir;
use crate::supervisor::Plan;

/// Records the holder. Its start time is part of the record because process numbers are used again.
pub fn write(state: &StateDir, pid: u32) -> Result<(), Error> {
    let record = record(pid).ok_or_else(|| Error::Usage(format!("process {pid} has ended")))?;
    fs::write(state.holder(), record).file("write", state.holder())
}

/// Returns an error if a person or another running process uses the lab.
pub fn refuse_if_used(state: &StateDir, by: u32) -> Result<(), Error> {
    let holder = fs::read_to_string(state.holder()).ok();
    let is_up = namespace::find(state).is_some();
    match user(holder.as_deref(), is_up, by) {
        User::Nobody => Ok(()),
        User::Person => Err(Error::InUse {
            lab: description(state),
            advice: "run `just lab-down` to end it".to_owned(),
        }),
        User::Process(pid) => Err(Error::InUse {
            lab: description(state),
            advice: format!("process {pid} uses it and takes it down when it ends"),
        }),
    }
}

/// The user of a lab, apart from the asking process.
#[derive(Debug, PartialEq, Eq)]
enum User {
    Nobody,
    Person,
    Process(u32),
}

fn user(holder: Option<&str>, is_up: bool, asking: u32) -> User {
    let Some(holder) = holder else {
        return if is_up { User::Person } else { User::Nobody };
    };
    let pid = holder.split(' ').next().and_then(|pid| pid.parse().ok());
    match pid {
        Some(pid) if pid != asking && record(pid).as_deref() == Some(holder) => User::Process(pid),
        _ => User::Nobody,
    }
}

/// The process number and the time of its start in clock ticks since the machine's start.
fn record(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in brackets, may hold blanks. The start is the 22nd field, and the 20th after the name.
    let started = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    Some(format!("{pid} {started}"))
}

fn description(state: &StateDir) -> String {
    let plan = state.plan();
    let title = fs::read_to_string(&plan)
        .ok()
        .and_then(|text| serde_json::from_str::<Plan>(&text).ok())
        .map_or_else(|| state.root().display().to_string(), |plan| plan.title);
    match age(&plan) {
        Ok(minutes) => format!("{title}, for {minutes} min"),
        Err(_) => title,
    }
}

fn age(file: &std::path::Path) -> io::Result<u64> {
    let modified = fs::metadata(file)?.modified()?;
    Ok(SystemTime::now().duration_since(modified).unwrap_or_default().as_secs() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_used_by_a_person_or_by_a_running_holder() {
        let own = std::process::id();
        let running = record(1).expect("process 1");
        assert_eq!(user(None, true, own), User::Person);
        assert_eq!(user(None, false, own), User::Nobody);
        assert_eq!(user(Some(&running), true, own), User::Process(1));
        // Its lab is on the way up.
        assert_eq!(user(Some(&running), false, own), User::Process(1));
        assert_eq!(user(record(own).as_deref(), true, own), User::Nobody);
    }

    #[test]
    fn a_holder_that_ended_leaves_its_lab_to_others() {
        assert_eq!(user(Some("1 99999999999"), true, 2), User::Nobody, "another process 1");
        assert_eq!(user(Some("4194305 1"), true, 2), User::Nobody);
        assert_eq!(user(Some(""), true, 2), User::Nobody, "cut off while it was written");
    }
}
