//! The probe through the service proxy: in the background, one at a time, its answer given once.

use std::time::Duration;

use http::Method;
use perfval_run::decision::ProbeRequest;
use perfval_run::names::dynamo::{FRONTEND_PORT, frontend_service};
use perfval_run::observed::{Need, Probe, ProbeAnswer};
use perfval_run::{Effect, Run};
use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use crate::world::{NAME, NAMESPACE, World, woken};

fn request(world: &World) -> ProbeRequest {
    ProbeRequest {
        namespace: NAMESPACE.into(),
        service: frontend_service(&world.run_id()),
        port: FRONTEND_PORT,
        model: "lab/tiny-qwen3".into(),
        timeout: Duration::from_mins(2),
    }
}

impl World {
    fn has_completion(&self) -> bool {
        let object = self.object();
        self.cluster.has_completion(&Run::new(&object, &self.settings))
    }

    async fn send(&self, request: &ProbeRequest) {
        let object = self.object();
        let run = Run::new(&object, &self.settings);
        self.cluster
            .act(&run, &[Effect::Probe(request.clone())])
            .await
            .expect("a probe never fails");
    }

    /// Sends a probe, waits to be woken, and takes the answer.
    async fn answer(&mut self) -> Probe {
        let request = request(self);
        self.send(&request).await;
        assert!(!self.has_completion(), "no answer yet");
        assert_eq!(woken(&mut self.wakeups).await, NAME);
        let has_completion = self.has_completion();
        let answer = self.observe(Need::Probe).await.probe;
        let is_completion = matches!(answer, Probe::Answered(ProbeAnswer::Completion));
        assert_eq!(has_completion, is_completion, "{answer:?}");
        assert!(!self.has_completion(), "it was taken");
        answer
    }

    /// A frontend that answers readiness and completions.
    fn set_frontend(&self, ready: u16, completion: impl Fn(&Value) -> (u16, String) + Send + 'static) {
        let request = request(self);
        let answer = move |method: &Method, path: &str, body: &[u8]| match (method, path) {
            (&Method::GET, "/v1/models/lab/tiny-qwen3/ready") => (ready, "not yet".to_owned()),
            (&Method::POST, "/v1/chat/completions") => completion(&serde_json::from_slice(body).expect("JSON")),
            other => panic!("{other:?}"),
        };
        self.server
            .set_backend(NAMESPACE, &request.service, request.port, answer);
    }
}

fn completion(text: &str) -> (u16, String) {
    (200, json!({"choices": [{"message": {"content": text}}]}).to_string())
}

#[tokio::test]
async fn one_completion_is_requested_and_returned() {
    let mut world = World::new();
    world.set_frontend(200, |asked| {
        assert_eq!(asked["model"], "lab/tiny-qwen3");
        assert_eq!(asked["max_tokens"], 16);
        assert_eq!(asked["messages"].as_array().unwrap().len(), 1);
        completion("Hello")
    });
    assert_eq!(world.observe(Need::Probe).await.probe, Probe::Idle);
    let answer = world.answer().await;
    assert_eq!(answer, Probe::Answered(ProbeAnswer::Completion));
    assert_eq!(world.observe(Need::Probe).await.probe, Probe::Idle);
}

#[tokio::test]
async fn an_old_dynamo_without_readiness_gets_a_completion_request() {
    let mut world = World::new();
    world.set_frontend(404, |_| completion("Hello"));
    assert_eq!(world.answer().await, Probe::Answered(ProbeAnswer::Completion));
}

#[tokio::test]
async fn a_model_that_is_not_ready_gets_no_completion_request() {
    let mut world = World::new();
    world.set_frontend(503, |_| panic!("asked"));
    assert_eq!(
        world.answer().await,
        Probe::Answered(ProbeAnswer::Refused(503, "not yet".into()))
    );
}

#[tokio::test]
async fn refusals_and_missing_endpoints_are_answers() {
    let mut world = World::new();
    let missing = world.answer().await;
    assert!(
        matches!(&missing, Probe::Answered(ProbeAnswer::Refused(503, why)) if why.contains("no endpoints")),
        "{missing:?}"
    );
    world.set_frontend(200, |_| (529, "overloaded".into()));
    assert_eq!(
        world.answer().await,
        Probe::Answered(ProbeAnswer::Refused(529, "overloaded".into()))
    );
    world.set_frontend(200, |_| completion(""));
    assert_eq!(world.answer().await, Probe::Answered(ProbeAnswer::Empty));
}

#[tokio::test(start_paused = true)]
async fn one_probe_is_under_way_at_a_time_and_ends_at_its_deadline() {
    let mut world = World::new();
    world.server.fail(Fault::hang("*", "services/proxy"));
    world.server.forget_calls();
    let request = request(&world);
    world.send(&request).await;
    tokio::task::yield_now().await;
    assert!(matches!(world.observe(Need::Probe).await.probe, Probe::InFlight(_)));
    world.send(&request).await;
    woken(&mut world.wakeups).await;
    let answer = world.observe(Need::Probe).await.probe;
    assert_eq!(
        answer,
        Probe::Answered(ProbeAnswer::Failed("no answer within 120 s".into()))
    );
    assert_eq!(world.server.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_an_earlier_run_is_not_taken_for_this_one() {
    let mut world = World::new();
    let service = frontend_service("00000000");
    world
        .server
        .set_backend(NAMESPACE, &service, FRONTEND_PORT, |_, _, _| completion("from before"));
    let earlier = ProbeRequest {
        service,
        ..request(&world)
    };
    world.send(&earlier).await;
    woken(&mut world.wakeups).await;
    assert_eq!(world.observe(Need::Probe).await.probe, Probe::Idle);
    world.set_frontend(200, |_| completion("now"));
    assert_eq!(world.answer().await, Probe::Answered(ProbeAnswer::Completion));
}

#[tokio::test(start_paused = true)]
async fn a_phase_that_does_not_probe_ends_the_probe() {
    let world = World::new();
    world.server.fail(Fault::hang("*", "services/proxy"));
    world.send(&request(&world)).await;
    world.observe(Need::CacheJob).await;
    assert_eq!(world.observe(Need::Probe).await.probe, Probe::Idle);
}
