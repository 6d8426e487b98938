//! Hostile servers on a port that the runner reads.

mod server;

use std::fs;
use std::net::TcpListener;

use perfval_verdict::frame::Outcome;

use crate::UNTIL_DONE;
use crate::rig::{PATIENCE, Rig, fixture, wait_until};
use server::{Behaviour, Hostile};

/// More than the runner reads of one page, and what sockets of a loopback hold.
const BOUNDED: usize = (4 << 20) + (8 << 20);
/// More than the runner has in use besides: threads, and a page of each worker.
const RESIDENT_KB: u64 = 64 << 10;

/// The tenant that redirects lead to; it may get no request.
fn tenant() -> TcpListener {
    let tenant = TcpListener::bind("127.0.8.200:0").expect("a port");
    tenant.set_nonblocking(true).expect("no waiting");
    tenant
}

fn was_never_asked(tenant: &TcpListener) {
    assert!(tenant.accept().is_err(), "a redirect was followed");
}

fn was_read_to_a_bound(server: &Hostile) {
    let (sent, behaviour) = (server.sent() / server.asked(), server.behaviour);
    assert!(sent < BOUNDED, "{behaviour:?}: {sent} bytes were read of one answer");
}

#[test]
fn false_metrics_of_workers_cost_only_their_evidence() {
    let tenant = tenant();
    let elsewhere = tenant.local_addr().expect("an address");
    let servers = Hostile::on_one_port("127.0.10", elsewhere, &fixture("dynamo-worker-metrics.txt"));
    let hosts: Vec<String> = servers.iter().map(Hostile::address).collect();
    let rig = Rig::new(UNTIL_DONE).workers(&hosts, servers[0].port());
    let running = rig.start(&[]);
    // A second question shows that the first one came to an end.
    wait_until("all were asked twice", PATIENCE, || {
        servers.iter().all(|server| server.asked() >= 2)
    });
    let resident = running.peak_resident_kb();
    fs::write(rig.dir().join("done"), "").expect("written");
    let ended = running.end();

    assert_eq!(ended.code, 0);
    assert!(resident < RESIDENT_KB, "{resident} KB resident");
    was_never_asked(&tenant);
    let payload = ended.payload();
    assert!(matches!(payload.record.outcome, Outcome::Report(_)));
    // The log holds all workers, the message not always.
    let workers = &payload.record.workers;
    assert_eq!(workers.len(), servers.len(), "{workers:?}");
    for (server, worker) in servers.iter().zip(workers) {
        assert_eq!(worker.address, server.address());
        assert_eq!(
            (worker.samples, worker.served),
            (0, 0),
            "{:?}: {worker:?}",
            server.behaviour
        );
        assert!(worker.failures + worker.timeouts > 0, "{:?}", server.behaviour);
        if matches!(server.behaviour, Behaviour::Drip | Behaviour::Unfinished) {
            assert_eq!(worker.failures, 0, "{:?}: a page that stalls is late", server.behaviour);
        }
        was_read_to_a_bound(server);
    }
    let errors = &payload.record.scrape_errors;
    assert!(
        errors.len() <= 8 && errors.keys().all(|error| error.len() < 700),
        "{errors:?}"
    );
}

#[test]
fn an_exporter_that_lies_in_any_way_is_read_to_a_bound_and_in_time() {
    let tenant = tenant();
    let elsewhere = tenant.local_addr().expect("an address");
    let page = fixture("telemetry/dcgm-exporter.txt");
    let servers = Hostile::on_one_port("127.0.11", elsewhere, &page);
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| exporter(server));
        }
    });
    was_never_asked(&tenant);
}

fn exporter(server: &Hostile) {
    let rig = Rig::new(UNTIL_DONE).option("--gpu-metrics", &server.url());
    let running = rig.start(&[]);
    wait_until("the exporter was asked twice", PATIENCE, || server.asked() >= 2);
    let resident = running.peak_resident_kb();
    fs::write(rig.dir().join("done"), "").expect("written");
    let ended = running.end();
    assert_eq!(ended.code, 0, "{:?}", server.behaviour);
    assert!(resident < RESIDENT_KB, "{:?}: {resident} KB resident", server.behaviour);
    let record = ended.payload().record.gpus.expect("a record of the GPUs");
    assert_eq!(
        (record.pages, record.gpus.len()),
        (0, 0),
        "{:?}: {record:?}",
        server.behaviour
    );
    assert!(!record.errors.is_empty(), "{:?}", server.behaviour);
    was_read_to_a_bound(server);
}
