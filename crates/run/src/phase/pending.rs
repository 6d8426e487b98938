//! Pending: what must hold before anything is created.

use perfval_api::{DeploymentState, Environment, OnMissing, Phase, Reason, Verdict, Why, WorkloadStatus};
use perfval_sizing::Seen;
use perfval_verdict::environment;
use perfval_verdict::gate::nothing_to_judge;

use super::definition::{Definition, Timed, give_up};
use crate::attendance::Limit;
use crate::build::has_storage_class;
use crate::decision::Effect;
use crate::dynamo::compatibility;
use crate::observed::{DynamoApi, Need, Needs};
use crate::pass::{Pass, Step};
use crate::run::Run;
use crate::{names, time};

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed {
        limit: |spec, _, began| Some(Limit::new(began, time::duration(&spec.timeouts.prerequisites))),
        expired,
    }),
};

fn needs(run: &Run<'_>) -> Needs {
    if run.settings.refuses(run.namespace()) {
        return Needs::default();
    }
    let dynamo = run.has_finalizer().then_some(Need::Dynamo);
    let storage = (run.has_finalizer() && super::deploying::fills_cache(run.spec())).then_some(Need::StorageClasses);
    Needs::new([Need::Permission].into_iter().chain(dynamo).chain(storage))
}

fn expired(pass: &mut Pass<'_>, why: &Why) -> Step {
    if why.reason != Reason::DynamoNotInstalled {
        return give_up(pass, why.reason, why, "timeouts.prerequisites");
    }
    let verdict = match pass.run.spec().dynamo().on_missing {
        OnMissing::Fail => Verdict::Error,
        OnMissing::Skip => Verdict::Skipped,
    };
    Step::End(verdict, why.clone())
}

fn step(pass: &mut Pass<'_>) -> Step {
    // Before the finalizer: in such a namespace nothing is written but the status.
    if let Some(why) = namespace_refused(pass) {
        return Step::End(Verdict::Error, why);
    }
    // An administrator may allow it later, and manifests may arrive in any order.
    if let Some(why) = namespace_not_allowed(pass) {
        return Step::Wait(why);
    }
    if !pass.run.has_finalizer() {
        pass.act(Effect::EnsureFinalizer);
        return Step::work(Reason::Running, pass.status.message.clone().unwrap_or_default());
    }
    if let Some(nothing) = nothing_to_judge(&pass.run.spec().gates) {
        return Step::End(Verdict::Skipped, Why::new(Reason::NothingToJudge, nothing));
    }
    let api = match &pass.seen.dynamo {
        Seen::Present(api) => api.clone(),
        Seen::Absent => {
            return Step::wait(
                Reason::DynamoNotInstalled,
                "the cluster does not serve DynamoGraphDeployments (nvidia.com): install Dynamo's operator",
            );
        }
        unread => {
            let what = "it is not known whether Dynamo is installed";
            return Step::unread(Reason::CallFailed, what, unread);
        }
    };
    if let Some(why) = refusal(pass, &api) {
        return Step::End(Verdict::Error, why);
    }
    if let Some(why) = storage_unreadable(pass) {
        return Step::Wait(why);
    }
    record(pass, &api);
    Step::go(Phase::Sizing, Reason::Running, "counting free GPUs")
}

/// The first prerequisite that no waiting can change.
fn refusal(pass: &Pass<'_>, api: &DynamoApi) -> Option<Why> {
    compatibility::refusal(pass.run, api)
        .or_else(|| aiperf_image_refused(pass))
        .or_else(|| storage_class_missing(pass))
}

fn namespace_refused(pass: &Pass<'_>) -> Option<Why> {
    let namespace = pass.run.namespace();
    pass.run.settings.refuses(namespace).then(|| {
        Why::new(
            Reason::Refused,
            format!(
                "this operator runs nothing in namespace {namespace}: create the object in another one, or take \
                 {namespace} from the operator's --refused-namespaces"
            ),
        )
    })
}

/// Message about a namespace in which no administrator allows runs. Only an administrator may ask for the rights of the
/// operator, and so sees the command.
pub fn not_allowed(namespace: &str) -> String {
    format!(
        "the operator may create nothing in namespace {namespace} yet: an administrator allows it with the command that \
         `kubectl perfval doctor -n {namespace}` shows"
    )
}

fn namespace_not_allowed(pass: &Pass<'_>) -> Option<Why> {
    let namespace = pass.run.namespace();
    match &pass.seen.permission {
        Seen::Present(true) => None,
        Seen::Present(false) => Some(Why::new(Reason::Refused, not_allowed(namespace))),
        unread => Some(Why::new(
            Reason::CallFailed,
            format!(
                "it is not known whether the operator may create anything in namespace {namespace}: {}",
                unread.unknown().unwrap_or("no answer")
            ),
        )),
    }
}

fn aiperf_image_refused(pass: &Pass<'_>) -> Option<Why> {
    let (image, settings) = (&pass.run.spec().benchmark.image, pass.run.settings);
    if image.is_empty() {
        return settings.aiperf_image.is_none().then(|| {
            Why::new(
                Reason::AIPerfMissing,
                "no image with AIPerf: set the operator's --aiperf-image, because spec.benchmark.image is empty",
            )
        });
    }
    (!settings.permits_benchmark(image)).then(|| {
        Why::new(
            Reason::Refused,
            format!(
                "the operator does not permit the AIPerf image {image}: remove spec.benchmark.image, or add the image to \
                 the operator's --benchmark-images"
            ),
        )
    })
}

fn storage_class_missing(pass: &Pass<'_>) -> Option<Why> {
    let template = super::deploying::own_cache(pass.run.spec())?;
    let classes = pass.seen.storage_classes.present()?;
    if has_storage_class(template, classes) {
        return None;
    }
    Some(match &template.storage_class_name {
        Some(name) => Why::new(
            Reason::StorageClassMissing,
            format!(
                "StorageClass {name} does not exist: correct spec.model.cache.volumeClaimTemplate.storageClassName"
            ),
        ),
        None => Why::new(
            Reason::StorageClassMissing,
            "spec.model.cache.volumeClaimTemplate needs a StorageClass, and the cluster has no default one: \
             set its storageClassName",
        ),
    })
}

fn storage_unreadable(pass: &Pass<'_>) -> Option<Why> {
    let unread = super::deploying::fills_cache(pass.run.spec())
        .then(|| pass.seen.storage_classes.unknown())
        .flatten()?;
    Some(Why::new(
        Reason::CallFailed,
        format!("cannot read StorageClasses: {unread}"),
    ))
}

/// Records the facts of the deployment that later passes and readers of the status need.
fn record(pass: &mut Pass<'_>, api: &DynamoApi) {
    let spec = pass.run.spec();
    pass.status.workload = Some(WorkloadStatus {
        name: names::deployment(&pass.run.id()),
        ..WorkloadStatus::default()
    });
    pass.status.state.deployment = Some(DeploymentState {
        api_version: api.resource.api_version.clone(),
        router_mode: spec.dynamo().router_mode.flag().into(),
        ..DeploymentState::default()
    });
    let version = spec.dynamo().runtime_version.clone();
    pass.status.state.runtime_version = version.filter(|version| compatibility::takes_runtime_version(api, version));
    pass.status.state.environment = Some(Environment {
        model: spec.model.name.clone(),
        revision: spec.model.revision.clone(),
        image: spec.dynamo().image.clone(),
        dynamo: api.operator_version.clone(),
        kubernetes: pass.seen.kubernetes.clone(),
        settings: Some(environment::settings(spec)),
        ..Environment::default()
    });
}
