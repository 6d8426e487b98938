use super::*;

fn record(holder: &str, seconds: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(seconds),
        ..LeaseSpec::default()
    }
}

#[test]
fn a_record_is_judged_by_its_holder_and_our_own_clock() {
    let t = Instant::now();
    let at = |seconds| t + Duration::from_secs(seconds);
    let unnamed = LeaseSpec::default();
    let (released, mine, theirs) = (record("", 1), record("me", 15), record("them", 15));
    let no_duration = LeaseSpec {
        lease_duration_seconds: None,
        ..theirs.clone()
    };
    let negative = record("them", -3);
    let table = [
        ("no one ever led", None, 0, None),
        ("a record without holder", Some(&unnamed), 0, None),
        ("released", Some(&released), 0, None),
        ("ours", Some(&mine), 3, None),
        ("ours, long silent: still no one else's", Some(&mine), 300, None),
        ("theirs, just seen", Some(&theirs), 0, Some(at(15))),
        ("theirs, nearly expired", Some(&theirs), 14, Some(at(15))),
        ("theirs, expired", Some(&theirs), 15, None),
        ("theirs, without duration", Some(&no_duration), 14, Some(at(15))),
        ("theirs, with a senseless duration", Some(&negative), 14, Some(at(15))),
    ];
    for (case, lease, elapsed, expected) in table {
        assert_eq!(held_until(lease, "me", t, at(elapsed)), expected, "{case}");
    }
}

#[test]
fn renewing_keeps_the_time_of_acquisition_and_taking_over_counts_a_transition() {
    let early = MicroTime(Timestamp::UNIX_EPOCH);
    let first = next_record(None, "lease", "me", early.clone());
    let renewed = next_record(Some(&first), "lease", "me", micro(Utc::now()));
    let taken = next_record(Some(&renewed), "lease", "them", micro(Utc::now()));
    let spec = |lease: &Lease| lease.spec.clone().unwrap();
    assert_eq!(spec(&first).lease_transitions, Some(0));
    assert_eq!(spec(&renewed).acquire_time, Some(early));
    assert_eq!(spec(&renewed).lease_transitions, Some(0));
    assert_ne!(spec(&taken).acquire_time, spec(&renewed).acquire_time);
    assert_eq!(
        (spec(&taken).lease_transitions, spec(&taken).holder_identity),
        (Some(1), Some("them".to_owned()))
    );
}
