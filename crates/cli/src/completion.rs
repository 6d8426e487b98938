//! Completions: scripts for a shell, and candidates for kubectl, which runs a program called
//! `kubectl_complete-perfval`.

use std::path::Path;

use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::Shell;

use crate::args::{Cli, Target};
use crate::preset::PRESETS;

/// The name under which kubectl runs it.
const ASKED_AS: &str = "kubectl_complete-perfval";
/// Cobra's directives, by which kubectl treats candidates: complete files too, or only these.
const FILES: &str = ":0\n";
const NO_FILES: &str = ":4\n";

pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kubectl-perfval", &mut script);
    script
}

/// Returns true if the program was started under the name by which kubectl requests candidates.
pub fn is_completion_request(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == ASKED_AS)
}

/// Candidates for the last word, which may be empty: one candidate a line, with its meaning, and a directive. `names`
/// returns the names of the validations.
pub fn candidates(words: &[String], names: impl FnOnce(&Target) -> Vec<String>) -> String {
    let mut root = Cli::command();
    root.build();
    let (last, before) = words
        .split_last()
        .map_or(("", words), |(last, before)| (last.as_str(), before));
    let Some(verb) = before.iter().find_map(|word| root.find_subcommand(word)) else {
        return match value_of(&root, before) {
            Some(flag) => values(flag, last),
            None if last.starts_with('-') => flags(&root, last),
            None => listed(verbs(&root), last) + NO_FILES,
        };
    };
    if let Some(flag) = value_of(verb, before) {
        return values(flag, last);
    }
    if last.starts_with('-') {
        return flags(verb, last);
    }
    match (verb.get_name(), verb.get_positionals().next()) {
        // `approve` has names of baselines, not of validations.
        (_, None) | ("approve", _) => NO_FILES.to_owned(),
        ("judge" | "verify" | "completion", Some(positional)) => values(positional, last),
        ("presets", _) => presets(last),
        (name, _) => {
            let names = names(&target(before)).into_iter();
            // What AIPerf wrote may be reported too.
            let others = if name == "report" { FILES } else { NO_FILES };
            listed(names.map(|name| (name, String::new())), last) + others
        }
    }
}

/// The cluster and namespace of the words before.
fn target(before: &[String]) -> Target {
    let command = Cli::command().ignore_errors(true).no_binary_name(true);
    let matches = command.try_get_matches_from(before);
    let target = matches.and_then(|matches| Target::from_arg_matches(&matches));
    target.unwrap_or_default()
}

fn presets(last: &str) -> String {
    let all = PRESETS
        .iter()
        .map(|preset| (preset.name.to_owned(), preset.product().unwrap_or_default()));
    listed(all, last) + NO_FILES
}

/// The flag that the word before belongs to, if it wants a value.
fn value_of<'a>(command: &'a Command, before: &[String]) -> Option<&'a Arg> {
    let flag = before.last()?;
    let of = |arg: &&Arg| {
        let long = arg.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long));
        let short = arg.get_short().is_some_and(|short| *flag == format!("-{short}"));
        (long || short) && arg.get_action().takes_values()
    };
    command.get_arguments().find(of)
}

fn values(arg: &Arg, last: &str) -> String {
    if arg.get_id() == "preset" {
        return presets(last);
    }
    let possible = arg.get_possible_values();
    if possible.is_empty() {
        return FILES.to_owned();
    }
    let meaning = |help: Option<&clap::builder::StyledStr>| help.map(ToString::to_string).unwrap_or_default();
    let all = possible
        .iter()
        .map(|value| (value.get_name().to_owned(), meaning(value.get_help())));
    listed(all, last) + NO_FILES
}

fn flags(command: &Command, last: &str) -> String {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let all = shown.filter_map(|arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        Some((format!("--{}", arg.get_long()?), help))
    });
    listed(all, last) + NO_FILES
}

fn verbs(root: &Command) -> impl Iterator<Item = (String, String)> {
    root.get_subcommands().map(|verb| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        (verb.get_name().to_owned(), about)
    })
}

fn listed(all: impl Iterator<Item = (String, String)>, last: &str) -> String {
    let fitting = all.filter(|(word, _)| word.starts_with(last));
    let line = |(word, meaning): (String, String)| {
        let meaning = meaning.lines().next().unwrap_or_default();
        if meaning.is_empty() {
            return word + "\n";
        }
        format!("{word}\t{meaning}\n")
    };
    fitting.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{candidates, is_completion_request};

    fn words(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        candidates(&words, |target| {
            let namespace = target.namespace.as_deref().unwrap_or("perf");
            vec![format!("{namespace}-nightly"), "other".to_owned()]
        })
    }

    #[test]
    fn a_name_is_one_of_the_validations_in_the_namespace_of_the_words_before() {
        for verb in ["describe", "watch", "suspend", "diff", "logs --follow", "rerun --watch"] {
            assert_eq!(words(&format!("{verb} p")), "perf-nightly\n:4\n", "{verb}");
        }
        assert_eq!(words("diff other t"), ":4\n");
        assert_eq!(words("get -n team-a t"), "team-a-nightly\n:4\n");
        assert_eq!(words("--namespace=team-a get t"), "team-a-nightly\n:4\n");
        assert_eq!(words("report o"), "other\n:0\n", "or an export");
        assert_eq!(words("judge o"), ":0\n", "an export");
        assert_eq!(words("verify o"), ":0\n", "a folder");
        assert!(words("presets h2").starts_with("h200\t"), "{}", words("presets h2"));
        assert!(words("run --preset h2").starts_with("h200\t"));
    }

    #[test]
    fn kubectl_gets_verbs_flags_and_values() {
        let verbs = words("re");
        assert!(
            verbs.contains("report\tWrite the report") && verbs.contains("rerun\t"),
            "{verbs}"
        );
        assert!(!verbs.contains("watch") && verbs.ends_with("\n:4\n"), "{verbs}");
        assert_eq!(
            words("logs -p be"),
            "benchmark\tSends the requests and measures (AIPerf)\n:4\n"
        );
        let flags = words("-n perf logs --f");
        assert!(flags.starts_with("--follow\t") && !flags.contains("--gpu"), "{flags}");
        assert!(
            words("logs --na").starts_with("--namespace\t"),
            "flags of all verbs are flags of each"
        );
        assert_eq!(words("run -f "), ":0\n", "files");
        assert_eq!(words("-n "), ":0\n", "the value of a flag is no verb");
        assert!(words("").contains("doctor\t"));
        assert_eq!(candidates(&[], |_| Vec::new()), words(""));
    }

    #[test]
    fn only_the_name_that_kubectl_looks_for_is_a_question() {
        assert!(is_completion_request("/usr/local/bin/kubectl_complete-perfval"));
        assert!(!is_completion_request("kubectl-perfval"));
    }
}
