//! Plain English in the sources: habits are counted, and each count may only fall.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Most doc blocks that may begin with one of [`CLAUSE_STARTS`].
const MAX_CLAUSES: usize = 0;
/// Most uses of [`PHRASES`] in comments.
const MAX_PHRASES: usize = 0;
/// Most functions of what ships whose name is neither a verb nor a noun.
const MAX_FUNCTION_NAMES: usize = 0;
/// Most functions, tests included, with one of [`PHRASES`] in their name.
const MAX_PHRASES_IN_NAMES: usize = 0;

/// First words of a clause; a description begins with a noun or a verb in the third person.
const CLAUSE_STARTS: &[&str] = &[
    "what", "how", "whether", "who", "whom", "whose", "where", "which", "why",
];

/// Verbs of speech, which do not fit data, and phrases that hide the actor.
const PHRASES: &[&str] = &[
    "say",
    "says",
    "said",
    "tell",
    "tells",
    "told",
    "knows",
    "is asked",
    "are asked",
    "was asked",
    "nobody",
    "no one",
    "nothing but",
    "none but",
    "whoever",
    "whatever",
    "whichever",
    "what is",
    "what are",
    "what was",
    "of ours",
    "so many",
    "so much",
    "one that",
    "of which",
    "anew",
];

/// Function names that are neither verbs nor nouns; a name that ends in `*` stands for all that begin like it.
const FUNCTION_NAMES: &[&str] = &["of", "of_*", "said", "says", "saw*", "once"];

#[test]
fn descriptions_begin_with_a_noun_or_a_verb() {
    let repair = "begin with a noun or a verb: \"Number of free GPUs\", \"Returns true if …\"";
    assert_at_most(MAX_CLAUSES, "MAX_CLAUSES", repair, shipped(), clauses);
}

#[test]
fn comments_do_not_make_things_speak_or_ask_riddles() {
    let repair = "put the actor first: data shows, reports, contains or is; it does not say, tell or know";
    assert_at_most(MAX_PHRASES, "MAX_PHRASES", repair, shipped(), phrases);
}

#[test]
fn function_names_are_verbs_or_nouns() {
    let repair = "name a function by a verb or a noun: `count_free`, `from_status`, `new`";
    assert_at_most(
        MAX_FUNCTION_NAMES,
        "MAX_FUNCTION_NAMES",
        repair,
        shipped(),
        function_names,
    );
}

#[test]
fn names_of_functions_and_tests_contain_no_riddles() {
    let repair = "name a test by the behaviour in a plain sentence: `passes_when_all_gates_are_met`";
    let all = ["crates", "tests"].into_iter().flat_map(sources);
    assert_at_most(
        MAX_PHRASES_IN_NAMES,
        "MAX_PHRASES_IN_NAMES",
        repair,
        all,
        phrases_in_names,
    );
}

#[test]
fn the_habits_are_found_in_a_small_source() {
    let source = "\
/// Whether it is free. What is\n/// asked is told by nobody.\nfn of_node() {}\n\n//! The rest.\n\
// It says so;\n// a list: so\n// many.\nlet what_is = \"says\";\npub const fn saw_all() {}\nfn once_more() {}\nfn office() {}\n\
// Names.\nasync fn what_is_said() {}\nfn what_island() {}\n";
    assert_eq!(lines(&clauses(source)), [1]);
    assert_eq!(lines(&phrases(source)), [1, 1, 1, 1, 6, 6]);
    assert_eq!(lines(&function_names(source)), [3, 10]);
    assert_eq!(lines(&phrases_in_names(source)), [14, 14]);
}

/// One place: number of the line, and the text that is to change.
type Found = (usize, String);

fn lines(found: &[Found]) -> Vec<usize> {
    found.iter().map(|(line, _)| *line).collect()
}

/// Counts over all sources. The message lists every place once the count has risen.
fn assert_at_most(
    most: usize,
    name: &str,
    repair: &str,
    files: impl IntoIterator<Item = PathBuf>,
    find: fn(&str) -> Vec<Found>,
) {
    let mut count = 0;
    let mut places = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source can be read");
        for (line, text) in find(&text) {
            count += 1;
            writeln!(places, "{}:{line}: {text}", file.display()).expect("a string can grow");
        }
    }
    assert!(
        count <= most,
        "{places}{count} places, at most {most} are allowed; {repair}"
    );
    assert!(
        count == most,
        "only {count} places are left: set {name} in {} to {count}",
        file!()
    );
}

/// Rust files below a folder of the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let files = WalkDir::new(&folder)
        .sort_by_file_name()
        .into_iter()
        .map(|entry| entry.expect("a folder can be listed").into_path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Sources of what ships.
fn shipped() -> impl Iterator<Item = PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    // Folders above the checkout do not count.
    let is_source = move |path: &PathBuf| {
        path.strip_prefix(&crates)
            .is_ok_and(|path| path.components().any(|part| part.as_os_str() == "src"))
    };
    sources("crates").into_iter().filter(is_source)
}

/// Comments that take whole lines: each block with the number of its first line, its marker and its lines.
fn blocks(source: &str) -> Vec<(usize, &str, Vec<&str>)> {
    let mut blocks: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    let mut open = false;
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let markers = ["///", "//!", "//"];
        let Some(marker) = markers.into_iter().find(|marker| line.starts_with(marker)) else {
            open = false;
            continue;
        };
        let text = line[marker.len()..].trim();
        match blocks.last_mut() {
            Some((_, last, texts)) if open && *last == marker => texts.push(text),
            _ => blocks.push((index + 1, marker, vec![text])),
        }
        open = true;
    }
    blocks
}

fn clauses(source: &str) -> Vec<Found> {
    let docs = blocks(source).into_iter().filter(|(_, marker, _)| *marker != "//");
    docs.filter_map(|(line, _, texts)| {
        let first = words(texts[0]).into_iter().next()?;
        CLAUSE_STARTS
            .contains(&first.as_str())
            .then(|| (line, texts[0].to_owned()))
    })
    .collect()
}

fn phrases(source: &str) -> Vec<Found> {
    let comments = blocks(source).into_iter();
    let found = comments.flat_map(|(line, _, texts)| phrases_in(line, &texts.join(" ")));
    found.collect()
}

fn phrases_in(line: usize, text: &str) -> Vec<Found> {
    let text = format!(" {} ", words(text).join(" "));
    let uses = |phrase: &&str| {
        let uses = text.matches(&format!(" {phrase} ")).count();
        std::iter::repeat_n((line, format!("\"{phrase}\"")), uses)
    };
    PHRASES.iter().flat_map(uses).collect()
}

fn phrases_in_names(source: &str) -> Vec<Found> {
    let named = declared(source).flat_map(|(line, name)| phrases_in(line, &name.replace('_', " ")));
    named.collect()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\'' || c == '’'));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn function_names(source: &str) -> Vec<Found> {
    let is_listed = |(_, name): &Found| {
        FUNCTION_NAMES.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        })
    };
    declared(source).filter(is_listed).collect()
}

/// Names of the declared functions.
fn declared(source: &str) -> impl Iterator<Item = Found> {
    source.lines().enumerate().filter_map(|(index, line)| {
        let (before, after) = line.split_once("fn ")?;
        let comment = before.contains("//") || !(before.is_empty() || before.ends_with(' '));
        let name = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (!comment).then_some((index + 1, name))
    })
}
