use std::path::Path;

use super::*;

/// Nine lines of a lab's log: seven of the operator, one of them refused; one of another account; one cut off.
const LOG: &str = include_str!("audit-sample.jsonl");

fn shipped() -> Vec<Grant> {
    read_roles(Path::new("../../config/rbac")).unwrap()
}

fn texts(uses: &BTreeSet<Use>) -> Vec<String> {
    uses.iter().map(ToString::to_string).collect()
}

#[test]
fn only_the_operators_own_requests_count() {
    let requests = read_log(LOG);
    let named: Vec<String> = requests.iter().map(|request| request.what().to_string()).collect();
    assert_eq!(
        named,
        [
            "list pods (cluster)",
            "get secrets (namespace)",
            "create selfsubjectaccessreviews.authorization.k8s.io (cluster)",
            "update leases.coordination.k8s.io (namespace)",
            "patch perfvalidations/status.perfvalidation.dev (namespace)",
        ]
    );
    assert_eq!(requests.iter().filter(|request| request.refused).count(), 1);
}

#[test]
fn the_sample_is_compared_with_the_shipped_roles() {
    let comparison = Comparison::of(&shipped(), &read_log(LOG));
    assert_eq!(
        texts(&comparison.used),
        [
            "list pods (cluster)",
            "update leases.coordination.k8s.io (namespace)",
            "patch perfvalidations/status.perfvalidation.dev (namespace)",
        ]
    );
    assert_eq!(
        texts(&comparison.ungranted),
        [
            "get secrets (namespace)",
            "create selfsubjectaccessreviews.authorization.k8s.io (cluster)"
        ]
    );
    assert_eq!(texts(&comparison.refused), ["get secrets (namespace)"]);
    assert!(texts(&comparison.unused).contains(&"create jobs.batch (namespace)".to_owned()));
    let unexplained: Vec<String> = comparison.unexplained().into_iter().map(ToString::to_string).collect();
    assert!(unexplained.contains(&"get secrets (namespace)".to_owned()));
    assert!(unexplained.contains(&"create jobs.batch (namespace)".to_owned()));
    assert!(
        !unexplained
            .iter()
            .any(|text| text.contains("selfsubject") || text.contains("bindrequests"))
    );
    let report = comparison.to_string();
    assert!(
        report.contains("bindrequests.scheduling.run.ai (cluster): only KAI's scheduler serves it"),
        "{report}"
    );
}

#[test]
fn all_that_is_granted_and_used_leaves_nothing_to_explain() {
    let grants = shipped();
    let requests: BTreeSet<Request> = grants.iter().map(Grant::example).collect();
    let comparison = Comparison::of(&grants, &requests);
    assert_eq!(comparison.unexplained(), Vec::<&Use>::new());
    assert!(
        comparison.unused.is_empty() && comparison.used.len() > 40,
        "{comparison}"
    );
}

#[test]
fn a_read_of_the_whole_cluster_is_not_needed_for_one_namespace() {
    let grants = shipped();
    let in_namespace: BTreeSet<Request> = grants
        .iter()
        .map(|grant| Request {
            namespace: Some("perfvalidation-system".into()),
            ..grant.example()
        })
        .collect();
    let comparison = Comparison::of(&grants, &in_namespace);
    assert!(
        texts(&comparison.unused).contains(&"list nodes (cluster)".to_owned()),
        "{comparison}"
    );
    assert!(
        texts(&comparison.used).contains(&"create jobs.batch (namespace)".to_owned()),
        "{comparison}"
    );
}

#[test]
fn a_lease_elsewhere_is_not_granted() {
    let lease = Request {
        group: "coordination.k8s.io".into(),
        resource: "leases".into(),
        verb: "update".into(),
        namespace: Some("kube-node-lease".into()),
        name: None,
        refused: false,
    };
    let comparison = Comparison::of(&shipped(), &[lease].into());
    assert_eq!(
        texts(&comparison.ungranted),
        ["update leases.coordination.k8s.io (namespace)"]
    );
}

#[test]
fn every_exception_is_of_a_right_that_is_granted() {
    let grants = shipped();
    for exception in EXCEPTIONS {
        for verb in exception.verbs {
            let known = grants.iter().any(|grant| {
                let use_ = grant.what();
                exceptions::why_unused(&use_).is_some()
                    && use_.verb == **verb
                    && exception.resource.starts_with(&use_.resource)
            });
            assert!(known, "{verb} {}", exception.resource);
        }
    }
}

/// Where an installation's role lacks what the shipped ones grant, its log says so.
#[test]
fn a_refusal_of_a_granted_right_is_a_difference() {
    let grants = shipped();
    let requests: BTreeSet<Request> = grants.iter().map(Grant::example).collect();
    let grant = grants.iter().find(|grant| grant.cluster_only).expect("a right to read");
    let refused = Request {
        refused: true,
        ..grant.example()
    };
    let comparison = Comparison::of(&grants, &requests.into_iter().chain([refused]).collect());
    assert!(comparison.ungranted.is_empty(), "{comparison}");
    assert_eq!(comparison.unexplained(), [&grant.what()]);
}

#[test]
fn a_request_of_others_about_the_operators_account_is_not_the_operators() {
    let at = "2026-11-21T10:00:00Z";
    let mut line = serde_json::json!({
        "verb": "get", "stage": "ResponseComplete", "stageTimestamp": at, "requestReceivedTimestamp": at,
        "user": {"username": "system:kube-controller-manager"},
        "objectRef": {"resource": "serviceaccounts", "namespace": "perfvalidation-system", "name": "perfvalidation-operator"},
        "annotations": {"authorization.k8s.io/reason": format!("asked for {}", crate::audit::OPERATOR)},
    });
    assert!(read_log(&line.to_string()).is_empty());
    line["user"]["username"] = crate::audit::OPERATOR.into();
    assert_eq!(read_log(&line.to_string()).len(), 1);
}
