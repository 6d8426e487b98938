//! Status, with and without faults.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::super::faults::Faults;
use super::super::shape::{Graph, Shape};
use super::super::status::{GraphStatus, Pass};
use super::{made, v1alpha1, v1beta1};

/// The graph's Deployments when so many pods are ready.
fn deployments(graph: &Graph, frontends: i32, workers: i32) -> BTreeMap<String, Deployment> {
    [("Frontend", frontends, 1), ("worker", workers, 8)]
        .map(|(name, ready, wanted)| {
            let mut deployment = made(graph, name);
            deployment.metadata.generation = Some(1);
            deployment.status = Some(DeploymentStatus {
                observed_generation: Some(1),
                replicas: Some(wanted),
                updated_replicas: Some(wanted),
                ready_replicas: Some(ready),
                available_replicas: Some(ready),
                ..DeploymentStatus::default()
            });
            (deployment.metadata.name.clone().unwrap(), deployment)
        })
        .into()
}

/// The status of the graph when so many pods are ready.
fn status(graph: &Graph, frontends: i32, workers: i32, faults: &Faults, failure: Option<&str>) -> GraphStatus {
    Pass {
        graph,
        generation: 2,
        age_seconds: 10,
        deployments: &deployments(graph, frontends, workers),
        faults,
        failure: failure.map(ToOwned::to_owned),
        previous: &GraphStatus::default(),
        now: Time(Timestamp::UNIX_EPOCH),
    }
    .status()
}

#[test]
fn state_follows_readiness_and_faults() {
    let none = Faults::default();
    let never = Faults {
        never_ready: true,
        ..Faults::default()
    };
    let below = Faults {
        ready_below_spec: true,
        ..Faults::default()
    };
    let fails = Faults {
        failed_seconds: Some(30),
        ..Faults::default()
    };
    let healed = Faults {
        failed_seconds: Some(5),
        ..Faults::default()
    };
    let cases = [
        ("all ready", 8, &none, None, "successful", 8),
        ("a worker crashes for ever", 7, &none, None, "pending", 7),
        ("never-ready", 8, &never, None, "pending", 0),
        ("ready-below-spec", 8, &below, None, "successful", 7),
        ("ready-below-spec while they start", 5, &below, None, "successful", 5),
        ("failed-then-heals, before", 8, &fails, None, "failed", 8),
        ("failed-then-heals, after", 8, &healed, None, "successful", 8),
        (
            "the API server refused a child",
            8,
            &none,
            Some("apply child x: no"),
            "failed",
            8,
        ),
    ];
    for graph in [v1beta1(), v1alpha1()] {
        for (case, workers, faults, failure, state, ready) in cases {
            let status = status(&graph, 1, workers, faults, failure);
            assert_eq!(status.state.as_deref(), Some(state), "{case}");
            let condition = &status.conditions.unwrap()[0];
            assert_eq!(condition.status == "True", state == "successful", "{case}");
            assert!(failure.is_none_or(|failure| condition.message == failure), "{case}");
            let counts = match graph.shape {
                Shape::V1beta1 => status.components,
                Shape::V1alpha1 => status.services,
            };
            let worker = &counts.unwrap()["worker"];
            assert_eq!((worker.replicas, worker.ready_replicas), (8, ready), "{case}");
        }
    }
}

#[test]
fn a_stale_status_stays_behind_its_generation() {
    let stale = Faults {
        stale_status: true,
        ..Faults::default()
    };
    assert_eq!(status(&v1beta1(), 1, 8, &stale, None).observed_generation, Some(1));
    assert_eq!(
        status(&v1beta1(), 1, 8, &Faults::default(), None).observed_generation,
        Some(2)
    );
}

#[test]
fn a_graph_without_deployments_is_initializing() {
    let graph = v1beta1();
    let status = Pass {
        graph: &graph,
        generation: 1,
        age_seconds: 0,
        deployments: &BTreeMap::new(),
        faults: &Faults::default(),
        failure: None,
        previous: &GraphStatus::default(),
        now: Time(Timestamp::UNIX_EPOCH),
    }
    .status();
    assert_eq!(status.state.as_deref(), Some("initializing"));
    assert_eq!(status.components, Some(BTreeMap::new()));
}

#[test]
fn the_time_of_a_condition_changes_with_its_status_only() {
    let graph = v1beta1();
    let then = Time(Timestamp::from_second(1_000).unwrap());
    let mut previous = status(&graph, 1, 7, &Faults::default(), None);
    previous.conditions.as_mut().unwrap()[0].last_transition_time = then.clone();
    for (workers, changes) in [(6, false), (8, true)] {
        let deployments = deployments(&graph, 1, workers);
        let now = Time(Timestamp::from_second(2_000).unwrap());
        let expected = if changes { now.clone() } else { then.clone() };
        let pass = Pass {
            graph: &graph,
            generation: 2,
            age_seconds: 10,
            deployments: &deployments,
            faults: &Faults::default(),
            failure: None,
            previous: &previous,
            now,
        };
        assert_eq!(pass.status().conditions.unwrap()[0].last_transition_time, expected);
    }
}
