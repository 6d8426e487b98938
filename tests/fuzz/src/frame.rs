//! What a log and a termination message hold between the runner's own lines.

use perfval_verdict::frame::{Framed, Payload, find, find_message, frame};
use perfval_verdict::{gpus, progress, workers};

const NONCE: &str = "fuzz-1";

pub fn run(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let lines = progress::find(&text, NONCE);
    if let Framed::Complete(record) = find_message(&text, NONCE) {
        assert_eq!(record.nonce, NONCE);
    }
    match find(&text, NONCE) {
        Framed::Complete(payload) => {
            assert_eq!(payload.record.nonce, NONCE);
            survives_another_frame(&payload);
            samples_of(payload);
            true
        }
        _ => !lines.is_empty(),
    }
}

/// The log of another pod is no place where a result changes.
fn survives_another_frame(payload: &Payload) {
    let again = frame(payload).expect("it came from JSON");
    match find(&again, NONCE) {
        Framed::Complete(read) => {
            assert_eq!(read.record, payload.record);
            assert_eq!(read.requests, payload.requests);
        }
        other => panic!("{other:?}"),
    }
}

/// Whoever may write a results `ConfigMap` may write any sample.
fn samples_of(mut payload: Payload) {
    workers::summarize(&payload.workers, payload.record.outcome.measured_seconds());
    gpus::summarize(
        0,
        [].into(),
        &payload.gpus,
        &payload.workers,
        payload.record.outcome.measured_seconds(),
    );
    payload.workers.iter_mut().for_each(|series| series.thin(8));
    payload.gpus.iter_mut().for_each(|series| series.thin(8));
}
