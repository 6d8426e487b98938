//! Images that are not for the node's architecture.

use perfval_run::diagnosis::pods::{Proof, signs};
use perfval_run::diagnosis::surroundings::name_architecture;
use perfval_run::observed::NodeSeen;
use perfval_run::obstacle::Obstacle;
use perfval_sizing::Seen;
use serde_json::json;

use crate::{container, log, obstacle_and_proof, of, pod, sign, waiting};

#[test]
fn an_image_for_another_architecture_is_believed_at_once() {
    // containerd 2.3, CRI-O 1.33, Docker 28 (cri-dockerd), runc and crun.
    let pull = [
        "failed to pull and unpack image \"docker.io/library/x:1\": no match for platform in manifest: not found",
        "choosing image instance: no image found in image index for architecture \"arm64\", variant \"v8\", OS \"linux\"",
        "choosing image instance: no image found in manifest list for architecture arm64, variant \"v8\", OS linux",
        "no matching manifest for linux/arm64/v8 in the manifest list entries",
    ];
    for message in pull {
        for text in [
            message.to_owned(),
            format!("Back-off pulling image \"x:1\": ErrImagePull: {message}"),
        ] {
            let found = sign(&pod(waiting("ImagePullBackOff", &text)), &[], &[]).expect("a sign");
            assert_eq!(
                (found.trouble.obstacle, found.proof),
                (Obstacle::OtherArchitecture, Proof::Seen),
                "{text}"
            );
            assert!(
                found.trouble.evidence.ends_with(message),
                "one text is one write: {}",
                found.trouble.evidence
            );
        }
    }
    let crun = "exec container process `/usr/bin/python3`: Exec format error";
    assert_eq!(
        of(&pod(waiting("RunContainerError", crun))),
        Some((Obstacle::OtherArchitecture, Proof::Seen))
    );
    let runc = json!({"terminated": {"exitCode": 128, "reason": "StartError",
        "message": "failed to create containerd task: OCI runtime create failed: exec /x: exec format error"}});
    let backing_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}});
    for (state, last) in [(&runc, &json!({})), (&backing_off, &runc)] {
        let found = of(&pod(container(1, state, last)));
        assert_eq!(found, Some((Obstacle::OtherArchitecture, Proof::Seen)), "{state}");
    }
    // A container that runs by now came from another image.
    assert_eq!(
        of(&pod(container(1, &json!({"running": {}}), &runc))),
        Some((Obstacle::CrashLoop, Proof::Missing))
    );
    // Some versions of runc write it into the log of the container alone.
    let ended = json!({"terminated": {"exitCode": 255, "reason": "Error"}});
    let crashed = pod(container(1, &backing_off, &ended));
    let found = sign(
        &crashed,
        &[],
        &log("worker", "exec /usr/bin/python3: exec format error"),
    );
    assert_eq!(
        obstacle_and_proof(found),
        Some((Obstacle::OtherArchitecture, Proof::Seen))
    );
}

#[test]
fn the_architecture_of_the_node_under_test_explains_only_its_own_pods() {
    let seen = Seen::Present(NodeSeen {
        ready: true,
        message: String::new(),
        architecture: "arm64".into(),
    });
    let found_on = |node: Option<&str>| {
        let mut made = pod(waiting("ErrImagePull", "no match for platform in manifest: not found"));
        made.spec.get_or_insert_default().node_name = node.map(str::to_owned);
        let mut found = signs([&made], "nvidia.com/gpu", &[], &[]);
        name_architecture(&mut found, &[&made], "gb200-1", &seen);
        found.pop().expect("a sign").trouble.why().message
    };
    let here = found_on(Some("gb200-1"));
    assert!(here.starts_with("node gb200-1 is arm64: pod worker"), "{here}");
    let elsewhere = found_on(Some("cpu-1"));
    assert!(
        elsewhere.starts_with("node cpu-1 is not the node under test: pod worker") && !elsewhere.contains("arm64"),
        "{elsewhere}"
    );
    assert!(elsewhere.contains("WorkloadNode in benchmark.placement or workload.dynamo.frontend.placement"));
    assert!(found_on(None).starts_with("pod worker"));
}
