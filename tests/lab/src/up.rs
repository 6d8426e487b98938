//! `lab up`: builds what is missing, writes a cluster's files and plan, starts the supervisor and follows it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::Child;
use std::time::Instant;

use crate::down::{MARK, down};
use crate::error::{Error, FileResult as _};
use crate::node::Node;
use crate::options::Options;
use crate::paths::{self, StateDir};
use crate::programs::CONTAINERD;
use crate::supervisor::{PATIENCE_SECONDS, Phase, Plan, client};
use crate::{control_plane, holder, images, namespace, packages, pki, prepare};

/// Builds what a lab needs and starts nothing. `tests/lab/prepare/progress.py` reads its lines.
pub fn prepare(options: &Options) -> Result<(), Error> {
    packages::check(!options.control_plane)?;
    let mut say = timed(Instant::now());
    for family in prepare::families(options).filter(|family| family.is_built()) {
        say(&format!("{} is built", family.name));
    }
    prepare::prepare(options, &mut say)?;
    say("images: made");
    Ok(())
}

/// Prints lines with the time since the start.
fn timed(started: Instant) -> impl FnMut(&str) + Send {
    move |text| println!("[{:>5.1} s] {text}", started.elapsed().as_secs_f32())
}

/// Brings the lab up, or returns at once if this very lab is up.
pub fn up(state: &StateDir, options: &Options) -> Result<(), Error> {
    packages::check(!options.control_plane)?;
    let cache = paths::cache();
    fs::create_dir_all(&cache).file("create", &cache)?;
    let lock = cache.join("up.lock");
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .file("lock", lock)?;

    let mut say = timed(Instant::now());
    if namespace::find(state).is_some() {
        already_up(state, options, &mut say)?;
    } else {
        if state.root().exists() {
            say("cleaning up the folder of an earlier lab");
            down(state)?;
        }
        write_files(state, options, &mut say)?;
        write_plan(state, options)?;
        follow(state, namespace::launch(state)?, &mut say)?;
    }
    drop(lock);
    say(&format!(
        "up: {}. Use it: lab exec -- kubectl get nodes",
        options.title()
    ));
    Ok(())
}

fn already_up(state: &StateDir, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let Some(report) = client::status(state)? else {
        return Err(Error::Supervisor("it does not answer: run `lab down`".to_owned()));
    };
    if report.title != options.title() {
        return Err(Error::OtherLab {
            running: report.title,
            wanted: options.title(),
        });
    }
    if let Phase::Starting(_) = report.phase {
        return client::follow(state, say).map(drop);
    }
    if report.is_healthy() {
        Ok(())
    } else {
        Err(Error::DidNotComeUp(report.to_string()))
    }
}

/// Builds what is missing and writes every file of a new cluster.
fn write_files(state: &StateDir, options: &Options, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    fs::create_dir_all(state.root()).file("create", state.root())?;
    let mark = state.join(MARK);
    fs::write(&mark, "").file("write", mark)?;
    for folder in [state.bin(), state.join("logs")] {
        fs::create_dir(&folder).file("create", &folder)?;
    }
    if let Some(pid) = options.holder {
        holder::write(state, pid)?;
    }
    let archives = prepare::prepare(options, say)?;
    for family in prepare::families(options) {
        for binary in family.binaries {
            let link = state.bin().join(binary);
            symlink(family.folder().join(binary), &link).file("link", link)?;
        }
    }
    // A copy: the running lab does not change when this program is compiled anew.
    let own = state.bin().join("lab");
    fs::copy("/proc/self/exe", &own).file("copy this program to", own)?;
    pki::write(state, options.nodes)?;
    control_plane::write_files(state)?;
    if options.control_plane {
        return Ok(());
    }
    for number in 1..=options.nodes {
        let node = Node::new(state, number);
        node.write_files(&options.gpus(number)?, options.nodes)?;
        images::fill_store(&node.image_store(), &CONTAINERD.folder(), &archives, say)?;
    }
    Ok(())
}

fn write_plan(state: &StateDir, options: &Options) -> Result<(), Error> {
    let mut steps = control_plane::steps(state, &options.dynamo.to_string(), options.control_plane);
    if options.control_plane {
        steps.push(control_plane::simulated_nodes(state));
    } else {
        for number in 1..=options.nodes {
            steps.extend(Node::new(state, number).steps(&options.gpus(number)?));
        }
    }
    steps.extend(control_plane::last_steps(state));
    let plan = Plan {
        title: options.title(),
        steps,
    };
    let text = serde_json::to_string_pretty(&plan).map_err(|source| Error::Json {
        what: "the plan".to_owned(),
        source,
    })?;
    fs::write(state.plan(), text).file("write", state.plan())
}

/// Waits for the socket of the supervisor below this process, and then for its last step.
fn follow(state: &StateDir, mut launched: Child, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let started = Instant::now();
    while client::status(state)?.is_none() {
        let gone = !matches!(launched.try_wait(), Ok(None));
        if gone || started.elapsed().as_secs() > PATIENCE_SECONDS {
            let log = fs::read_to_string(state.log("supervisor")).unwrap_or_default();
            return Err(Error::DidNotComeUp(format!("the supervisor did not start:\n{log}")));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    client::follow(state, say).map(drop)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::supervisor;

    /// A lab whose plan has no step.
    fn planned() -> (tempfile::TempDir, StateDir) {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(folder.path());
        let plan = Plan {
            title: "test".to_owned(),
            steps: Vec::new(),
        };
        fs::write(state.plan(), serde_json::to_string(&plan).unwrap()).unwrap();
        (folder, state)
    }

    #[test]
    fn a_supervisor_that_starts_slowly_is_waited_for() {
        let (_folder, state) = planned();
        // It ends when its standard input is dropped.
        let launched = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let slow = state.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(1500));
            supervisor::run(&slow).unwrap();
        });
        follow(&state, launched, &mut |_| {}).unwrap();
    }

    #[test]
    fn a_supervisor_that_cannot_start_is_reported_with_its_log() {
        let (_folder, state) = planned();
        fs::create_dir(state.join("logs")).unwrap();
        fs::write(state.log("supervisor"), "no loop device").unwrap();
        let launched = Command::new("false").spawn().unwrap();
        let error = follow(&state, launched, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("did not start:\nno loop device"), "{error}");
    }
}
