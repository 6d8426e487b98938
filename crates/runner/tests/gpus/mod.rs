//! The GPUs during a trial, as the exporter of the node shows them.

use std::fs;

use perfval_verdict::gpus::Field;

use crate::UNTIL_DONE;
use crate::rig::{PageServer, Rig, fixture, page};

#[test]
fn the_gpus_are_read_from_the_exporter_meanwhile() {
    let dump = fixture("telemetry/dcgm-exporter.txt");
    // Every second page repeats the one before, as from an exporter that collects less often than it is read.
    let exporter =
        PageServer::exporter(move |asked| page(&dump.replace("} 651.274000", &format!("}} {}", 600 + asked / 2))));
    let rig = Rig::new(UNTIL_DONE)
        .option("--gpu-metrics", &exporter.url())
        .option("--namespace", "perf");
    let running = rig.start(&[]);
    exporter.wait_until_asked(4);
    fs::write(rig.dir().join("done"), "").unwrap();
    let ended = running.end();
    assert_eq!(ended.code, 0);
    let payload = ended.payload();
    let record = payload.record.gpus.as_ref().expect("a record of the GPUs");
    assert!(record.pages >= 4 && record.errors.is_empty(), "{record:?}");
    let uuids: Vec<&str> = record.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    assert_eq!(
        uuids,
        payload.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect::<Vec<_>>()
    );
    assert_eq!(uuids.len(), 2);
    assert!(record.gpus[1].pods.contains("pv-1-worker-1"));
    assert_eq!(record.gpus[1].xid.map(|xid| (xid.value, xid.at)), Some((31, None)));
    let power: Vec<_> = payload.gpus[0]
        .samples
        .iter()
        .map(|sample| sample.1.get(Field::Power))
        .collect();
    assert!(power.starts_with(&[Some(600_000), Some(601_000)]), "{power:?}");
    assert_eq!(
        ended.message().gpus.as_ref(),
        Some(record),
        "a small record is the same in both"
    );
}

#[test]
fn a_false_exporter_costs_only_its_evidence() {
    let dump = fixture("telemetry/dcgm-exporter.txt");
    let elsewhere = "HTTP/1.1 302 Found\r\nlocation: http://127.0.9.9/\r\ncontent-length: 0\r\n\r\n";
    let exporter = PageServer::exporter(move |asked| match asked {
        0 => elsewhere.to_owned(),
        1 => page("<html></html>\n"),
        // In long lines: a busy machine has to read it within the runner's two seconds.
        2 => page(&format!("# {}\n", "nothing ".repeat(125)).repeat(4500)),
        3 => page(&dump).replacen("content-length: ", "content-length: 9", 1),
        _ => "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".to_owned(),
    });
    let rig = Rig::new(UNTIL_DONE).option("--gpu-metrics", &exporter.url());
    let running = rig.start(&[]);
    exporter.wait_until_asked(5);
    fs::write(rig.dir().join("done"), "").unwrap();
    let ended = running.end();
    assert_eq!(ended.code, 0);
    let record = ended.payload().record.gpus.expect("a record of the GPUs");
    assert_eq!((record.pages, record.gpus.len()), (0, 0), "{record:?}");
    for words in ["answered 302", "text format", "larger than", "500"] {
        assert!(
            record.errors.keys().any(|why| why.contains(words)),
            "{words}: {record:?}"
        );
    }
    assert_eq!(record.errors.len(), 5, "and one that broke off: {record:?}");
}

#[test]
fn without_an_address_no_gpu_is_read() {
    let ended = Rig::new("cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json").run(&[]);
    let payload = ended.payload();
    assert!(payload.record.gpus.is_none() && payload.gpus.is_empty());
}
