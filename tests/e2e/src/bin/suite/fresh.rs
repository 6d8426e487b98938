//! A lab with nothing of one that an interrupted run left behind.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::process::Command;

use crate::build::{Built, succeed};

/// A lab of its own.
pub struct Fresh {
    program: PathBuf,
    operator: PathBuf,
    runner: PathBuf,
    /// Its folder; none: the usual one.
    folder: Option<PathBuf>,
    /// Whether it stays up for a person to use.
    stays: bool,
    /// Whether this process brought it up or was free to.
    taken: AtomicBool,
}

impl Fresh {
    /// The usual lab.
    pub fn new(built: &Built) -> Self {
        Self {
            program: built.program("lab"),
            operator: built.release("perfvalidation-operator"),
            runner: built.release("perfval-runner"),
            folder: None,
            stays: false,
            taken: AtomicBool::new(false),
        }
    }

    /// A lab in a folder of its own, next to others.
    pub fn in_folder(built: &Built, folder: PathBuf) -> Self {
        Self {
            folder: Some(folder),
            ..Self::new(built)
        }
    }

    /// The same lab, left up for a person to use.
    pub fn staying(self) -> Self {
        Self { stays: true, ..self }
    }

    /// The lab's program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Brings it up, without a trace of an earlier one; a whole one with the operator's image.
    pub async fn up(&self, control_plane: bool) -> io::Result<()> {
        let flags: &[&str] = if control_plane { &["--control-plane"] } else { &[] };
        self.up_with_flags(flags).await
    }

    /// Brings a whole one up with this release of Dynamo.
    pub async fn up_with(&self, dynamo: &str) -> io::Result<()> {
        self.up_with_flags(&["--dynamo", dynamo]).await
    }

    /// The same with flags of `lab up`.
    pub async fn up_with_flags(&self, flags: &[&str]) -> io::Result<()> {
        self.bring_up(flags).await?;
        if flags.contains(&"--control-plane") {
            return Ok(());
        }
        self.load_operator().await
    }

    /// Refuses if a person or another process uses a lab in this folder.
    async fn bring_up(&self, flags: &[&str]) -> io::Result<()> {
        self.end_unless_used().await?;
        self.taken.store(true, Ordering::Relaxed);
        let mut up = self.command(["up"]);
        up.args(flags);
        if !self.stays {
            up.args(["--holder", &std::process::id().to_string()]);
        }
        succeed(up).await
    }

    async fn load_operator(&self) -> io::Result<()> {
        let mut image = self.command(["image", "operator"]);
        image.args([&self.operator, &self.runner]).stdout(Stdio::piped());
        let made = image.kill_on_drop(true).spawn()?.wait_with_output().await?;
        if !made.status.success() {
            return Err(io::Error::other("the operator's image was not made"));
        }
        let archive = String::from_utf8_lossy(&made.stdout);
        succeed(self.command(["load-image", archive.trim_end()])).await
    }

    /// Ends it, and removes every trace of it. A lab that this process had to leave alone stays.
    pub async fn down(&self) -> io::Result<()> {
        if self.taken.load(Ordering::Relaxed) {
            self.end_unless_used().await?;
        }
        Ok(())
    }

    async fn end_unless_used(&self) -> io::Result<()> {
        let own = std::process::id().to_string();
        succeed(self.command(["down", "--holder", &own])).await
    }

    /// A command inside of it.
    pub fn exec(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(["exec", "--"]);
        command.arg(program);
        command
    }

    /// A command in its network: files, processes and the lab's own program stay those of the machine.
    pub fn exec_in_network(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(["exec", "--network-only", "--"]);
        command.arg(program);
        command
    }

    fn command<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        if let Some(folder) = &self.folder {
            command.env("PERFVAL_LAB_DIR", folder);
        }
        command
    }
}
