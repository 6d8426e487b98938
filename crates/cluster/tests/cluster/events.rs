//! Events on the object.

use kube::core::Resource as _;
use perfval_api::Word;
use perfval_run::{Event, Run};
use perfval_testkit::api_server::Fault;

use crate::world::{NAMESPACE, World};

fn notice(reason: Word) -> Event {
    Event {
        warning: true,
        reason,
        action: "Judge".into(),
        note: "n".repeat(2_000),
    }
}

async fn publish(world: &World, run: &Run<'_>, events: &[Event]) {
    for event in events {
        world.cluster.publish(&run.object.object_ref(&()), event).await;
    }
}

#[tokio::test]
async fn events_are_published_and_a_repeated_one_is_counted() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    publish(
        &world,
        &run,
        &[notice(Word::Saturated), notice(Word::Saturated), notice(Word::LostRace)],
    )
    .await;
    let events = world.server.objects("events");
    assert_eq!(events.len(), 2);
    let saturated = events.iter().find(|event| event["reason"] == "Saturated").unwrap();
    assert_eq!(saturated["series"]["count"], 2);
    assert_eq!(saturated["regarding"]["name"], "demo");
    assert_eq!(saturated["type"], "Warning");
    for event in &events {
        assert!(event["note"].as_str().unwrap().len() <= 1024);
        assert!(event["reason"].as_str().unwrap().len() <= 128 && event["action"].as_str().unwrap().len() <= 128);
    }
    assert_eq!(world.cluster.counts().lost_events, 0);
}

#[tokio::test]
async fn old_events_are_forgotten_after_many_others() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let numbered = |number: usize| Event {
        action: format!("Action{number}").into(),
        ..notice(Word::LostRace)
    };
    let series = |world: &World| {
        let events = world.server.objects("events");
        events.iter().filter(|event| event["series"]["count"] == 2).count()
    };
    let others: Vec<Event> = (0..300).map(numbered).collect();
    publish(
        &world,
        &run,
        &[&[notice(Word::Saturated)], &others[..], &[notice(Word::Saturated)]].concat(),
    )
    .await;
    assert_eq!(series(&world), 1, "it is still known");
    publish(&world, &run, &[&others[..], &[notice(Word::Saturated)]].concat()).await;
    let saturated = world.server.objects("events");
    let saturated = saturated.iter().filter(|event| event["reason"] == "Saturated");
    assert_eq!(saturated.count(), 2, "it is a new one");
}

#[test]
fn every_reason_fits_into_an_event() {
    for word in Word::ALL {
        let word = word.as_str();
        assert!(
            word.len() <= 128 && word.chars().all(|c| c.is_ascii_alphanumeric()),
            "{word}"
        );
    }
}

#[tokio::test]
async fn a_lost_event_is_counted_and_the_next_is_published() {
    let world = World::new();
    let object = world.object();
    world.server.fail(Fault::refuse("create", "events", 403).times(1));
    let run = Run::new(&object, &world.settings);
    publish(&world, &run, &[notice(Word::Saturated), notice(Word::LostRace)]).await;
    assert_eq!(world.cluster.counts().lost_events, 1);
    assert_eq!(world.server.objects("events").len(), 1);
}

#[tokio::test]
async fn an_event_of_a_namespace_that_is_deleted_is_not_lost() {
    let world = World::new();
    let object = world.object();
    world.server.terminate(NAMESPACE);
    let run = Run::new(&object, &world.settings);
    publish(&world, &run, &[notice(Word::Saturated)]).await;
    assert_eq!(world.server.objects("events").len(), 0);
    assert_eq!(world.cluster.counts().lost_events, 0);
}
