//! `lab up`: builds what is missing, writes a cluster's files and plan, starts the supervisor and follows it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::Instant;

use crate::error::{Error, FileResult as _};
use crate::node::Node;
use crate::options::Options;
use crate::paths::{self, StateDir};
use crate::supervisor::{Phase, Plan, Report, client};
use crate::{control_plane, holder, namespace, packages, pki, prepare};

/// Builds what a lab needs and starts nothing. `tests/lab/prepare/progress.py` reads its lines.
pub fn prepare(options: &Options) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
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
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
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
            say("cleaning up after a lab that died");
            crate::down::down(state)?;
        }
        write_files(state, options, &mut say)?;
        write_plan(state, options)?;
        namespace::launch(state)?;
        follow(state, &mut say)?;
    }
    drop(lock);
    say(&format!(
        "up: {}. Use it: lab exec -- kubectl get nodes",
        options.title()
    ));
    Ok(())
}

fn already_up(state: &StateDir, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let Some(Report { title, phase, .. }) = client::status(state)? else {
        return Err(Error::Supervisor("it does not answer: run `lab down`".to_owned()));
    };
    if title != options.title() {
        return Err(Error::OtherLab {
            running: title,
            wanted: options.title(),
        });
    }
    if let Phase::Starting(_) = phase {
        return follow(state, say);
    }
    let report = client::status(state)?.filter(|report| !report.is_healthy());
    match report.map(|report| report.to_string()) {
        Some(report) => Err(Error::DidNotComeUp(report)),
        None => Ok(()),
    }
}

/// Builds what is missing and writes every file of a new cluster.
fn write_files(state: &StateDir, options: &Options, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    for folder in [state.root().to_owned(), state.bin(), state.join("logs")] {
        fs::create_dir_all(&folder).file("create", &folder)?;
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
        prepare::fill_store(&node.image_store(), &archives, say)?;
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

/// Waits for the supervisor's socket and then for its last step.
fn follow(state: &StateDir, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let started = Instant::now();
    while client::status(state)?.is_none() {
        let gone = started.elapsed().as_secs() >= 1 && namespace::find(state).is_none();
        if gone || started.elapsed().as_secs() > 20 {
            let log = fs::read_to_string(state.log("supervisor")).unwrap_or_default();
            return Err(Error::DidNotComeUp(format!("the supervisor did not start:\n{log}")));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    client::follow(state, say).map(drop)
}
