//! The commit of a pass.

use perfval_api::{PerfValidationStatus, Phase};
use perfval_cluster::{Class, StatusWrite};
use perfval_run::Run;
use perfval_testkit::api_server::Fault;

use crate::world::{NAME, NAMESPACE, World};

#[tokio::test]
async fn an_equal_status_is_not_written() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    world.server.forget_calls();
    let recorded = world.cluster.record(&run, run.status()).await.unwrap();
    assert!(matches!(recorded, StatusWrite::Unchanged));
    assert_eq!(world.server.calls(), []);
}

#[tokio::test]
async fn a_status_is_written_whole_and_absent_fields_are_removed() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let mut status = run.status().clone();
    status.message = Some("counting".into());
    let StatusWrite::Written(written) = world.cluster.record(&run, &status).await.unwrap() else {
        panic!()
    };
    assert_eq!(written.status.as_ref(), Some(&status));
    assert_eq!(written.spec, object.spec);

    let run = Run::new(&written, &world.settings);
    status.message = None;
    let StatusWrite::Written(written) = world.cluster.record(&run, &status).await.unwrap() else {
        panic!()
    };
    assert_eq!(written.status, Some(status));
    assert_eq!(world.object().status, written.status);
}

#[tokio::test]
async fn a_write_without_effect_changes_nothing() {
    let world = World::new();
    world.server.prune("perfvalidations", "/status/message");
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let mut status = run.status().clone();
    status.message = Some("a field of a newer CRD".into());
    let first = world.cluster.record(&run, &status).await.unwrap();
    assert!(matches!(first, StatusWrite::Unchanged), "{first:?}");
    assert_eq!(
        world.object().metadata.resource_version,
        object.metadata.resource_version
    );

    // The kept fields are written.
    status.reason = Some("Running".into());
    let StatusWrite::Written(written) = world.cluster.record(&run, &status).await.unwrap() else {
        panic!()
    };
    let kept = written.status.unwrap();
    assert_eq!((kept.reason, kept.message), (status.reason, None));
}

#[tokio::test]
async fn a_decision_on_an_old_copy_counts_for_nothing() {
    let world = World::new();
    let old = world.object();
    world.server.edit("perfvalidations", NAMESPACE, NAME, |object| {
        object["status"]["phase"] = "Evaluating".into();
    });
    let run = Run::new(&old, &world.settings);
    let back = PerfValidationStatus {
        phase: Some(Phase::Sizing),
        ..PerfValidationStatus::default()
    };
    assert!(matches!(
        world.cluster.record(&run, &back).await.unwrap(),
        StatusWrite::Conflict
    ));
    assert_eq!(world.object().status.unwrap().phase, Some(Phase::Evaluating));

    world.server.delete("perfvalidations", NAMESPACE, NAME);
    assert!(
        matches!(world.cluster.record(&run, &back).await.unwrap(), StatusWrite::Conflict),
        "gone"
    );
}

#[tokio::test]
async fn a_status_that_cannot_be_written_is_an_error() {
    for (code, class) in [
        (403, Class::Permanent),
        (422, Class::Permanent),
        (429, Class::Transient),
        (500, Class::Transient),
    ] {
        let world = World::new();
        let object = world.object();
        let run = Run::new(&object, &world.settings);
        world
            .server
            .fail(Fault::refuse("patch", "perfvalidations/status", code));
        let error = world
            .cluster
            .record(&run, &PerfValidationStatus::default())
            .await
            .unwrap_err();
        assert_eq!((error.change().name, error.class()), ("RecordStatus", class), "{error}");
        assert!(error.to_string().contains("perf/demo"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_shows_as_a_conflict_and_then_as_done() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let mut status = run.status().clone();
    status.message = Some("landed".into());
    world
        .server
        .fail(Fault::lose_answer("patch", "perfvalidations/status").times(1));
    let error = world.cluster.record(&run, &status).await.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert!(matches!(
        world.cluster.record(&run, &status).await.unwrap(),
        StatusWrite::Conflict
    ));
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    assert!(matches!(
        world.cluster.record(&run, &status).await.unwrap(),
        StatusWrite::Unchanged
    ));
}
