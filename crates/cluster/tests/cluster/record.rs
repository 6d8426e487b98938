//! The commit of a pass.

use perfval_api::{PerfValidation, PerfValidationStatus, Phase};
use perfval_cluster::{Class, Error, StatusWrite};
use perfval_run::Run;
use perfval_testkit::api_server::Fault;

use crate::world::{NAME, NAMESPACE, World};

impl World {
    /// Writes a status, decided on a copy of the object.
    async fn write(&self, object: &PerfValidation, status: &PerfValidationStatus) -> Result<StatusWrite, Error> {
        self.cluster.record(&Run::new(object, &self.settings), status).await
    }

    /// The object after a write that changes it.
    async fn written(&self, object: &PerfValidation, status: &PerfValidationStatus) -> PerfValidation {
        match self.write(object, status).await.expect("no failure") {
            StatusWrite::Written(written) => *written,
            other => panic!("{other:?}"),
        }
    }
}

/// The status of the object with a message.
fn with_message(object: &PerfValidation, message: &str) -> PerfValidationStatus {
    PerfValidationStatus {
        message: Some(message.into()),
        ..object.status.clone().expect("a status")
    }
}

#[tokio::test]
async fn an_equal_status_is_not_written() {
    let world = World::new();
    let object = world.object();
    world.server.forget_calls();
    let recorded = world.write(&object, object.status.as_ref().unwrap()).await.unwrap();
    assert!(matches!(recorded, StatusWrite::Unchanged));
    assert_eq!(world.server.calls(), []);
}

#[tokio::test]
async fn a_status_is_written_whole_and_absent_fields_are_removed() {
    let world = World::new();
    let object = world.object();
    let mut status = with_message(&object, "counting");
    let written = world.written(&object, &status).await;
    assert_eq!(written.status.as_ref(), Some(&status));
    assert_eq!(written.spec, object.spec);

    status.message = None;
    let written = world.written(&written, &status).await;
    assert_eq!(written.status, Some(status));
    assert_eq!(world.object().status, written.status);
}

#[tokio::test]
async fn a_write_without_effect_changes_nothing() {
    let world = World::new();
    world.server.prune("perfvalidations", "/status/message");
    let object = world.object();
    let mut status = with_message(&object, "a field of a newer CRD");
    let first = world.write(&object, &status).await.unwrap();
    assert!(matches!(first, StatusWrite::Unchanged), "{first:?}");
    assert_eq!(
        world.object().metadata.resource_version,
        object.metadata.resource_version
    );

    // The kept fields are written.
    status.reason = Some("Running".into());
    let kept = world.written(&object, &status).await.status.unwrap();
    assert_eq!((kept.reason, kept.message), (status.reason, None));
}

#[tokio::test]
async fn a_decision_on_an_old_copy_counts_for_nothing() {
    let world = World::new();
    let old = world.object();
    world.edit(|object| object["status"]["phase"] = "Evaluating".into());
    let back = PerfValidationStatus {
        phase: Some(Phase::Sizing),
        ..PerfValidationStatus::default()
    };
    let outcome = world.write(&old, &back).await.unwrap();
    assert!(matches!(outcome, StatusWrite::Conflict));
    assert_eq!(world.object().status.unwrap().phase, Some(Phase::Evaluating));

    world.server.delete("perfvalidations", NAMESPACE, NAME);
    let outcome = world.write(&old, &back).await.unwrap();
    assert!(matches!(outcome, StatusWrite::Conflict), "gone");
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
        world.fail(Fault::refuse("patch", "perfvalidations/status", code));
        let status = PerfValidationStatus::default();
        let error = world.write(&world.object(), &status).await.unwrap_err();
        assert_eq!((error.change().name, error.class()), ("RecordStatus", class), "{error}");
        assert!(error.to_string().contains("perf/demo"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_shows_as_a_conflict_and_then_as_done() {
    let world = World::new();
    let object = world.object();
    let status = with_message(&object, "landed");
    world.fail(Fault::lose_answer("patch", "perfvalidations/status").times(1));
    let error = world.write(&object, &status).await.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    let again = world.write(&object, &status).await.unwrap();
    assert!(matches!(again, StatusWrite::Conflict));
    let newest = world.write(&world.object(), &status).await.unwrap();
    assert!(matches!(newest, StatusWrite::Unchanged));
}
