//! Every command that a page shows is one.

use std::path::PathBuf;

use clap::{CommandFactory as _, Parser as _};
use perfval_cli::args::Cli;
use walkdir::WalkDir;

const PROGRAM: &str = "kubectl perfval";

fn pages() -> Vec<PathBuf> {
    let entries = WalkDir::new("../../docs").into_iter();
    let paths = entries.map(|entry| entry.expect("a page").into_path());
    let pages = paths.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.chain([PathBuf::from("../../README.md")]).collect()
}

/// Commands in blocks and in the middle of a text, where a verb with what follows it may stand alone.
fn commands(text: &str, verbs: &[String]) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches("$ "));
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let whole = lines.chain(spans).filter_map(|line| line.strip_prefix(PROGRAM));
    let short = text
        .lines()
        .filter(|line| line.contains(PROGRAM))
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_verb = |span: &&str| {
        let mut words = span.split(' ');
        words.next().is_some_and(|word| verbs.iter().any(|verb| verb == word)) && words.next().is_some()
    };
    whole.chain(short.filter(is_verb)).map(str::to_owned).collect()
}

#[test]
fn every_command_of_a_page_is_understood() {
    let verbs: Vec<_> = Cli::command()
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for command in commands(&text, &verbs) {
            // The pages write it in capitals, which no namespace has.
            let command = command.replace("NAMESPACE", "namespace");
            let words = command
                .split_whitespace()
                .take_while(|word| !["|", ">", "&&", "#", "…"].contains(word));
            let words: Vec<_> = words.map(|word| word.trim_matches(['\'', '"'])).collect();
            // A text may mention the program alone, or a verb.
            if words.is_empty() || matches!(words[..], [verb] if verbs.iter().any(|known| known == verb)) {
                continue;
            }
            found += 1;
            if let Err(error) = Cli::try_parse_from(["kubectl-perfval"].iter().chain(&words)) {
                wrong.push(format!("{}: {command}: {error}", page.display()));
            }
        }
    }
    assert!(found > 30, "{found}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
