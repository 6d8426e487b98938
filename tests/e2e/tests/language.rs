//! Plain English in the sources of what ships: three habits are counted, and each count may only fall.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Most doc blocks that may begin with one of [`CLAUSE_STARTS`].
const MAX_CLAUSES: usize = 0;
/// Most uses of [`PHRASES`] in comments.
const MAX_PHRASES: usize = 0;
/// Most functions whose name is neither a verb nor a noun.
const MAX_FUNCTION_NAMES: usize = 0;

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
    assert_at_most(MAX_CLAUSES, "MAX_CLAUSES", repair, clauses);
}

#[test]
fn comments_do_not_make_things_speak_or_ask_riddles() {
    let repair = "put the actor first: data shows, reports, contains or is; it does not say, tell or know";
    assert_at_most(MAX_PHRASES, "MAX_PHRASES", repair, phrases);
}

#[test]
fn function_names_are_verbs_or_nouns() {
    let repair = "name a function by a verb or a noun: `count_free`, `from_status`, `new`";
    assert_at_most(MAX_FUNCTION_NAMES, "MAX_FUNCTION_NAMES", repair, function_names);
}

#[test]
fn the_habits_are_found_in_a_small_source() {
    let source = "\
/// Whether it is free. What is\n/// asked is told by nobody.\nfn of_node() {}\n\n//! The rest.\n\
// It says so;\n// a list: so\n// many.\nlet what_is = \"says\";\npub const fn saw_all() {}\nfn once_more() {}\nfn office() {}\n";
    assert_eq!(lines(&clauses(source)), [1]);
    assert_eq!(lines(&phrases(source)), [1, 1, 1, 1, 6, 6]);
    assert_eq!(lines(&function_names(source)), [3, 10]);
}

/// One place: number of the line, and the text that is to change.
type Found = (usize, String);

fn lines(found: &[Found]) -> Vec<usize> {
    found.iter().map(|(line, _)| *line).collect()
}

/// Counts over all sources. The message lists every place once the count has risen.
fn assert_at_most(most: usize, name: &str, repair: &str, find: fn(&str) -> Vec<Found>) {
    let mut count = 0;
    let mut places = String::new();
    for file in sources() {
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

fn sources() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let files = WalkDir::new(&crates)
        .sort_by_file_name()
        .into_iter()
        .map(|entry| entry.expect("a folder can be listed").into_path());
    // Folders above the checkout do not count.
    let is_source = |path: &PathBuf| {
        path.strip_prefix(&crates)
            .is_ok_and(|path| path.components().any(|part| part.as_os_str() == "src"))
    };
    let shipped = files.filter(is_source);
    shipped
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
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
    let mut found = Vec::new();
    for (line, _, texts) in blocks(source) {
        let text = format!(" {} ", words(&texts.join(" ")).join(" "));
        for phrase in PHRASES {
            let uses = text.matches(&format!(" {phrase} ")).count();
            found.extend(std::iter::repeat_n((line, format!("\"{phrase}\"")), uses));
        }
    }
    found
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\'' || c == '’'));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn function_names(source: &str) -> Vec<Found> {
    let declared = source.lines().enumerate().filter_map(|(index, line)| {
        let (before, after) = line.split_once("fn ")?;
        let comment = before.contains("//") || !(before.is_empty() || before.ends_with(' '));
        let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let listed = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == **pattern,
        };
        (!comment && FUNCTION_NAMES.iter().any(listed)).then_some((index + 1, name))
    });
    declared.collect()
}
