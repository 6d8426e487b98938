//! The in-toto statement of a report: the digests of its files, and the verdict that they show. A tool such as cosign can
//! sign it (<https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>).

use perfval_api::{Environment, Verdict};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::facts::Facts;

/// Name of the statement in the folder of a report.
pub const STATEMENT: &str = "statement.intoto.json";
const KIND: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://perfvalidation.dev/verdict/v1";
/// A path in a name would let a statement point at files outside of its folder.
const SEPARATORS: [char; 2] = ['/', '\\'];

/// File of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder of the report.
    pub name: &'static str,
    /// All of it.
    pub content: String,
}

/// Statement about the files of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
    /// Run and verdict that the files show.
    pub predicate: Predicate,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Subject {
    name: String,
    digest: Digests,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Digests {
    sha256: String,
}

/// Run and verdict of a statement.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Predicate {
    /// `namespace/name` of the validation.
    pub validation: String,
    /// Number of the run.
    pub run: Option<i64>,
    /// Verdict; absent while the run continues.
    pub verdict: Option<Verdict>,
    /// Reason of the verdict.
    pub reason: Option<String>,
    /// Node under test.
    pub node: Option<String>,
    /// Model, image and versions of the run.
    pub environment: Option<Environment>,
    /// Digest of the results ConfigMap, as `status.resultsRef.sha256` has it.
    pub results_sha256: Option<String>,
}

/// The statement about a report with these files.
pub(crate) fn write(facts: &Facts, files: &[File]) -> String {
    let status = &facts.status;
    let statement = Statement {
        kind: KIND.to_owned(),
        subject: files.iter().map(subject).collect(),
        predicate_type: PREDICATE.to_owned(),
        predicate: Predicate {
            validation: facts.title(),
            run: status.run.as_ref().map(|run| run.number),
            verdict: status.verdict,
            reason: status.reason.clone(),
            node: status.placement.as_ref().map(|placement| placement.node.clone()),
            environment: status.state.environment.clone(),
            results_sha256: facts.saved.as_ref().map(|saved| saved.sha256.clone()),
        },
    };
    let text = serde_json::to_string_pretty(&statement).unwrap_or_default();
    format!("{text}\n")
}

fn subject(file: &File) -> Subject {
    let sha256 = sha256(file.content.as_bytes());
    Subject {
        name: file.name.to_owned(),
        digest: Digests { sha256 },
    }
}

/// SHA-256 of a file, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

impl Statement {
    /// Reads a statement of this program.
    pub fn read(text: &[u8]) -> Result<Self, Error> {
        let statement: Self = serde_json::from_slice(text).map_err(|error| Error::Statement(error.to_string()))?;
        if statement.kind != KIND || statement.predicate_type != PREDICATE {
            let why = format!("its types are {} and {}", statement.kind, statement.predicate_type);
            return Err(Error::Statement(why));
        }
        if statement.subject.is_empty() {
            return Err(Error::Statement("it lists no file".to_owned()));
        }
        match statement.subject.iter().find(|file| file.name.contains(SEPARATORS)) {
            Some(file) => Err(Error::Statement(format!("{:?} is not the name of a file", file.name))),
            None => Ok(statement),
        }
    }

    /// Names of the files, each with its SHA-256, in the order of the statement.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.subject.iter();
        files.map(|file| (file.name.as_str(), file.digest.sha256.as_str()))
    }
}
