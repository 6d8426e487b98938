//! Admission webhooks of others: one that denies what a run creates, one that does not answer.

use perfval_api::{Phase, Verdict};
use perfval_e2e::{Creation, Lab, Validation, Webhook, quick};

use crate::{has_message, ready};

const DENIED: &str = "admission webhook \"policy.example.com\" denied the request: no label team";
const UNANSWERED: &str = "failed calling webhook \"policy.example.com\"";
const SAYS: &str = "no label team";

async fn namespace(lab: &Lab, name: &str) -> String {
    let namespace = lab.namespace(name).await;
    // Pods that still start would take Dynamo's minute to end.
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    namespace
}

fn deployments(namespace: &str) -> Creation<'_> {
    Creation {
        namespace,
        group: "nvidia.com",
        plural: "dynamographdeployments",
    }
}

fn pods(namespace: &str) -> Creation<'_> {
    Creation {
        namespace,
        group: "",
        plural: "pods",
    }
}

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_webhook_that_denies_is_quoted_with_its_name() {
    let (lab, _operator) = ready().await;
    for (of, name) in [(deployments as fn(&str) -> Creation<'_>, "deployment"), (pods, "pods")] {
        let namespace = namespace(&lab, &format!("fail-webhook-{name}")).await;
        let webhook = Webhook::register(&lab, &of(&namespace), SAYS, true).await;
        let run = Validation::create(&lab, quick(name, &namespace)).await;
        let status = run.ends(Verdict::Error).await;
        assert!(
            has_message(&status, "Refused", DENIED),
            "{:?} {:?}",
            status.reason,
            status.message
        );
        webhook.withdraw(&lab).await;
        run.left_nothing().await;
        run.delete().await;
    }
}

/// A webhook that is restarted is away for a moment: the run tells what it waits for, and goes on.
#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn a_webhook_that_does_not_answer_is_waited_for() {
    let (lab, _operator) = ready().await;
    for (of, name, reason, phase) in [
        (
            deployments as fn(&str) -> Creation<'_>,
            "away-deployment",
            "CallFailed",
            Phase::Deploying,
        ),
        (pods, "away-pods", "Refused", Phase::WaitingForReady),
    ] {
        let namespace = namespace(&lab, &format!("fail-webhook-{name}")).await;
        let webhook = Webhook::register(&lab, &of(&namespace), SAYS, false).await;
        let run = Validation::create(&lab, quick(name, &namespace)).await;
        let told = run
            .until("the webhook is named, or the run is over", |status| {
                has_message(status, reason, UNANSWERED) || status.verdict.is_some()
            })
            .await;
        assert_eq!(told.phase, Some(phase), "{:?} {:?}", told.reason, told.message);
        webhook.withdraw(&lab).await;
        run.ends(Verdict::Passed).await;
        run.left_nothing().await;
        run.delete().await;
    }
}
