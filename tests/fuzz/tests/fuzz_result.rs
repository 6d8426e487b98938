//! Mutates real exports, logs and metrics: every target keeps its promises, whosever input it is given.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use perfval_fuzz::TARGETS;
use perfval_testkit::fuzz;

/// Targets of what the pods of a run printed.
const RESULTS: [&str; 5] = ["export", "frame", "exposition", "log", "trial"];

/// What breaks parsers, and what changes meaning without breaking them.
const TOKENS: [&str; 28] = [
    "NaN",
    "Infinity",
    "-",
    "1e999",
    "1e-400",
    "-1",
    "0",
    "null",
    "true",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\\u0000",
    "\n",
    "99999999999999999999999999999999",
    "0.1",
    "\"avg\":1,",
    "é",
    "token=",
    "'--api-key', '",
    "https://u:p@",
    "hf_0123456789",
    "s3cr3t-of-the-spec",
    "79228162514264337593543950335",
];

#[test]
fn mutated_results_never_break_a_promise() {
    let corpus = corpus();
    // Inputs that were understood, and that were refused.
    let mut tally: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut tried = 0;
    fuzz::rounds(2000, |rng| {
        for input in &corpus {
            let mutated = mutate(rng, input, &corpus);
            tried += 1;
            for target in TARGETS.iter().filter(|target| RESULTS.contains(&target.name)) {
                let refused = usize::from(!(target.run)(&mutated));
                tally.entry(target.name).or_default()[refused] += 1;
            }
        }
        tried
    });
    println!("{tried} inputs, understood and refused: {tally:?}");
    // A run in which nothing was read, or nothing was refused, has tested nothing.
    assert_eq!(tally.len(), RESULTS.len());
    assert!(tally.values().flatten().all(|count| *count > 0), "{tally:?}");
}

/// Every fixture, and what fuzzing by coverage has found.
fn corpus() -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fixtures = here.join("../../crates/verdict/tests/fixtures");
    let mut folders = vec![fixtures.clone(), fixtures.join("telemetry")];
    folders.extend(RESULTS.map(|name| here.join("corpus").join(name)));
    let files = |folder: &PathBuf| {
        fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("a file").path())
    };
    let mut paths: Vec<_> = folders.iter().flat_map(files).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a file")).collect()
}

fn mutate(rng: &mut Rng, input: &[u8], corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.usize(1..4) {
        let from = rng.usize(0..=bytes.len());
        let to = from + rng.usize(0..=(bytes.len() - from).min(40));
        match rng.u8(0..16) {
            0 => bytes.truncate(from),
            1 => drop(bytes.drain(from..to)),
            2 => bytes[from..to].fill_with(|| rng.u8(..)),
            3 => drop(bytes.splice(from..to, rng.choice(TOKENS).unwrap_or_default().bytes())),
            4 => bytes.extend_from_within(from..to),
            5 => {
                let other = &corpus[rng.usize(0..corpus.len())];
                let start = rng.usize(0..other.len());
                let end = (start + rng.usize(0..200)).min(other.len());
                drop(bytes.splice(from..to, other[start..end].iter().copied()));
            }
            _ => exchange_number(rng, &mut bytes, from),
        }
    }
    bytes
}

/// Replaces the next number, which keeps the document well-formed: the mutation that reaches deepest.
fn exchange_number(rng: &mut Rng, bytes: &mut Vec<u8>, from: usize) {
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
        return;
    };
    let rest = &bytes[start..];
    let digits = rest
        .iter()
        .position(|b| !b.is_ascii_digit() && *b != b'.')
        .unwrap_or(rest.len());
    let number = match rng.u8(0..8) {
        0 => f64::from_bits(rng.u64(..)).to_string(),
        1 => rng.i64(..).to_string(),
        2 => format!("{:e}", f64::from_bits(rng.u64(..))),
        3 => "null".to_owned(),
        _ => rng.u16(..).to_string(),
    };
    bytes.splice(start..start + digits, number.bytes());
}
