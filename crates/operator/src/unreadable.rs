//! An object that this version cannot parse: an Event says so, and no other object is held up.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Client, Resource};
use perfval_api::{PerfValidation, Reason};
use tracing::{debug, error};

use crate::metrics::Metrics;

/// How long an event may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Publishes Events on unreadable objects.
pub struct Reporter(Recorder);

impl Reporter {
    /// A reporter called `instance`.
    pub fn new(client: Client, instance: String) -> Self {
        let reporter = kube::runtime::events::Reporter {
            controller: "perfvalidation-operator".to_owned(),
            instance: Some(instance),
        };
        Self(Recorder::new(client, reporter))
    }

    /// Reports one; nothing can be done until it changes.
    pub async fn report(&self, invalid: &InvalidObject, metrics: &Metrics) -> Action {
        let (namespace, name) = (&invalid.metadata.namespace, &invalid.metadata.name);
        error!(
            namespace,
            name,
            error = invalid as &dyn std::error::Error,
            "the object cannot be parsed by this version"
        );
        metrics.failed(Reason::SpecUnreadable.as_str());
        let event = Event {
            type_: EventType::Warning,
            reason: Reason::SpecUnreadable.as_str().to_owned(),
            note: Some(perfval_api::text::bounded(&format!(
                "this operator version cannot parse the object: {}",
                invalid.error
            ))),
            action: "Parse".to_owned(),
            secondary: None,
        };
        let object = ObjectReference {
            api_version: Some(PerfValidation::api_version(&()).into_owned()),
            kind: Some(PerfValidation::kind(&()).into_owned()),
            name: name.clone(),
            namespace: namespace.clone(),
            uid: invalid.metadata.uid.clone(),
            // Without its version, or every change of the object would make another Event of the same.
            ..ObjectReference::default()
        };
        match tokio::time::timeout(LIMIT, self.0.publish(&event, &object)).await {
            Ok(Ok(())) => {}
            Ok(Err(source)) => debug!(error = &source as &dyn std::error::Error, "the event was not published"),
            Err(_) => debug!("the event was not published in time"),
        }
        Action::await_change()
    }
}
