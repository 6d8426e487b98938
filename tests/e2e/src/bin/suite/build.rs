//! Where programs and tests are, once cargo has built them.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

/// The wrapper with which `just` builds every test: another one would build all of them again.
const WRAPPER: &str = "tests/lab/prepare/lint-and-build";

/// What cargo builds.
pub struct Built {
    /// Folder of the debug binaries.
    debug: PathBuf,
    /// Folder of the release binaries.
    release: PathBuf,
}

impl Built {
    /// What is in these folders.
    pub fn new(debug: PathBuf, release: PathBuf) -> Self {
        Self { debug, release }
    }

    /// A program of the tests.
    pub fn program(&self, name: &str) -> PathBuf {
        self.debug.join(name)
    }

    /// A program that ships.
    pub fn release(&self, name: &str) -> PathBuf {
        self.release.join(name)
    }

    /// Builds a program of a package that has no tests; cargo builds those of the others with their tests.
    pub async fn build(&self, name: &str) -> io::Result<PathBuf> {
        succeed(cargo(&["build", "--quiet", "--workspace", "--bin", name])?).await?;
        Ok(self.program(name))
    }

    /// Builds a test; its binary.
    pub async fn test(&self, name: &str) -> io::Result<PathBuf> {
        let arguments = ["test", "--quiet", "--workspace", "--test", name, "--no-run"];
        let mut command = cargo(&arguments)?;
        command
            .arg("--message-format=json-render-diagnostics")
            .stdout(Stdio::piped());
        let output = command.kill_on_drop(true).spawn()?.wait_with_output().await?;
        let messages = String::from_utf8_lossy(&output.stdout);
        let found = messages.lines().filter_map(|line| binary(line, name)).next_back();
        found
            .filter(|_| output.status.success())
            .ok_or_else(|| io::Error::other(format!("the test {name} was not built")))
    }
}

/// The binary of a test, if this message of cargo names it.
fn binary(message: &str, test: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message["executable"].as_str()?;
    (message["target"]["name"] == test).then(|| path.into())
}

fn cargo(arguments: &[&str]) -> io::Result<Command> {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .env("RUSTC_WORKSPACE_WRAPPER", std::env::current_dir()?.join(WRAPPER));
    Ok(command)
}

/// Runs a command whose output is for people; its exit code.
pub async fn code(mut command: Command) -> io::Result<u8> {
    let status = command.kill_on_drop(true).status().await?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Runs a command that has to succeed.
pub async fn succeed(command: Command) -> io::Result<()> {
    let shown = format!("{:?}", command.as_std());
    match code(command).await? {
        0 => Ok(()),
        code => Err(io::Error::other(format!("{shown}: exit code {code}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::binary;

    #[test]
    fn the_binary_of_a_test_is_found_in_the_output_of_cargo() {
        let message = |target: &str, path: &str| {
            format!(r#"{{"reason":"compiler-artifact","target":{{"name":"{target}"}},"executable":{path}}}"#)
        };
        let found = binary(&message("e2e", r#""/target/debug/deps/e2e-1""#), "e2e");
        assert_eq!(found, Some(PathBuf::from("/target/debug/deps/e2e-1")));
        assert_eq!(
            binary(&message("races", r#""/target/debug/deps/races-1""#), "e2e"),
            None
        );
        assert_eq!(binary(&message("e2e", "null"), "e2e"), None);
        assert_eq!(binary("Compiling perfval-e2e", "e2e"), None);
    }
}
