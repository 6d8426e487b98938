//! Probes run in the background, one per object: a first token may take a minute, and a pass must not wait for it.

mod answer;
mod send;

use std::collections::HashMap;
use std::sync::Arc;

use futures::channel::mpsc::UnboundedSender;
use kube::Client;
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use perfval_api::PerfValidation;
use perfval_run::Run;
use perfval_run::decision::ProbeRequest;
use perfval_run::names::dynamo::frontend_service;
use perfval_run::observed::{Probe, ProbeAnswer};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use send::EndpointAccess;

use send::Way;

/// Probes under way, and answers that no pass has taken yet.
#[derive(Clone)]
pub(crate) struct Probes {
    way: Way,
    wake: UnboundedSender<ObjectRef<PerfValidation>>,
    /// By uid of the object.
    sent: Arc<Mutex<HashMap<String, Sent>>>,
}

struct Sent {
    request: ProbeRequest,
    task: AbortHandle,
    at: Instant,
    answer: Option<ProbeAnswer>,
}

impl Sent {
    /// Returns true if it is a probe of this run's endpoint, and not of an earlier run of the object.
    fn is_for(&self, run: &Run<'_>) -> bool {
        self.request.service == frontend_service(&run.id())
    }
}

impl Probes {
    pub(crate) fn new(
        access: EndpointAccess,
        impatient: Client,
        wake: UnboundedSender<ObjectRef<PerfValidation>>,
    ) -> Self {
        Self {
            way: Way::new(access, impatient),
            wake,
            sent: Arc::default(),
        }
    }

    /// Sends a probe; the same one a second time only once the first was answered and its answer taken.
    pub(crate) fn send(&self, run: &Run<'_>, request: &ProbeRequest) {
        let mut sent = self.sent.lock();
        if sent.get(run.uid()).is_some_and(|sent| sent.request == *request) {
            return;
        }
        // The lock is held until the entry is in: the task cannot answer before.
        let task = tokio::spawn(self.clone().follow(
            run.uid().to_owned(),
            ObjectRef::from_obj(run.object),
            request.clone(),
            self.way.base(request, &run.settings.cluster_domain),
        ));
        let entry = Sent {
            request: request.clone(),
            task: task.abort_handle(),
            at: Instant::now(),
            answer: None,
        };
        if let Some(old) = sent.insert(run.uid().to_owned(), entry) {
            old.task.abort();
        }
    }

    async fn follow(self, uid: String, object: ObjectRef<PerfValidation>, request: ProbeRequest, base: String) {
        let answer = send::probe(&self.way, &base, &request).await;
        if let Some(sent) = self.sent.lock().get_mut(&uid).filter(|sent| sent.request == request) {
            sent.answer = Some(answer);
        }
        // The receiver goes first when the process ends.
        let _ = self.wake.unbounded_send(object);
    }

    /// The state of this run's probe; an answer is given once.
    pub(crate) fn take(&self, run: &Run<'_>) -> Probe {
        let mut sent = self.sent.lock();
        let Some(current) = sent.get_mut(run.uid()).filter(|sent| sent.is_for(run)) else {
            return Probe::Idle;
        };
        match current.answer.take() {
            Some(answer) => {
                sent.remove(run.uid());
                Probe::Answered(answer)
            }
            None => Probe::InFlight(current.at.elapsed()),
        }
    }

    /// Returns true if a completion of this run's endpoint waits for a pass.
    pub(crate) fn has_completion(&self, run: &Run<'_>) -> bool {
        let is_completed = |sent: &Sent| sent.is_for(run) && matches!(sent.answer, Some(ProbeAnswer::Completion));
        self.sent.lock().get(run.uid()).is_some_and(is_completed)
    }

    /// Ends what a phase that does not probe any more has left.
    pub(crate) fn forget(&self, run: &Run<'_>) {
        if let Some(old) = self.sent.lock().remove(run.uid()) {
            old.task.abort();
        }
    }
}
