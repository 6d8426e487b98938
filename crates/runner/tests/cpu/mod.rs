//! CPU of the load generator and of the node under test.

use std::fs;

use perfval_verdict::frame::Outcome;

use super::rig::{PATIENCE, PageServer, Rig, wait_until};

#[test]
fn the_cpu_of_the_generator_is_recorded_from_its_cgroup() {
    // Half a CPU, reached all the time: five seconds of it, and two for AIPerf's flush.
    let script = r#"
for second in 1 2 3 4 5 6 7 8; do
  echo "usage_usec ${second}500000
nr_periods ${second}0
nr_throttled ${second}0" >"$DIR/new" && mv "$DIR/new" "$DIR/cpu.stat"
  echo "some avg10=90.00 total=${second}000000" >"$DIR/new" && mv "$DIR/new" "$DIR/cpu.pressure"
  sleep 1
done
cp "$EXPORT" "$DIR"/profile_export_aiperf.json"#;
    let rig = Rig::new(script);
    fs::write(rig.dir().join("cpu.max"), "50000 100000\n").unwrap();
    let folder = rig.dir().to_str().unwrap().to_owned();
    let payload = rig.option("--cgroup", &folder).run(&[]).payload();
    let Outcome::Report(report) = &payload.record.outcome else {
        panic!("{:?}", payload.record)
    };
    let cpu = report.generator.cpu.as_ref().expect("the counters of the folder");
    assert!(cpu.seconds >= 3, "{cpu:?}");
    assert_eq!(cpu.limit, Some("0.5".parse().unwrap()));
    assert_eq!(cpu.throttled_percent, Some(100.into()));
    assert!(cpu.is_short(), "{cpu:?}");
}

#[test]
fn the_cpus_of_the_node_are_recorded_where_it_is_the_one_under_test() {
    // Two CPUs that are always busy. Threads wait all the time, also where a busy machine makes each step longer.
    let script = r#"
mkdir -p "$DIR/proc/pressure" && mkdir -p "$DIR/sys/devices/system/node" && echo 0-1 >"$DIR/sys/devices/system/node/online"
mkdir -p "$DIR/proc/sys/kernel" && echo 6.18.44 >"$DIR/proc/sys/kernel/osrelease"
for second in 1 2 3 4 5 6 7 8; do
  echo "cpu  ${second}90 0 10 8 0 0 0 0 0 0
cpu0 1 0 0 1
cpu1 1 0 0 1" >"$DIR/new" && mv "$DIR/new" "$DIR/proc/stat"
  echo "some avg10=90.00 total=${second}5000000" >"$DIR/new" && mv "$DIR/new" "$DIR/proc/pressure/cpu"
  sleep 1
done
cp "$EXPORT" "$DIR"/profile_export_aiperf.json"#;
    let record = |own: &str| {
        let rig = Rig::new(script);
        let folder = rig.dir().to_str().unwrap().to_owned();
        let rig = rig.option("--root", &folder).option("--node", "n1");
        rig.option("--own-node", own).run(&[]).payload()
    };
    let payload = record("n1");
    let facts = payload.node.expect("the facts of the machine");
    assert_eq!(
        (facts.node.as_str(), facts.in_words().as_str()),
        ("n1", "NUMA nodes 0-1, kernel 6.18.44")
    );
    let cpu = payload.record.node_cpu.expect("the counters of the folder");
    assert_eq!((cpu.node.as_str(), cpu.cpus), ("n1", Some(2)));
    assert_eq!(cpu.busy_percent, Some(100.into()), "{cpu:?}");
    assert!(cpu.seconds >= 3 && cpu.is_full(), "{cpu:?}");
    let elsewhere = record("n2");
    assert_eq!(elsewhere.record.node_cpu, None, "of another node nothing is known");
    assert_eq!(elsewhere.node.map(|facts| facts.node), Some("n2".to_owned()));
}

/// The runner waits up to 5 s for the page of a worker that hangs.
#[test]
fn cpus_that_rest_after_the_end_of_aiperf_are_no_part_of_the_phase() {
    let script = r#"
mkdir -p "$DIR/proc"
second=1
while ! [ -e "$DIR/enough" ]; do
  echo "cpu  ${second}90 0 10 8 0 0 0 0 0 0" >"$DIR/new" && mv "$DIR/new" "$DIR/proc/stat"
  second=$((second + 1))
  sleep 0.5
done
cp "$EXPORT" "$DIR"/profile_export_aiperf.json
echo $$ >"$DIR/new" && mv "$DIR/new" "$DIR/pid""#;
    let hanging = PageServer::hanging("127.0.8.4", 0);
    let rig = Rig::new(script);
    let folder = rig.dir().to_str().expect("UTF-8").to_owned();
    let rig = rig.option("--root", &folder).option("--node", "n1");
    let rig = rig
        .option("--own-node", "n1")
        .workers(&["127.0.8.4".to_owned()], hanging.port());
    let running = rig.start(&[]);
    // AIPerf ends when the second look begins.
    hanging.wait_until_asked(2);
    fs::write(rig.dir().join("enough"), "").expect("written");
    running.wait_for("pid");
    let pid = fs::read_to_string(rig.dir().join("pid")).expect("a number");
    let process = format!("/proc/{}", pid.trim());
    wait_until("AIPerf is gone", PATIENCE, || !fs::exists(&process).expect("a process"));
    fs::write(rig.dir().join("proc/stat"), "cpu  99990 0 10 99999 0 0 0 0 0 0\n").expect("written");
    let cpu = running.end().payload().record.node_cpu.expect("counters");
    assert_eq!(cpu.busy_percent, Some(100.into()), "{cpu:?}");
}
