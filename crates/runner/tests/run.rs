//! The runner against a scripted `aiperf`: one record arrives for each of its behaviours, with a description.

mod cpu;
mod ending;
mod gpus;
mod hostile;
mod requests;
mod rig;

use std::fs;

use perfval_api::{Metric, Statistic};
use perfval_verdict::frame::{Failure, Outcome, Part};

use rig::{Rig, fixture};

/// The library notes the commit while AIPerf runs; a cache of a tenant may contain anything.
#[test]
fn the_commit_that_aiperf_loaded_is_recorded() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let script = "refs=\"$HF_HUB_CACHE\"/models--lab--tiny/refs; mkdir -p \"$refs\"; echo \"$NOTED\" >\"$refs\"/main
cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json";
    let noted = |commit: &str, arguments: &[&str]| {
        let rig = Rig::new(script).variable("NOTED", commit);
        let hub = rig.dir().join("hub").to_str().expect("UTF-8").to_owned();
        rig.variable("HF_HUB_CACHE", &hub)
            .run(arguments)
            .payload()
            .record
            .commit
    };
    let model = ["--model", "lab/tiny"];
    assert_eq!(noted(COMMIT, &model).as_deref(), Some(COMMIT));
    assert_eq!(noted(COMMIT, &["--model", "lab/other"]), None);
    assert_eq!(noted(COMMIT, &[]), None);
    for forged in [
        "main",
        &"0".repeat(10_000),
        "\u{1b}[2J3456789abcdef0123456789abcdef01234567",
    ] {
        assert_eq!(noted(forged, &model), None, "{forged}");
    }
}

#[test]
fn a_success_is_reported_last_and_twice() {
    let ended = Rig::new("cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json; echo working; echo warned >&2").run(&[]);
    assert_eq!(ended.code, 0);
    let payload = ended.payload();
    let Outcome::Report(report) = &payload.record.outcome else {
        panic!("{:?}", payload.record)
    };
    assert_eq!(report.succeeded, 768);
    assert_eq!(payload.record, ended.message(), "a small record is the same in both");
    let original: serde_json::Value = serde_json::from_str(&fixture("aiperf-success.json")).unwrap();
    let carried: serde_json::Value = serde_json::from_str(payload.aiperf.unwrap().get()).unwrap();
    assert_eq!(carried, original);
    assert!(
        ended.out.starts_with("working\n=====PERFVAL-RESULT-BEGIN"),
        "{}",
        &ended.out[..80]
    );
    assert!(
        ended.out.trim_end().ends_with("====="),
        "the frame is the last thing in the log"
    );
    assert!(ended.err.contains("warned"));
}

#[test]
fn every_argument_reaches_aiperf_as_it_is() {
    let rig = Rig::new("for word in \"$@\"; do echo \"<$word>\"; done");
    let ended = rig.run(&["profile", "--extra-inputs", "a b:$HOME", "", "; exit 9", "--nonce", "*"]);
    assert!(
        ended
            .out
            .starts_with("<profile>\n<--extra-inputs>\n<a b:$HOME>\n<>\n<; exit 9>\n<--nonce>\n<*>\n"),
        "{}",
        ended.out
    );
}

#[test]
fn gated_numbers_are_in_the_termination_message() {
    let rig = Rig::new("cp \"$DIR\"/large \"$DIR\"/profile_export_aiperf.json").gated("RequestLatency/P25");
    let mut export: serde_json::Value = serde_json::from_str(&fixture("aiperf-success.json")).unwrap();
    let error = |n| serde_json::json!({"error_details": {"type": n, "message": "\"".repeat(200)}, "count": 1});
    export["error_summary"] = ["a", "b", "c", "d", "e"].map(error).to_vec().into();
    fs::write(rig.dir().join("large"), export.to_string()).unwrap();
    let ended = rig.run(&[]);
    let record = ended.message();
    assert!(record.abridged.contains(&Part::Statistics), "{record:?}");
    let Outcome::Report(report) = &record.outcome else {
        panic!("{record:?}")
    };
    assert!(report.value(Metric::RequestLatency, Statistic::P25).is_some());
    assert!(report.value(Metric::RequestLatency, Statistic::P75).is_none());
    assert!(ended.payload().record.abridged.is_empty(), "the log holds all");
}

#[test]
fn an_export_of_an_earlier_run_is_not_taken() {
    let rig = Rig::new("exit 0");
    fs::write(
        rig.dir().join("profile_export_aiperf.json"),
        fixture("aiperf-success.json"),
    )
    .unwrap();
    let ended = rig.run(&[]);
    assert_eq!(ended.code, 1);
    assert!(matches!(ended.failure(), Failure::NoExport { .. }));
}

#[test]
fn times_of_a_frontend_of_an_earlier_run_are_not_taken() {
    let rig = Rig::new("cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json");
    let earlier = rig.dir().join("server_metrics_export.json");
    fs::write(earlier, fixture("server-metrics.json")).expect("written");
    let record = rig.run(&[]).payload().record;
    let Outcome::Report(report) = &record.outcome else {
        panic!("{record:?}")
    };
    assert_eq!(report.frontend.request_ms, None);
}

#[test]
fn an_end_without_a_result_has_its_exit_code_and_its_last_words() {
    let text = str::to_owned;
    let nothing = "printf '\\033[33m╭─ Exit ─╮\\033[0m\\n│ nothing to export │\\n'";
    // The export beside an error is not believed.
    let beside = "cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json; echo 'disk full'; exit 1";
    let unloadable = "echo 'tokenizer not loadable' >&2; exit 7";
    let endless = "printf '%0900d\\n' 7; exit 1";
    let (no_export, full) = (text("Exit / nothing to export"), text("disk full"));
    let not_loadable = text("tokenizer not loadable");
    let beginning = "0".repeat(597) + "…";
    for (script, code, failure) in [
        (nothing, 1, Failure::NoExport { tail: no_export }),
        (beside, 1, Failure::Exited { tail: full }),
        (unloadable, 7, Failure::Exited { tail: not_loadable }),
        (endless, 1, Failure::Exited { tail: beginning }),
        ("kill -9 $$", 137, Failure::Killed { signal: 9 }),
    ] {
        let ended = Rig::new(script).run(&[]);
        assert_eq!((ended.code, ended.failure()), (code, failure), "{script}");
    }
}

#[test]
fn a_cut_export_and_one_of_an_absurd_size_are_malformed() {
    for (command, why) in [
        ("head -c 20000 \"$EXPORT\"", "EOF"),
        ("head -c 9000000 /dev/zero", "larger"),
    ] {
        let ended = Rig::new(&format!("{command} > \"$DIR\"/profile_export_aiperf.json")).run(&[]);
        assert_eq!(ended.code, 1, "{command}");
        assert!(matches!(ended.failure(), Failure::Malformed { message } if message.contains(why)));
    }
}

#[test]
fn a_run_in_which_all_failed_names_the_errors() {
    let rig = Rig::new(
        "cat > \"$DIR\"/profile_export.jsonl <<'END'\n{\"metadata\":{\"benchmark_phase\":\"warmup\"},\"metrics\":{}}\n{\"metadata\":{\"benchmark_phase\":\"profiling\"},\"error\":{\"code\":404,\"type\":\"Not Found\",\"message\":\"Model not found\"}}\n{\"metadata\":{\"benchmark_phase\":\"profiling\"},\"error\":{\"code\":404,\"type\":\"Not Found\",\"message\":\"Model not found\"}}\nEND\nexit 1",
    );
    let ended = rig.run(&[]);
    assert_eq!(ended.code, 1);
    let Failure::AllFailed { failed, errors } = ended.failure() else {
        panic!("{:?}", ended.failure())
    };
    assert_eq!((failed, errors[0].code, errors[0].count), (2, Some(404), 2));
}

#[test]
fn a_command_that_is_not_there_is_127() {
    let rig = Rig::new("").command("no-such-aiperf");
    let ended = rig.run(&[]);
    assert_eq!(ended.code, 127);
    assert!(matches!(ended.failure(), Failure::NotExecutable { message } if message.contains("no-such-aiperf")));
}

#[test]
fn an_artifact_directory_that_cannot_be_is_2() {
    let rig = Rig::new("");
    let file = rig.dir().join("file");
    fs::write(&file, "").unwrap();
    let ended = rig.artifacts(&file.join("below")).run(&[]);
    assert_eq!(ended.code, 2);
    assert!(matches!(ended.failure(), Failure::Misconfigured { message } if message.contains("below")));
}

#[test]
fn an_unwritable_termination_log_leaves_the_frame() {
    let rig = Rig::new("cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json");
    fs::create_dir(rig.dir().join("termination")).unwrap();
    let ended = rig.run(&[]);
    assert_eq!(ended.code, 0);
    assert!(matches!(ended.payload().record.outcome, Outcome::Report(_)));
    assert!(ended.err.contains("cannot write"));
}

#[test]
fn a_huge_log_is_cut_in_the_middle() {
    let line = "09:17:12.127 ERROR    Request failed: Connection refused";
    let script = format!(
        "echo first; yes '{line}' | head -c 50000000; echo; echo last; cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json"
    );
    let ended = Rig::new(&script).run(&[]);
    assert_eq!(ended.code, 0);
    assert!(ended.out.len() < 1_000_000, "{} bytes", ended.out.len());
    assert!(ended.out.starts_with("first\n") && ended.out.contains("\nlast\n"));
    assert!(ended.out.contains("bytes of AIPerf's output are left out"));
    assert!(matches!(ended.payload().record.outcome, Outcome::Report(_)));
}

#[test]
fn output_without_a_line_end_does_not_hide_the_result() {
    let ended = Rig::new("cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json; printf unfinished").run(&[]);
    assert!(matches!(ended.payload().record.outcome, Outcome::Report(_)));
}

#[test]
fn wrong_arguments_are_2() {
    let ended = Rig::new("").gated("TimeToFirstToken/P42").run(&[]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("P42"), "{}", ended.err);
}

#[test]
fn workers_are_sampled_and_silence_is_counted() {
    // Ends once the rig's workers were asked often enough.
    let rig = Rig::new(
        "while ! test -e \"$DIR\"/enough; do sleep 0.05; done; cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json",
    );
    let workers = rig::PageServer::workers();
    let hosts = ["127.0.8.1", "127.0.8.2", "127.0.8.3"].map(str::to_owned);
    let rig = rig
        .workers(&hosts, workers.port())
        .option("--workers-host", "no-such-host.invalid");
    let running = rig.start(&[]);
    // Each worker has a thread of its own: those of the others may be two looks behind.
    workers.wait_until_asked(6);
    fs::write(rig.dir().join("enough"), "").unwrap();
    let ended = running.end();

    let record = ended.message();
    let [healthy, hanging, gone] = &record.workers[..] else {
        panic!("{record:?}")
    };
    assert_eq!(healthy.address, "127.0.8.1");
    assert!(healthy.samples >= 4 && healthy.timeouts == 0, "{healthy:?}");
    assert_eq!(healthy.served, (healthy.samples - 1) * 10, "ten more at every look");
    assert_eq!(healthy.peak_in_flight, 15);
    assert!(hanging.timeouts >= 1 && hanging.samples == 0, "{hanging:?}");
    assert!(gone.failures >= 4 && gone.timeouts == 0, "{gone:?}");
    assert!(
        record.scrape_errors.keys().any(|e| e.contains("no-such-host")),
        "{:?}",
        record.scrape_errors
    );
    let logged = ended.payload().workers;
    assert_eq!(logged.len(), 3);
    assert!(logged[0].samples.len() >= 4);
}

#[test]
fn install_gives_a_program_that_runs() {
    let rig = Rig::new("");
    let done = rig::runner().args(["install"]).arg(rig.dir()).output().unwrap();
    assert!(done.status.success());
    let copy = std::process::Command::new(rig.dir().join("perfval-runner"))
        .arg("--version")
        .output()
        .unwrap();
    assert!(String::from_utf8(copy.stdout).unwrap().starts_with("perfval-runner "));

    let done = rig::runner()
        .args(["install", "/proc/no-such-directory"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
}

/// A script that ends on a signal of the test.
const UNTIL_DONE: &str = "touch \"$DIR\"/up; while [ ! -e \"$DIR\"/done ]; do sleep 0.05; done; \
                          cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json";

#[test]
fn a_running_trial_reports_its_progress() {
    let records = r#"echo '{"metadata":{"benchmark_phase":"profiling","request_start_ns":1,"request_end_ns":2000000001},"metrics":{"output_sequence_length":{"value":50}}}' >> "$DIR"/profile_export.jsonl"#;
    let rest = r#"printf '{"metadata"' >> "$DIR"/profile_export.jsonl
        while ! [ -e "$DIR"/seen ]; do sleep 0.05; done
        cp "$EXPORT" "$DIR"/profile_export_aiperf.json"#;
    let rig = Rig::new(&format!("{records}\n{records}\n{rest}"));
    // Of an earlier run: no evidence about this one.
    fs::write(rig.dir().join("profile_export.jsonl"), "old\n".repeat(9)).expect("written");
    let running = rig.start(&[]);
    running.wait_for_text("stdout", "perfval-progress");
    fs::write(rig.dir().join("seen"), "").expect("written");
    let ended = running.end();
    let lines = perfval_verdict::progress::find(&ended.out, "rig-1");
    let progress = lines.first().expect("a line");
    assert_eq!((progress.requests, progress.errors, progress.seconds), (2, 0, 2));
    assert_eq!(progress.tokens_per_second, Some(50));
    assert_eq!(lines.len(), 1, "nothing new, no line: {lines:?}");
    assert_eq!(ended.code, 0);
    ended.payload();
}
