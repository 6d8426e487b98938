//! The mount and network namespace of a node beside the first. A process of the supervisor's holds it.

use std::convert::Infallible;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::pause;

use super::Node;
use crate::control_plane::text;
use crate::error::{Error, FileResult as _};
use crate::namespace::{mounts, network};
use crate::paths::StateDir;
use crate::supervisor::{Invocation, Process};

/// Namespaces of a node, as `/proc/PID/ns` names them.
const NAMESPACES: [(&str, CloneFlags); 2] = [("net", CloneFlags::CLONE_NEWNET), ("mnt", CloneFlags::CLONE_NEWNS)];

/// The process that holds them.
pub(super) fn holder(node: &Node<'_>) -> Process {
    let arguments = ["hold-node".to_owned(), text(node.state.root()), node.number.to_string()];
    Process {
        name: node.own("node"),
        command: Invocation::new(node.state.bin().join("lab"), arguments),
    }
}

/// Makes the namespaces of a node, and holds them until a signal ends this process.
pub fn hold(state: &StateDir, number: u8) -> Result<Infallible, Error> {
    let node = Node::new(state, number);
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).map_err(|source| Error::System {
        doing: format!("make the namespaces of {}", node.name()),
        source,
    })?;
    network::join(&node.own("node"), node.address())?;
    mounts::prepare_node(state, &node.join(""))?;
    let pid = node.join("pid");
    let new = node.join("pid.new");
    fs::write(&new, std::process::id().to_string()).file("write", &new)?;
    fs::rename(&new, &pid).file("write", &pid)?;
    loop {
        pause();
    }
}

/// Becomes a command in the namespaces of a node; returns only if that fails.
pub fn enter(state: &StateDir, number: u8, command: &[String]) -> Result<Infallible, Error> {
    let node = Node::new(state, number);
    let pid = node.join("pid");
    let pid = fs::read_to_string(&pid).file("read", &pid)?;
    let files = NAMESPACES.map(|(name, kind)| {
        let path = format!("/proc/{pid}/ns/{name}");
        File::open(&path).file("open", path).map(|file| (file, kind))
    });
    for file in files {
        let (file, kind) = file?;
        setns(file, kind).map_err(|source| Error::System {
            doing: format!("enter the namespaces of {}", node.name()),
            source,
        })?;
    }
    let [program, arguments @ ..] = command else {
        return Err(Error::Usage("a command is needed".to_owned()));
    };
    let source = Command::new(program).args(arguments).exec();
    Err(Error::Start {
        program: program.clone(),
        source,
    })
}
