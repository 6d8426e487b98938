//! A terminal: commands as a user types them, and what they print.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use perfval_e2e::Lab;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::Outcome;

/// Longest a user watches one run.
const LIMIT: Duration = Duration::from_mins(10);

/// A shell.
pub struct Terminal {
    path: OsString,
    folder: PathBuf,
}

impl Terminal {
    /// One in the repository's root in which `helm` can be typed.
    pub async fn with_helm(lab: &Lab) -> Outcome<Self> {
        let helm = lab.run(&["program", "helm"]).await;
        let (folder, _) = helm.trim().rsplit_once('/').ok_or("helm is in no folder")?;
        let mut path = OsString::from(folder);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Ok(Self {
            path,
            folder: PathBuf::from("."),
        })
    }

    /// One in an empty folder, in which programs in `bin` can be typed as well.
    pub fn elsewhere(&self, folder: &Path, bin: &Path) -> Self {
        let mut path = bin.as_os_str().to_owned();
        path.push(":");
        path.push(&self.path);
        Self {
            path,
            folder: folder.to_owned(),
        }
    }

    /// Types commands one after the other.
    pub async fn all(&self, commands: &[String]) -> Outcome<()> {
        for command in commands {
            self.run(command).await?;
        }
        Ok(())
    }

    /// Types a command that has to succeed; both streams are shown.
    pub async fn run(&self, line: &str) -> Outcome<()> {
        show(line);
        let status = self.shell(line).status().await?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{line}: {status}").into())
        }
    }

    /// Types a command that never ends, and interrupts it after the line of a run that is over.
    pub async fn watch(&self, line: &str) -> Outcome<()> {
        show(line);
        let mut child = self.shell(line).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let until_over = async {
            let mut began = false;
            while let Some(printed) = lines.next_line().await? {
                println!("{printed}");
                let is_over = printed.contains("Completed");
                if began && is_over {
                    return Ok(());
                }
                began |= !is_over && !printed.starts_with("NAME");
            }
            Err(io::Error::other("the watch ended by itself"))
        };
        timeout(LIMIT, until_over).await??;
        child.kill().await?;
        Ok(())
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", line])
            .env("PATH", &self.path)
            .current_dir(&self.folder)
            .kill_on_drop(true);
        command
    }
}

/// Begins a part of the walk.
pub fn title(text: &str) {
    println!("\n── {text}");
}

fn show(line: &str) {
    println!("\n$ {line}");
    // Programs write to the same file themselves. A closed terminal is no reason to stop.
    let _ = io::stdout().flush();
}
