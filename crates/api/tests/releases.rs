//! What earlier releases stored, and what later ones may store.

use std::fs;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use perfval_api::{OperatorState, PerfValidation, PerfValidationStatus, Phase};
use serde_json::{Value, json};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files
}

/// Every object of every release, and of the version in development: of this only those that other tests use, until its freeze
/// writes all.
fn stored() -> Vec<(PathBuf, Value)> {
    let releases = files(Path::new("tests/fixtures"));
    let read = |path: PathBuf| {
        let object = serde_json::from_str(&fs::read_to_string(&path).expect("it can be read")).expect("it is JSON");
        (path, object)
    };
    releases.iter().flat_map(|release| files(release)).map(read).collect()
}

/// Those of the releases that are out; the others change with the code.
fn released() -> Vec<(PathBuf, Value)> {
    let in_development = format!("tests/fixtures/v{}", VERSION.trim_end_matches("-dev"));
    let mut stored = stored();
    stored.retain(|(path, _)| !path.starts_with(&in_development));
    stored
}

/// Where `whole` lacks something that `part` has.
fn missing(part: &Value, whole: &Value, at: &str) -> Option<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part.iter().find_map(|(key, value)| {
            let at = format!("{at}.{key}");
            whole
                .get(key)
                .map_or_else(|| Some(at.clone()), |other| missing(value, other, &at))
        }),
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => {
            let mut both = part.iter().zip(whole).enumerate();
            both.find_map(|(index, (part, whole))| missing(part, whole, &format!("{at}[{index}]")))
        }
        (Value::String(part), Value::String(whole)) if at == ".status.operatorState.tables" => {
            missing(&unpacked(part), &unpacked(whole), at)
        }
        (part, whole) => (part != whole).then(|| at.to_owned()),
    }
}

fn unpacked(text: &str) -> Value {
    let ByteString(bytes) = serde_json::from_value(json!(text)).expect("base64");
    serde_json::from_reader(GzDecoder::new(&*bytes)).expect("JSON")
}

#[test]
fn nothing_that_an_earlier_release_stored_is_lost() {
    let released = released();
    assert_eq!(
        released.is_empty(),
        VERSION.starts_with("0.1.0"),
        "v0.1.0 is the first release"
    );
    for (path, object) in released {
        let read: PerfValidation =
            serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(missing(&object, &json!(read), ""), None, "{}", path.display());
    }
}

#[test]
fn fields_of_a_newer_version_are_skipped() {
    for (path, mut object) in stored() {
        let read = |object: Value| -> PerfValidation {
            serde_json::from_value(object).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let before = read(object.clone());
        for pointer in [
            "/spec",
            "/spec/benchmark",
            "/status",
            "/status/run",
            "/status/operatorState",
        ] {
            if let Some(Value::Object(fields)) = object.pointer_mut(pointer) {
                fields.insert("fromTheFuture".into(), json!({"invented": [1, {"a": "b"}]}));
            }
        }
        assert_eq!(read(object), before);
    }
    assert_eq!(
        json!(PerfValidationStatus::default()),
        json!({"observedGeneration": 0}),
        "no field is made up"
    );
}

fn packed(tables: &Value) -> ByteString {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut gzip, tables).expect("JSON");
    ByteString(gzip.finish().expect("gzip"))
}

#[test]
fn the_tables_of_the_operator_state_are_stored_as_one_text() {
    let tables = json!({"history": [], "trials": [{"number": 7, "startedAt": "2026-11-20T10:00:00Z"}]});
    let stored = json!({"observedGeneration": 3, "operatorState": {"resizes": 2, "tables": packed(&tables)}});
    let read: PerfValidationStatus = serde_json::from_value(stored).expect("a status");
    assert_eq!((read.state.resizes, read.state.trials[0].number), (2, 7));
    let written = json!(read);
    let fields: Vec<&String> = written["operatorState"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(fields, ["resizes", "tables"]);
    let again: PerfValidationStatus = serde_json::from_value(written).expect("a status");
    assert_eq!(again, read);
}

#[test]
fn a_damaged_operator_state_is_read_as_an_empty_one() {
    for damage in [
        json!("text"),
        json!([1]),
        json!({"resizes": "many"}),
        json!({"trials": {}}),
        json!({"tables": 5}),
        json!({"tables": "not base64"}),
        json!({"tables": "bm90IGd6aXA="}),
        json!({"tables": packed(&json!({"trials": {}}))}),
        json!({"tables": packed(&json!([1]))}),
        json!({"tables": packed(&json!({"trials": [{"number": 1, "startedAt": "2026-11-20T10:00:00Z"}], "unknown": " ".repeat(1 << 20)}))}),
    ] {
        let read: PerfValidationStatus =
            serde_json::from_value(json!({"observedGeneration": 3, "phase": "Deploying", "operatorState": damage}))
                .expect("the rest of the status is sound");
        assert_eq!((read.observed_generation, read.phase), (3, Some(Phase::Deploying)));
        assert_eq!(*read.state, OperatorState::default(), "{damage}");
    }
}

#[test]
fn unknown_values_of_an_enum_are_refused() {
    let passed = fs::read_to_string("tests/fixtures/v0.1.0/passed.json").unwrap();
    for pointer in [
        "/status/phase",
        "/status/verdict",
        "/status/trials/0/outcome",
        "/spec/workload/dynamo/routerMode",
        "/spec/gates/0/metric",
    ] {
        let mut object: Value = serde_json::from_str(&passed).unwrap();
        *object.pointer_mut(pointer).unwrap() = json!("FromTheFuture");
        let error = serde_json::from_value::<PerfValidation>(object)
            .unwrap_err()
            .to_string();
        assert!(error.contains("FromTheFuture"), "{pointer}: {error}");
    }
}
