//! The ConfigMap with everything measured.

use std::collections::BTreeMap;

use perfval_api::{Reason, Verdict, Why};
use perfval_run::{Run, build};

use super::{settings, typical};

/// Why the run of these tests has its verdict.
pub fn why() -> Why {
    Why::new(Reason::GatesMet, "4/8 GPUs on n1: fast")
}

#[test]
fn results_are_the_same_for_the_same_content_and_never_too_big() {
    let object = typical();
    let settings = settings();
    let run = Run::new(&object, &settings);
    // Hex of a hash chain: it packs to about half, so three of them do not fit.
    let noise = |seed: u64| -> String {
        let mut state = seed;
        (0..600 * 1024)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                char::from_digit(u32::try_from(state >> 60).unwrap(), 16).unwrap()
            })
            .collect()
    };
    let payloads: BTreeMap<i64, String> = (1..=3_i64).map(|trial| (trial, noise(trial.unsigned_abs()))).collect();
    let results = build::results(&run, Verdict::Passed, &why(), &payloads);
    assert_eq!(results, build::results(&run, Verdict::Passed, &why(), &payloads));
    let size: usize = results.data.iter().flatten().map(|(_, text)| text.len()).sum::<usize>()
        + results
            .binary_data
            .iter()
            .flatten()
            .map(|(_, bytes)| bytes.0.len())
            .sum::<usize>();
    assert!(size <= 900 * 1024, "{size}");
    let kept: Vec<_> = results.binary_data.as_ref().unwrap().keys().collect();
    assert_eq!(kept, ["trial-1.json.gz", "trial-2.json.gz"]);
    assert!(results.data.as_ref().unwrap()["omitted.txt"].starts_with("trial 3: "));

    let summary = &results.data.as_ref().unwrap()["summary.json"];
    assert!(
        summary.contains(r#""verdict": "Passed""#) && summary.contains("GatesMet"),
        "{summary}"
    );

    let annotated = &results.metadata.annotations.as_ref().unwrap()["perfvalidation.dev/sha256"];
    assert_eq!(*annotated, build::results_sha256(&results));
    let mut tampered = results.clone();
    tampered
        .data
        .as_mut()
        .unwrap()
        .insert("summary.json".into(), "{}".into());
    assert_ne!(*annotated, build::results_sha256(&tampered));
}

#[test]
fn a_payload_can_be_read_back() {
    let object = typical();
    let payload = "{\"record\":1}".repeat(100);
    let results = build::results(
        &Run::new(&object, &settings()),
        Verdict::Passed,
        &why(),
        &BTreeMap::from([(7, payload.clone())]),
    );
    let packed = &results.binary_data.unwrap()["trial-7.json.gz"].0;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut text).unwrap();
    assert_eq!(text, payload);
}
