//! Whole runs, in two labs side by side where the machine has a core for each lab's engines and one for its load generator.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Instant;

use tokio::process::Command;

use crate::build::Built;
use crate::fresh::Fresh;

/// Cores that a whole run needs for itself: its simulated engines and AIPerf would wait for each other's labs.
const CORES_PER_LAB: usize = 2;

/// Prefix of the tests that take long. Maintainers run them; `just test` does not.
const MORE: &str = "more::";

/// As many labs as asked for; otherwise one, or two on a machine with four cores or more.
pub fn labs(built: &Built, asked: Option<usize>) -> Vec<Fresh> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let count = asked.unwrap_or(cores / CORES_PER_LAB).clamp(1, 2);
    let folder = |number| format!("/var/lib/perfval-e2e-{number}").into();
    (0..count)
        .map(|number| Fresh::in_folder(built, folder(number)))
        .collect()
}

/// Runs the tests whose name contains `name`, without a name those of every day, or `all`. Prints the names of those that
/// failed; then the exit code is 1.
pub async fn run(built: &Built, labs: &[Fresh], name: &str, all: bool) -> io::Result<u8> {
    let binary = built.test("e2e").await?;
    let mut names = listed(&binary, name).await?;
    names.retain(|test| all || !name.is_empty() || !test.starts_with(MORE));
    if names.is_empty() {
        eprintln!("no test has {name} in its name");
        return Ok(1);
    }
    let suite = Suite {
        binary: &binary,
        operator: &built.release("perfvalidation-operator"),
    };
    let some = &labs[..names.len().min(labs.len())];
    for lab in some {
        lab.up(false).await?;
    }
    let failed = suite.side_by_side(some, &names).await?;
    if !failed.is_empty() {
        println!("FAILED: {}", failed.join(" "));
    }
    Ok(u8::from(!failed.is_empty()))
}

/// The names of the tests, the last one first.
async fn listed(binary: &Path, filter: &str) -> io::Result<Vec<String>> {
    let mut command = Command::new(binary);
    command.args(["--list", "--format", "terse", "--ignored"]);
    command.args(Some(filter).filter(|filter| !filter.is_empty()));
    let output = command.stdout(Stdio::piped()).spawn()?.wait_with_output().await?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "{} does not list its tests",
            binary.display()
        )));
    }
    Ok(names(&String::from_utf8_lossy(&output.stdout)))
}

fn names(listed: &str) -> Vec<String> {
    let mut names: Vec<String> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    names
}

struct Suite<'a> {
    binary: &'a Path,
    operator: &'a Path,
}

impl Suite<'_> {
    /// Runs every test once: each lab takes the next one as soon as it is free. The names of those that failed.
    async fn side_by_side(&self, labs: &[Fresh], names: &[String]) -> io::Result<Vec<String>> {
        let waiting = Mutex::new(names.iter());
        let next = || waiting.lock().ok()?.next();
        let failed = Mutex::new(Vec::new());
        let (next, failing) = (&next, &failed);
        let lanes = labs.iter().map(|lab| async move {
            while let Some(name) = next() {
                if !self.test(lab, name).await?
                    && let Ok(mut failed) = failing.lock()
                {
                    failed.push(name.clone());
                }
            }
            Ok::<(), io::Error>(())
        });
        futures::future::try_join_all(lanes).await?;
        let failed = failed.into_inner().unwrap_or_default();
        Ok(names.iter().filter(|name| failed.contains(name)).cloned().collect())
    }

    /// Runs one test; what it says is shown where it failed.
    async fn test(&self, lab: &Fresh, name: &str) -> io::Result<bool> {
        let began = Instant::now();
        // One file for both streams keeps their order.
        let said = tempfile::NamedTempFile::new()?;
        let mut command = lab.exec_in_network(self.binary);
        command
            .args(["--ignored", "--exact", name, "--nocapture"])
            .env("LAB", lab.program())
            .env("PERFVAL_CONFIG", std::env::current_dir()?.join("config"))
            .env("PERFVAL_OPERATOR", self.operator)
            .stdout(said.as_file().try_clone()?)
            .stderr(said.as_file().try_clone()?);
        let passed = command.kill_on_drop(true).status().await?.success();
        let seconds = began.elapsed().as_secs();
        if passed {
            println!("{name} ... ok, {seconds} s");
        } else {
            let said = std::fs::read(said.path())?;
            println!(
                "{}\n{name} ... FAILED, {seconds} s",
                String::from_utf8_lossy(&said).trim_end()
            );
            // A failure may be rare, so the log has all that its objects show. Without an answer the suite goes on.
            let mut describe = lab.exec("kubectl");
            describe.args(["describe", "perfvalidations", "--all-namespaces"]);
            let _ = describe.kill_on_drop(true).status().await;
        }
        Ok(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn only_tests_are_listed_the_last_one_first() {
        let listed =
            "e2e::edits::an_edit: test\ne2e::verdicts::a_healthy_node: test\nsome: benchmark\n\n2 tests, 1 benchmark\n";
        assert_eq!(names(listed), ["e2e::verdicts::a_healthy_node", "e2e::edits::an_edit"]);
    }
}
