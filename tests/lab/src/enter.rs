//! Runs programs inside the lab's namespace.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use crate::error::{Error, FileResult as _};
use crate::namespace;
use crate::paths::StateDir;

/// A program that will run inside, with the caller's working directory, the lab's programs first in `PATH` and
/// `KUBECONFIG` set to the admin's. It gets SIGTERM when the caller dies.
pub fn command<A: AsRef<OsStr>>(state: &StateDir, program: &[A]) -> Result<Command, Error> {
    entering(state, &["--mount", "--net", "--pid"], program)
}

/// The same in the lab's network alone, for a test that also calls `lab` from outside.
pub fn network<A: AsRef<OsStr>>(state: &StateDir, program: &[A]) -> Result<Command, Error> {
    entering(state, &["--net"], program)
}

fn entering<A: AsRef<OsStr>>(state: &StateDir, namespaces: &[&str], program: &[A]) -> Result<Command, Error> {
    let init = namespace::find(state).ok_or(Error::NotUp)?;
    let folder = std::env::current_dir().file("find", ".")?;
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--target={}", init.pid))
        .args(namespaces)
        .args(["--", "setpriv", "--pdeathsig", "TERM", "--", "env"])
        // nsenter does not keep the working directory.
        .arg(assignment("--chdir", folder))
        .arg(assignment("KUBECONFIG", state.kubeconfig("admin")))
        // kubectl's discovery cache goes with the lab; another one has other CRDs at the same address.
        .arg(assignment("KUBECACHEDIR", state.join("kube-cache")))
        .arg(assignment("PATH", path(state)))
        .args(program);
    Ok(command)
}

/// kubectl as the cluster's admin, to be called from outside.
pub fn kubectl(state: &StateDir, arguments: &[&str]) -> Result<Command, Error> {
    let words: Vec<&str> = std::iter::once("kubectl").chain(arguments.iter().copied()).collect();
    command(state, &words)
}

fn assignment(name: &str, value: impl Into<OsString>) -> OsString {
    let mut word = OsString::from(format!("{name}="));
    word.push(value.into());
    word
}

fn path(state: &StateDir) -> OsString {
    let mut path = OsString::from(state.bin());
    for folder in [
        std::env::var_os("PATH").unwrap_or_default(),
        PathBuf::from("/usr/sbin:/sbin").into(),
    ] {
        path.push(":");
        path.push(folder);
    }
    path
}
