//! A lab with nothing of one that an interrupted run left behind.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::build::{Built, succeed};

/// A lab of its own.
pub struct Fresh {
    program: PathBuf,
    operator: PathBuf,
    runner: PathBuf,
    /// Its folder; none: the usual one.
    folder: Option<PathBuf>,
}

impl Fresh {
    /// The usual lab.
    pub fn new(built: &Built) -> Self {
        Self {
            program: built.program("lab"),
            operator: built.release("perfvalidation-operator"),
            runner: built.release("perfval-runner"),
            folder: None,
        }
    }

    /// A lab in a folder of its own, next to others.
    pub fn in_folder(built: &Built, folder: PathBuf) -> Self {
        Self {
            folder: Some(folder),
            ..Self::new(built)
        }
    }

    /// The lab's program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Brings it up, without a trace of an earlier one; a whole one with the operator's image.
    pub async fn up(&self, control_plane: bool) -> io::Result<()> {
        self.down().await?;
        let mut up = self.command(["up"]);
        if control_plane {
            up.arg("--control-plane");
            return succeed(up).await;
        }
        succeed(up).await?;
        self.load_operator().await
    }

    /// Brings a whole one up with this release of Dynamo.
    pub async fn up_with(&self, dynamo: &str) -> io::Result<()> {
        self.down().await?;
        succeed(self.command(["up", "--dynamo", dynamo])).await?;
        self.load_operator().await
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

    /// Ends it, and removes every trace of it.
    pub async fn down(&self) -> io::Result<()> {
        succeed(self.command(["down"])).await
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
