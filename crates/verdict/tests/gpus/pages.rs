//! Parts of a page that are read, and pages that are refused.

use perfval_verdict::gpus::dcgm::{PageError, read};
use perfval_verdict::gpus::{Field, GpuReading, GpuSample, GpuSeries, Recorder, summarize};

use super::{UUIDS, mark, page, workers};

#[test]
fn a_page_is_read_by_uuid() {
    let gpus = read(page().as_bytes()).expect("a good page");
    let uuids: Vec<&str> = gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    assert_eq!(uuids, UUIDS);
    let second = &gpus[1];
    assert_eq!(second.index, Some(1));
    assert!(second.pods.contains(&("perf".to_owned(), "pv-1-worker-1".to_owned())));
    for (field, value) in [
        (Field::SmClock, 1890),
        (Field::MemoryClock, 2619),
        (Field::Reasons, 0),
        (Field::Power, 648_011),
        (Field::Temperature, 55),
        (Field::Utilisation, 98),
        (Field::MemoryUsed, 71_902),
        (Field::Xid, 31),
        (Field::PcieReplays, 3),
        (Field::PcieGeneration, 5),
        (Field::ThermalViolation, 1_500_000_000),
        (Field::EngineActive, 98),
    ] {
        assert_eq!(second.reading.get(field), Some(value), "{field:?}");
    }
    assert_eq!(second.reading.get(Field::NvlinkRecoveries), None, "not exported");
}

#[test]
fn a_page_that_cannot_be_trusted_is_refused() {
    let page = page();
    let refused = |text: &str| read(text.as_bytes()).expect_err("refused");
    assert!(matches!(refused(&page[..page.len() / 2]), PageError::Cut));
    assert!(matches!(refused(""), PageError::NoGpus));
    assert!(matches!(refused("<html>\n</html>\n"), PageError::Malformed(1)));
    assert!(
        matches!(refused(&page.replace("DCGM_FI", "DCGM_EX")), PageError::NoGpus),
        "renamed"
    );
    assert!(matches!(refused(&page.replace("UUID", "uuid")), PageError::NoGpus));
    assert!(matches!(
        refused(&page.replace("\",device=", ",device=")),
        PageError::Malformed(_)
    ));
    assert!(matches!(refused(&"# a comment\n".repeat(400_000)), PageError::TooLarge));
    assert!(
        matches!(refused(&"a".repeat(10_000)), PageError::Malformed(1)),
        "one endless line"
    );
    assert!(matches!(read(&b"\xff\xfe\n"[..]), Err(PageError::Malformed(1))));
    let lines = (0..65).map(|n| format!("DCGM_FI_DEV_SM_CLOCK{{UUID=\"GPU-{n}\"}} 1\n"));
    let many = lines.collect::<Vec<_>>().concat();
    assert!(matches!(refused(&many), PageError::TooManyGpus));
}

#[test]
fn a_value_that_cannot_be_is_left_out() {
    for value in [
        "NaN",
        "-1",
        "9223372036854775794",
        "1e300",
        "+Inf",
        "ERROR - FAILED TO CONVERT TO STRING",
    ] {
        let page = page().replace("} 1890", &format!("}} {value}"));
        let gpus = read(page.as_bytes()).expect("a page");
        assert_eq!(gpus[1].reading.get(Field::SmClock), None, "{value}");
        assert_eq!(gpus[1].reading.get(Field::MemoryClock), Some(2619), "{value}");
    }
}

#[test]
fn labels_may_hold_anything_and_slices_do_not_count() {
    let text = concat!(
        "DCGM_FI_DEV_SM_CLOCK{modelName=\"a \\\"b\\\", }{ c\\\\\" , UUID=\"GPU-1\",} 100 1700000000\n",
        "DCGM_FI_DEV_SM_CLOCK{UUID=\"GPU-1\",GPU_I_ID=\"7\"} 999\n",
        "DCGM_FI_DEV_SM_CLOCK{UUID=\"GPU-../1\"} 5\n",
    );
    let gpus = read(text.as_bytes()).expect("a page");
    assert_eq!(gpus.len(), 1);
    assert_eq!(gpus[0].reading.get(Field::SmClock), Some(100));
}

#[test]
fn counters_that_go_backwards_are_no_growth() {
    let page = |replays: i64, xid: i64| {
        let uuid = UUIDS[0];
        let text = format!(
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{UUID=\"{uuid}\"}} {replays}\nDCGM_FI_DEV_XID_ERRORS{{UUID=\"{uuid}\"}} {xid}\n"
        );
        read(text.as_bytes()).expect("a page")
    };
    let mut recorder = Recorder::new("perf");
    for (second, replays) in (0..).zip([500, 100, 100, 40, 45]) {
        recorder.add(second, page(replays, if second < 3 { 0 } else { 94 }));
    }
    let (pages, errors, series) = recorder.finish();
    assert_eq!(
        (pages, series[0].samples.len()),
        (5, 4),
        "a page that repeats itself is no reading"
    );
    let record = summarize(pages, errors, &series, &workers(5, 0, 5), None);
    assert_eq!(record.gpus[0].pcie_replays, Some(mark(5, 4)));
    assert_eq!(record.gpus[0].xid, Some(mark(94, 3)));
}

/// DCGM takes a value every ten seconds, and the exporter fetches it every ten seconds: it is up to twenty seconds old.
#[test]
fn without_a_series_of_the_load_a_value_counts_only_if_it_is_younger_than_the_phase() {
    let mut recorder = Recorder::new("perf");
    for second in (0..100).step_by(10) {
        // The value of 20 s may be from before the phase, which begins at 5 s.
        let clock = if second <= 20 { 300 + second } else { 1900 + second };
        let text = format!("DCGM_FI_DEV_SM_CLOCK{{UUID=\"{}\"}} {clock}\n", UUIDS[0]);
        recorder.add(second, read(text.as_bytes()).expect("a page"));
    }
    let (pages, errors, series) = recorder.finish();
    let record = summarize(pages, errors, &series, &workers(100, 5, 95), None);
    // The pages of 30 to 90 s.
    assert_eq!((record.gpus[0].readings, record.gpus[0].sm_mhz), (7, Some(1960)));
}

#[test]
fn recordings_come_back_as_they_were_stored() {
    let gpus = read(page().as_bytes()).expect("a page");
    let mut recorder = Recorder::new("elsewhere");
    recorder.add(3, gpus);
    let (_, _, mut series) = recorder.finish();
    assert_eq!(series[0].foreign_pods, 1, "counted, not named");
    assert!(series[0].pods.is_empty());
    let text = serde_json::to_string(&series).expect("JSON");
    let back: Vec<GpuSeries> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(back, series);
    // A later version has more fields, an earlier one less.
    let longer: GpuReading = serde_json::from_str(&format!("[1900{}]", ",5".repeat(40))).expect("a reading");
    assert_eq!(longer.get(Field::SmClock), Some(1900));
    let shorter: GpuReading = serde_json::from_str("[1900]").expect("a reading");
    assert_eq!(shorter.get(Field::EngineActive), None);

    let sample = series[0].samples[0];
    series[0].samples = (0..100).map(|second| GpuSample(second, sample.1)).collect();
    series[0].samples[4].1.set(Field::Reasons, 0x40);
    series[0].thin(10);
    assert_eq!(series[0].samples.len(), 10);
    assert_eq!(
        series[0].samples[0].1.get(Field::Reasons),
        Some(0x44),
        "a reason survives"
    );
}
