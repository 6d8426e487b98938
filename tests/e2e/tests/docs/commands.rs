//! Every command of a page is run by a test, or says that it needs GPUs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use perfval_e2e::documentation::{Mark, pages};

use super::tree::{functions, repository};

/// Tests that run the commands that begin so. One of the chart renders the values in the pages. Every other command of helm needs a
/// mark.
const RUN_BY: [(&str, &str); 5] = [
    ("kubectl ", "the_commands_of_the_pages_work"),
    ("helm install ", "values_in_helm_commands_of_the_pages_render"),
    ("helm upgrade ", "values_in_helm_commands_of_the_pages_render"),
    (
        "helm test ",
        "upgrade_and_rollback_lose_no_run_and_uninstalling_leaves_nothing",
    ),
    (
        "helm rollback ",
        "upgrade_and_rollback_lose_no_run_and_uninstalling_leaves_nothing",
    ),
];

#[test]
fn every_command_is_run_somewhere_or_needs_gpus() {
    let root = repository();
    let (tests, recipes) = (functions(&root), recipes(&root));
    let known = |name: &str| tests.contains(name) || recipes.contains(name);
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

/// The names of the Justfile's recipes, without its variables.
fn recipes(root: &Path) -> BTreeSet<String> {
    let justfile = fs::read_to_string(root.join("Justfile")).expect("the Justfile");
    let is_recipe =
        |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains(':') && !line.contains(":=");
    let heads = justfile.lines().filter(is_recipe);
    let names = heads.filter_map(|line| line.split([' ', ':']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn a_variable_is_no_recipe_and_an_unknown_command_of_helm_is_run_nowhere() {
    let root = repository();
    let (tests, recipes) = (functions(&root), recipes(&root));
    assert!(recipes.contains("test") && recipes.contains("walk"), "{recipes:?}");
    assert!(!recipes.contains("cache") && !recipes.contains("debug"), "{recipes:?}");
    let is_run = |command| is_run(command, &recipes, |name| tests.contains(name));
    assert!(is_run("helm upgrade x") && is_run("helm rollback x") && is_run("just test"));
    assert!(!is_run("helm pull x") && !is_run("just cache"));
}
