//! Answers of a dry run of the deployment, which changes nothing.

use perfval_run::names;
use perfval_run::observed::{DryRunResult, Need};
use perfval_sizing::Seen;
use perfval_testkit::api_server::Fault;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_dry_run_creates_nothing() {
    let world = World::new();
    assert_eq!(
        world.observe(Need::DryRun).await.dry_run,
        Seen::Present(DryRunResult::Accepted)
    );
    assert!(world.server.objects("dynamographdeployments").is_empty());

    let name = names::deployment(&world.run_id());
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", &name, &json!({}));
    assert_eq!(
        world.observe(Need::DryRun).await.dry_run,
        Seen::Present(DryRunResult::Accepted),
        "it exists"
    );
}

#[tokio::test]
async fn a_dry_run_has_unknown_fields_refused() {
    let world = World::new();
    let words = "strict decoding error: unknown field \"spec.typo\"";
    let strictly = Fault::refuse("create", "dynamographdeployments", 400).asked_with("fieldValidation=Strict");
    world.server.fail(strictly.saying(words));
    let rejected = DryRunResult::Rejected(words.into());
    assert_eq!(world.observe(Need::DryRun).await.dry_run, Seen::Present(rejected));
}

#[tokio::test]
async fn only_a_refusal_of_the_object_is_a_rejection() {
    let refuse = |code| Fault::refuse("create", "dynamographdeployments", code);
    let words = "exceeded quota: gpus";
    let rejected = [refuse(400), refuse(403).saying(words), refuse(413), refuse(422)];
    for fault in rejected {
        let world = World::new();
        world.server.fail(fault.clone());
        let seen = world.observe(Need::DryRun).await.dry_run;
        assert!(
            matches!(seen, Seen::Present(DryRunResult::Rejected(_))),
            "{fault:?}: {seen:?}"
        );
    }
    // RBAC, an unserved kind, a server in trouble.
    for fault in [
        refuse(401),
        refuse(403),
        refuse(403).saying("status unknown for quota: gpus"),
        refuse(404),
        refuse(409),
        refuse(429),
        refuse(500),
        refuse(503),
    ] {
        let world = World::new();
        world.server.fail(fault.clone());
        let seen = world.observe(Need::DryRun).await.dry_run;
        assert!(
            matches!(&seen, Seen::Unknown(why) if why.contains("dry run")),
            "{fault:?}: {seen:?}"
        );
    }
}
