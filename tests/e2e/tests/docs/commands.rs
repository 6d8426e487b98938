//! Every command of a page is run by a test, or says that it needs GPUs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use perfval_e2e::documentation::{Mark, pages};

use super::tree::{functions, repository};

/// Who runs a command that begins so: `tests/e2e/tests/admission/commands.rs` runs every kubectl line of the pages.
const RUN_BY: [(&str, &str); 2] = [("kubectl ", "the_commands_of_the_pages_work"), ("helm ", "tests/chart")];

#[test]
fn every_command_is_run_somewhere_or_needs_gpus() {
    let root = repository();
    let (tests, recipes) = (functions(&root), recipes(&root));
    let known = |name: &str| tests.contains(name) || recipes.contains(name) || root.join(name).exists();
    let mut not_run = Vec::new();
    for page in pages(&root).iter().filter(|page| page.is_for_users()) {
        for block in page.blocks().iter().filter(|block| block.language == "sh") {
            let place = format!("{}:{}", page.path, block.line);
            match &block.mark {
                Some(Mark::NeedsGpus) => {}
                Some(Mark::RunsIn(name)) if known(name) => {}
                Some(Mark::RunsIn(name)) => not_run.push(format!("{place}: no test and no recipe is called {name}")),
                None => not_run.extend(
                    block
                        .commands()
                        .iter()
                        .filter(|command| !is_run(command, &recipes, known))
                        .map(|command| format!("{place}: {command}")),
                ),
            }
        }
    }
    assert!(
        not_run.is_empty(),
        "commands that no test runs; put <!-- needs GPUs --> or <!-- runs in: TEST --> before the block:\n{}",
        not_run.join("\n")
    );
}

fn is_run(command: &str, recipes: &BTreeSet<String>, known: impl Fn(&str) -> bool) -> bool {
    let just = command
        .strip_prefix(".ci/just ")
        .or_else(|| command.strip_prefix("just "));
    if let Some(recipe) = just.and_then(|rest| rest.split_whitespace().next()) {
        return recipes.contains(recipe);
    }
    RUN_BY.iter().any(|(start, by)| command.starts_with(start) && known(by))
}

/// The names of the Justfile's recipes.
fn recipes(root: &Path) -> BTreeSet<String> {
    let justfile = fs::read_to_string(root.join("Justfile")).expect("the Justfile");
    let heads = justfile
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains(':'));
    let names = heads.filter_map(|line| line.split([' ', ':']).next());
    names.map(str::to_owned).collect()
}
