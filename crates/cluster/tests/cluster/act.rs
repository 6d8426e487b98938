//! Every effect: done, done again, refused.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
use kube::core::ResourceExt as _;
use perfval_api::meta::FINALIZER;
use perfval_api::{AccessMode, ClaimTemplate, PerfValidation, Reason, Verdict, Why};
use perfval_cluster::{Class, Error};
use perfval_run::build::{PackedTrial, SHA256};
use perfval_run::observed::{ChildKind, ChildRef, Need};
use perfval_run::{Effect, Run, build, dynamo};
use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use crate::world::{NAME, NAMESPACE, World};

impl World {
    /// Carries out effects on the object as it is now.
    async fn act(&self, effects: &[Effect]) -> Result<(), Error> {
        self.act_on(&self.object(), effects).await
    }

    /// Carries out effects on a copy of the object.
    async fn act_on(&self, object: &PerfValidation, effects: &[Effect]) -> Result<(), Error> {
        let run = Run::new(object, &self.settings);
        self.cluster.act(&run, effects).await.map(drop)
    }

    /// Everything in the cluster but what changes with each look.
    fn objects(&self) -> Vec<Value> {
        let plurals = [
            "perfvalidations",
            "jobs",
            "services",
            "configmaps",
            "persistentvolumeclaims",
            "resourceclaimtemplates",
            "networkpolicies",
            "dynamographdeployments",
        ];
        plurals.iter().flat_map(|plural| self.server.objects(plural)).collect()
    }
}

#[track_caller]
fn assert_failed(error: &Error, change: &str, class: Class) {
    assert_eq!((error.change().name, error.class()), (change, class), "{error}");
}

/// Every creating effect of a run, with its plural.
pub fn creations(run: &Run<'_>) -> Vec<(&'static str, Effect)> {
    let template = ClaimTemplate {
        storage: "10Gi".to_owned(),
        storage_class_name: None,
        access_modes: vec![AccessMode::ReadWriteOnce],
    };
    vec![
        (
            "resourceclaimtemplates",
            Effect::CreateClaimTemplate(Box::new(build::claim_template(run))),
        ),
        (
            "persistentvolumeclaims",
            Effect::CreateCacheClaim(Box::new(build::cache_claim(run, &template))),
        ),
        ("jobs", Effect::CreateCacheJob(Box::new(build::cache_job(run)))),
        (
            "services",
            Effect::CreateWorkersService(Box::new(build::workers_service(run))),
        ),
        (
            "networkpolicies",
            Effect::CreateNetworkPolicy(Box::new(build::network_policy(run, &[]))),
        ),
        (
            "dynamographdeployments",
            Effect::CreateDeployment(Box::new(dynamo::deployment(run))),
        ),
        ("jobs", Effect::CreateTrialJob(Box::new(build::trial_job(run, 1)))),
    ]
}

/// Kind of the objects that creations create.
fn kind_of(plural: &str) -> &'static str {
    match plural {
        "resourceclaimtemplates" => "ResourceClaimTemplate",
        "persistentvolumeclaims" => "PersistentVolumeClaim",
        "jobs" => "Job",
        "services" => "Service",
        "networkpolicies" => "NetworkPolicy",
        "dynamographdeployments" => "DynamoGraphDeployment",
        other => panic!("{other}"),
    }
}

pub fn save_results(run: &Run<'_>) -> Effect {
    save_payloads(run, &[(1, "payload".to_owned())].into())
}

fn save_payloads(run: &Run<'_>, payloads: &BTreeMap<i64, String>) -> Effect {
    let pack = |(number, payload): (&i64, &String)| (*number, PackedTrial::new(payload));
    let why = Why::new(Reason::GatesMet, "every gate is met");
    Effect::SaveResults(Box::new(build::results(
        run,
        Verdict::Passed,
        &why,
        &payloads.iter().map(pack).collect(),
        &BTreeMap::new(),
    )))
}

/// Digest that the pass after a write finds without reading the trials' logs.
async fn written(world: &World) -> (Option<String>, bool) {
    let seen = Box::pin(world.observe(Need::Results)).await;
    (seen.written_results, seen.packed_trials.is_empty())
}

#[tokio::test(start_paused = true)]
async fn results_that_were_just_written_need_no_logs() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    world.act(&[save_results(&run)]).await.unwrap();
    let maps = world.server.objects("configmaps");
    let (name, digest) = (
        &maps[0]["metadata"]["name"],
        &maps[0]["metadata"]["annotations"][SHA256],
    );
    assert_eq!(written(&world).await, (digest.as_str().map(str::to_owned), true));
    assert_eq!(written(&world).await, (None, false), "a later pass reads them");
    // Another client writes or deletes them in between.
    world.act(&[save_results(&run)]).await.unwrap();
    let name = name.as_str().unwrap();
    world.server.edit("configmaps", NAMESPACE, name, |map| {
        map["metadata"]["annotations"][SHA256] = "another".into();
    });
    assert_eq!(written(&world).await, (None, false));
    world.act(&[save_results(&run)]).await.unwrap();
    world.server.delete("configmaps", NAMESPACE, name);
    assert_eq!(written(&world).await, (None, false));
    // The object changes in between.
    world.act(&[save_results(&run)]).await.unwrap();
    world.edit(|object| object["metadata"]["labels"] = json!({"team": "a"}));
    assert_eq!(written(&world).await, (None, false));
    world.act(&[save_results(&run)]).await.unwrap();
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(written(&world).await, (None, false), "long ago");
}

#[tokio::test]
async fn one_list_shows_the_results_of_all_runs_with_those_just_written() {
    let world = World::new();
    let object = world.object();
    let save = save_results(&Run::new(&object, &world.settings));
    world.act(std::slice::from_ref(&save)).await.unwrap();
    world.server.forget_calls();
    let seen = Box::pin(world.observe(Need::Results)).await;
    assert!(seen.written_results.is_some());
    assert_eq!(seen.saved_results.present().map(Vec::len), Some(1));
    assert_eq!(world.count_calls("configmaps"), 1);
    // Where they cannot be listed, they are found all the same.
    world.act(&[save]).await.unwrap();
    world.server.fail(Fault::refuse("list", "configmaps", 403));
    let seen = Box::pin(world.observe(Need::Results)).await;
    assert!(seen.written_results.is_some() && seen.saved_results.unknown().is_some());
}

#[tokio::test]
async fn acting_twice_gives_the_same_world_as_acting_once() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let mut effects = vec![Effect::EnsureFinalizer, save_results(&run)];
    effects.extend(creations(&run).into_iter().map(|(_, effect)| effect));
    world.act(&effects).await.unwrap();
    let once = world.objects();
    assert_eq!(once.len(), 9, "{once:#?}");
    world.act(&effects).await.unwrap();
    assert_eq!(world.objects(), once);
    // Even a process that has not seen its own finalizer yet.
    let stale = world.act_on(&object, &[Effect::EnsureFinalizer]).await.unwrap_err();
    assert_eq!(stale.class(), Class::Conflict);
    assert_eq!(world.objects(), once);
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_is_lost_is_found_again() {
    let world = World::new();
    let object = world.object();
    for (plural, effect) in creations(&Run::new(&object, &world.settings)) {
        world.server.fail(Fault::lose_answer("create", plural).times(1));
        let lost = world.act(std::slice::from_ref(&effect)).await.unwrap_err();
        assert_eq!(lost.class(), Class::Transient, "{lost}");
        world.act(&[effect]).await.unwrap();
        world.server.heal();
    }
}

#[tokio::test]
async fn a_namesake_of_another_owner_is_left_alone() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let mut all = creations(&run);
    all.push(("configmaps", save_results(&run)));
    for (plural, effect) in all {
        let before = world.objects();
        world.act(std::slice::from_ref(&effect)).await.unwrap();
        let created = world
            .objects()
            .into_iter()
            .find(|found| !before.contains(found))
            .unwrap();
        let name = created["metadata"]["name"].as_str().unwrap();
        let strangers = world.server.edit(plural, NAMESPACE, name, |object| {
            object["metadata"]["ownerReferences"][0]["uid"] = "another-owner".into();
        });
        let error = world.act(&[effect]).await.unwrap_err();
        assert_failed(&error, "NameTaken", Class::Permanent);
        assert_eq!(world.server.get(plural, NAMESPACE, name), Some(strangers));
    }
}

/// An edit of the template creates no other claim, and changes none.
#[tokio::test]
async fn a_cache_claim_of_an_earlier_spec_is_refused_by_what_it_lacks() {
    use AccessMode::{ReadWriteMany, ReadWriteOnce};
    let world = World::new();
    let object = world.object();
    let create = |storage: &str, class: Option<&str>, mode: AccessMode| {
        let template = ClaimTemplate {
            storage: storage.to_owned(),
            storage_class_name: class.map(str::to_owned),
            access_modes: vec![mode],
        };
        let claim = build::cache_claim(&Run::new(&object, &world.settings), &template);
        [Effect::CreateCacheClaim(Box::new(claim))]
    };
    world.act(&create("10Gi", Some("fast"), ReadWriteOnce)).await.unwrap();
    let once = world.objects();
    for (storage, class) in [("10240Mi", None), ("5Gi", Some("slow"))] {
        world.act(&create(storage, class, ReadWriteOnce)).await.unwrap();
    }
    for (wanted, lacks) in [
        (create("10241Mi", None, ReadWriteOnce), "requests 10Gi, not 10241Mi;"),
        (
            create("10Gi", None, ReadWriteMany),
            "has ReadWriteOnce, not ReadWriteMany;",
        ),
    ] {
        let error = world.act(&wanted).await.unwrap_err();
        assert_failed(&error, "NameTaken", Class::Permanent);
        let claim = format!("PersistentVolumeClaim {NAMESPACE}/{NAME}-weights: it exists and {lacks} delete it");
        assert!(error.to_string().contains(&claim), "{error}");
    }
    assert_eq!(world.objects(), once);
}

#[tokio::test]
async fn a_refused_create_names_the_object_and_the_next_step() {
    for (code, class, next) in [
        (403, Class::Permanent, "give the operator this right"),
        (404, Class::Permanent, "check that the namespace exists"),
        (409, Class::Conflict, "it is read and decided again"),
        (422, Class::Permanent, "correct what the answer names"),
        (429, Class::Transient, "it is tried again"),
        (500, Class::Transient, "it is tried again"),
    ] {
        let world = World::new();
        let object = world.object();
        for (plural, effect) in creations(&Run::new(&object, &world.settings)) {
            world.server.fail(Fault::refuse("create", plural, code));
            let error = world.act(&[effect]).await.unwrap_err();
            assert_failed(&error, "Create", class);
            let text = error.to_string();
            let call = format!("create {} {NAMESPACE}/", kind_of(plural));
            assert!(text.starts_with(&call) && text.contains(next), "{text}");
            world.server.heal();
        }
        assert_eq!(world.objects().len(), 1);
    }
}

#[tokio::test]
async fn effects_after_a_failed_one_are_not_carried_out() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    world.fail(Fault::refuse("create", "resourceclaimtemplates", 500));
    let effects: Vec<Effect> = creations(&run).into_iter().map(|(_, effect)| effect).collect();
    world.act(&effects).await.unwrap_err();
    assert_eq!(world.objects().len(), 1);
}

#[tokio::test]
async fn the_finalizers_of_others_stay() {
    let world = World::new();
    world.act(&[Effect::EnsureFinalizer]).await.unwrap();
    assert_eq!(world.object().finalizers(), [FINALIZER]);
    world.edit(|object| object["metadata"]["finalizers"] = json!(["others.example/hold"]));
    world.act(&[Effect::EnsureFinalizer]).await.unwrap();
    assert_eq!(world.object().finalizers(), ["others.example/hold", FINALIZER]);

    let stale = world.object();
    let mut older = stale.clone();
    older.metadata.finalizers = Some(vec!["others.example/hold".into()]);
    let error = world.act_on(&older, &[Effect::EnsureFinalizer]).await.unwrap_err();
    assert_eq!(error.class(), Class::Conflict, "{error}");
    assert_eq!(world.object().finalizers(), stale.finalizers());

    world.edit(|object| object["metadata"]["finalizers"] = json!([FINALIZER, "others.example/hold"]));
    let error = world.act_on(&stale, &[Effect::ReleaseFinalizer]).await.unwrap_err();
    assert_failed(&error, "Finalizer", Class::Conflict);

    world.act(&[Effect::ReleaseFinalizer]).await.unwrap();
    assert_eq!(world.object().finalizers(), ["others.example/hold"]);
    world.act(&[Effect::ReleaseFinalizer]).await.unwrap();
}

#[tokio::test]
async fn releasing_an_object_that_is_gone_is_success() {
    let world = World::new();
    world.act(&[Effect::EnsureFinalizer]).await.unwrap();
    let object = world.object();
    world.server.delete("perfvalidations", NAMESPACE, NAME);
    world.act_on(&object, &[Effect::ReleaseFinalizer]).await.unwrap();
    assert!(world.server.get("perfvalidations", NAMESPACE, NAME).is_none());
    world.act_on(&object, &[Effect::ReleaseFinalizer]).await.unwrap();
}

/// One child of every kind, with its plural.
pub fn children(world: &World) -> Vec<(&'static str, ChildRef)> {
    [
        ("batch/v1", "Job", "jobs", ChildKind::Job),
        (
            "nvidia.com/v1beta1",
            "DynamoGraphDeployment",
            "dynamographdeployments",
            ChildKind::Deployment,
        ),
        ("v1", "Service", "services", ChildKind::Service),
        (
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            "resourceclaimtemplates",
            ChildKind::ClaimTemplate,
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "networkpolicies",
            ChildKind::NetworkPolicy,
        ),
        ("v1", "ConfigMap", "configmaps", ChildKind::Results),
    ]
    .into_iter()
    .map(|(api_version, kind, plural, of)| {
        let child = world.put_child(api_version, kind, "child", &json!({}));
        let uid = child["metadata"]["uid"].as_str().expect("a uid").to_owned();
        let name = "child".to_owned();
        (plural, ChildRef { kind: of, name, uid })
    })
    .collect()
}

#[tokio::test]
async fn a_child_is_deleted_and_a_namesake_is_not() {
    let world = World::new();
    for (plural, child) in children(&world) {
        let namesake = ChildRef {
            uid: "an-earlier-one".into(),
            ..child.clone()
        };
        world.act(&[Effect::Delete(namesake)]).await.unwrap();
        assert!(world.server.get(plural, NAMESPACE, "child").is_some(), "{plural}");
        world.act(&[Effect::Delete(child.clone())]).await.unwrap();
        assert!(world.server.get(plural, NAMESPACE, "child").is_none(), "{plural}");
        world.act(&[Effect::Delete(child)]).await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_delete_is_an_error() {
    for (code, class) in [
        (403, Class::Permanent),
        (429, Class::Transient),
        (500, Class::Transient),
    ] {
        let world = World::new();
        for (plural, child) in children(&world) {
            world.server.fail(Fault::refuse("delete", plural, code));
            let error = world.act(&[Effect::Delete(child)]).await.unwrap_err();
            assert_failed(&error, "Delete", class);
        }
    }
}

#[tokio::test]
async fn a_refused_delete_keeps_no_other_delete_back() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let mut effects: Vec<Effect> = children(&world)
        .into_iter()
        .map(|(_, child)| Effect::Delete(child))
        .collect();
    effects.push(save_results(&run));
    world.server.fail(Fault::refuse("delete", "jobs", 403));
    world.server.fail(Fault::refuse("delete", "services", 500));
    let error = world.act(&effects).await.unwrap_err();
    assert!(error.to_string().contains("delete Job"), "the first: {error}");
    let left = |plural| world.server.get(plural, NAMESPACE, "child").is_some();
    assert!(left("jobs") && left("services"));
    assert!(!left("dynamographdeployments") && !left("resourceclaimtemplates"));
    assert_eq!(
        world.server.objects("configmaps"),
        Vec::<Value>::new(),
        "only deletes go on"
    );
}

#[tokio::test]
async fn a_deployment_is_deleted_when_its_recorded_version_is_not_served_any_more() {
    let world = World::new();
    let of_deployment = |(_, child): &(&str, ChildRef)| child.kind == ChildKind::Deployment;
    let (plural, child) = children(&world).into_iter().find(of_deployment).unwrap();
    world.server.install_dynamo(&["v1alpha1"], None);
    world.act(&[Effect::Delete(child.clone())]).await.unwrap();
    assert!(world.server.get(plural, NAMESPACE, "child").is_none());
    // Gone under every version.
    world.act(&[Effect::Delete(child)]).await.unwrap();
}

#[tokio::test]
async fn the_object_deletes_itself_by_uid() {
    let world = World::new();
    let mut object = world.object();
    let uid = object.metadata.uid.replace("an-earlier-one".into());
    let error = world.act_on(&object, &[Effect::DeleteSelf]).await.unwrap_err();
    assert_eq!(error.class(), Class::Conflict, "{error}");
    assert!(world.server.get("perfvalidations", NAMESPACE, NAME).is_some());
    object.metadata.uid = uid;
    world.act_on(&object, &[Effect::DeleteSelf]).await.unwrap();
    assert!(world.server.get("perfvalidations", NAMESPACE, NAME).is_none());
    // Gone is gone.
    world.act_on(&object, &[Effect::DeleteSelf]).await.unwrap();
}

#[tokio::test]
async fn an_object_that_was_edited_meanwhile_does_not_delete_itself() {
    let world = World::new();
    let decided_on = world.object();
    world.edit(|object| object["metadata"]["annotations"] = json!({"perfvalidation.dev/rerun": "again"}));
    let error = world.act_on(&decided_on, &[Effect::DeleteSelf]).await.unwrap_err();
    assert_failed(&error, "Delete", Class::Conflict);
    assert!(
        world.server.get("perfvalidations", NAMESPACE, NAME).is_some(),
        "its owner asked for another run"
    );
}

#[tokio::test]
async fn results_are_written_again_with_more_in_them() {
    let world = World::new();
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let payloads = |trials: &[i64]| {
        trials
            .iter()
            .map(|trial| (*trial, format!("payload {trial}")))
            .collect()
    };
    let save = |trials: &[i64]| save_payloads(&run, &payloads(trials));
    world.act(&[save(&[1])]).await.unwrap();
    world.act(&[save(&[1, 2])]).await.unwrap();
    let saved = &world.server.objects("configmaps")[0];
    assert!(saved["binaryData"]["trial-2.json.gz"].is_string(), "{saved:#}");
    world.server.fail(Fault::refuse("patch", "configmaps", 413));
    let error = world.act(&[save(&[1, 2, 3])]).await.unwrap_err();
    assert_failed(&error, "SaveResults", Class::Permanent);
}

#[tokio::test]
async fn objects_are_created_as_built() {
    let world = World::new();
    let object = world.object();
    let template = build::claim_template(&Run::new(&object, &world.settings));
    world
        .act(&[Effect::CreateClaimTemplate(Box::new(template.clone()))])
        .await
        .unwrap();
    let stored = world
        .server
        .get("resourceclaimtemplates", NAMESPACE, &template.name_any())
        .unwrap();
    let stored: ResourceClaimTemplate = serde_json::from_value(stored).unwrap();
    assert_eq!(stored.spec, template.spec);
    assert_eq!(stored.metadata.owner_references, template.metadata.owner_references);
}
