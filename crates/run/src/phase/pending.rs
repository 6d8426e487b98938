//! Pending: what must hold before anything is created.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::core::ResourceExt as _;
use perfval_api::{
    Environment, OnMissingDynamo, Phase, Reason, RouterMode, Verdict, Why, Workload, WorkloadStatus, condition,
};
use perfval_sizing::Seen;
use perfval_verdict::{conclusion, environment};

use super::definition::{Definition, Timed, give_up};
use crate::attendance::Limit;
use crate::decision::Effect;
use crate::observed::{DynamoApi, Need, Needs};
use crate::pass::{Pass, Step};
use crate::run::Run;
use crate::status::Truth;
use crate::version::Version;
use crate::{names, time};

/// `<namespace>-<deployment name>` is a label value of Dynamo's pods: 63 − 12 (reference: Dynamo's operator).
const LONGEST_NAMESPACE: usize = 51;
/// First Dynamo version with least-loaded, power-of-two and device-aware routing; 1.0.2 silently does round-robin.
const LOAD_AWARE_ROUTING: Version = Version { major: 1, minor: 1 };

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed {
        limit: |spec, _, began| Some(Limit::new(began, time::duration(&spec.timeouts.prerequisites))),
        expired,
    }),
};

fn needs(run: &Run<'_>) -> Needs {
    let storage = super::deploying::fills_cache(run.spec()).then_some(Need::StorageClasses);
    Needs::of([Need::Dynamo].into_iter().chain(storage))
}

fn expired(pass: &mut Pass<'_>, why: &Why) -> Step {
    if why.reason != Reason::DynamoNotInstalled {
        return give_up(pass, why.reason, why, "timeouts.prerequisites");
    }
    let verdict = match pass.run.spec().on_missing_dynamo {
        OnMissingDynamo::Fail => Verdict::Error,
        OnMissingDynamo::Skip => Verdict::Skipped,
    };
    Step::End(verdict, why.clone())
}

fn step(pass: &mut Pass<'_>) -> Step {
    // Before the finalizer: in such a namespace nothing is written but the status.
    if let Some(why) = namespace_refused(pass) {
        pass.condition(condition::PREREQUISITES_MET, false, &why);
        return Step::End(Verdict::Error, why);
    }
    if !pass.run.has_finalizer() {
        pass.act(Effect::EnsureFinalizer);
        return Step::work(Reason::Running, pass.status.message.clone().unwrap_or_default());
    }
    if pass.run.spec().gates.is_empty() {
        return Step::End(
            Verdict::Skipped,
            Why::new(Reason::NothingToJudge, "spec.gates is empty: nothing to judge"),
        );
    }
    let api = match &pass.seen.dynamo {
        Seen::Present(api) => api.clone(),
        Seen::Absent => {
            let why = Why::new(
                Reason::DynamoNotInstalled,
                "the cluster does not serve DynamoGraphDeployments (nvidia.com): install Dynamo's operator",
            );
            pass.condition(condition::PREREQUISITES_MET, false, &why);
            return Step::Wait(why);
        }
        unread => {
            let why = Why::new(
                Reason::DynamoUnreadable,
                format!(
                    "cannot tell whether Dynamo is installed: {}",
                    unread.unknown().unwrap_or_default()
                ),
            );
            pass.condition(condition::PREREQUISITES_MET, Truth::Unknown, &why);
            return Step::Wait(why);
        }
    };
    if let Some(why) = refusal(pass, &api) {
        pass.condition(condition::PREREQUISITES_MET, false, &why);
        return Step::End(Verdict::Error, why);
    }
    if let Some(why) = storage_unreadable(pass) {
        return Step::Wait(why);
    }
    record(pass, &api);
    let met = Why::new(
        Reason::PrerequisitesMet,
        format!(
            "asked: {}; Dynamo is served as {} (operator {})",
            conclusion::asked(pass.run.spec()),
            api.resource.api_version,
            api.operator_version.as_deref().unwrap_or("of unknown version")
        ),
    );
    pass.condition(condition::PREREQUISITES_MET, true, &met);
    Step::go(Phase::Sizing, Reason::PrerequisitesMet, "counting free GPUs")
}

/// The first prerequisite that no waiting can change.
fn refusal(pass: &Pass<'_>, api: &DynamoApi) -> Option<Why> {
    namespace_too_long(pass)
        .or_else(|| version_skew(pass, api))
        .or_else(|| router_mode_unsupported(pass, api))
        .or_else(|| aiperf_image_missing(pass))
        .or_else(|| storage_class_missing(pass))
}

fn namespace_refused(pass: &Pass<'_>) -> Option<Why> {
    let namespace = pass.run.namespace();
    pass.run.settings.refuses(namespace).then(|| {
        Why::new(
            Reason::NamespaceRefused,
            format!(
                "this operator runs nothing in namespace {namespace}: create the object in another one, or take \
                 {namespace} from the operator's --refused-namespaces"
            ),
        )
    })
}

fn namespace_too_long(pass: &Pass<'_>) -> Option<Why> {
    let namespace = pass.run.namespace();
    (namespace.len() > LONGEST_NAMESPACE).then(|| {
        Why::new(
            Reason::NamespaceTooLong,
            format!(
                "namespace {namespace} has {} characters, and a label of Dynamo's pods holds {LONGEST_NAMESPACE}: \
                 use a namespace with a shorter name",
                namespace.len()
            ),
        )
    })
}

/// The version of Dynamo in the image: what the spec says, else what the tag says.
fn image_version(workload: &Workload) -> Option<Version> {
    let given = workload.runtime_version.as_deref().and_then(Version::parse);
    given.or_else(|| Version::of_image(&workload.image))
}

/// Frontend, workers and Dynamo's operator must share MAJOR.MINOR; a version that cannot be read is not guessed.
fn version_skew(pass: &Pass<'_>, api: &DynamoApi) -> Option<Why> {
    let workload = &pass.run.spec().workload;
    let image = image_version(workload);
    let differs = |what: &str, other: Option<Version>| {
        let (image, other) = (image?, other?);
        (image != other).then(|| {
            Why::new(
                Reason::VersionSkew,
                format!(
                    "image {} is Dynamo {image}, {what} is {other}: use one version",
                    workload.image
                ),
            )
        })
    };
    differs(
        "spec.workload.frontendImage",
        Version::of_image(&workload.frontend_image),
    )
    .or_else(|| {
        differs(
            "Dynamo's operator",
            api.operator_version.as_deref().and_then(Version::parse),
        )
    })
}

fn router_mode_unsupported(pass: &Pass<'_>, api: &DynamoApi) -> Option<Why> {
    let workload = &pass.run.spec().workload;
    let version = image_version(workload).or_else(|| api.operator_version.as_deref().and_then(Version::parse))?;
    let load_aware = match workload.router_mode {
        RouterMode::LeastLoaded | RouterMode::PowerOfTwo | RouterMode::DeviceAwareWeighted => true,
        RouterMode::RoundRobin | RouterMode::Random | RouterMode::Kv => false,
    };
    (load_aware && version < LOAD_AWARE_ROUTING).then(|| {
        Why::new(
            Reason::RouterModeUnsupported,
            format!(
                "Dynamo {version} does not know router mode {} and would silently do round-robin: \
                 use an image of 1.1 or later, or routerMode RoundRobin, Random or KV",
                workload.router_mode.flag()
            ),
        )
    })
}

fn aiperf_image_missing(pass: &Pass<'_>) -> Option<Why> {
    let missing = pass.run.spec().benchmark.image.is_empty() && pass.run.settings.aiperf_image.is_none();
    missing.then(|| {
        Why::new(
            Reason::AiperfImageMissing,
            "no image with AIPerf: set spec.benchmark.image, or the operator's --aiperf-image",
        )
    })
}

fn storage_class_missing(pass: &Pass<'_>) -> Option<Why> {
    let cache = pass
        .run
        .spec()
        .model
        .cache
        .as_ref()
        .filter(|cache| cache.size.is_some())?;
    let classes = pass.seen.storage_classes.present()?;
    let is_default = |class: &StorageClass| {
        class
            .annotations()
            .get("storageclass.kubernetes.io/is-default-class")
            .is_some_and(|value| value == "true")
    };
    match &cache.storage_class_name {
        Some(name) if classes.iter().any(|class| class.name_any() == *name) => None,
        None if classes.iter().any(is_default) => None,
        Some(name) => Some(Why::new(
            Reason::StorageClassMissing,
            format!("StorageClass {name} does not exist: correct spec.model.cache.storageClassName"),
        )),
        None => Some(Why::new(
            Reason::StorageClassMissing,
            "spec.model.cache.size needs a StorageClass, and the cluster has no default one: \
             set spec.model.cache.storageClassName",
        )),
    }
}

fn storage_unreadable(pass: &Pass<'_>) -> Option<Why> {
    let unread = super::deploying::fills_cache(pass.run.spec())
        .then(|| pass.seen.storage_classes.unknown())
        .flatten()?;
    Some(Why::new(
        Reason::StorageUnreadable,
        format!("cannot read StorageClasses: {unread}"),
    ))
}

/// What later passes and the reader of the status need to know of the deployment.
fn record(pass: &mut Pass<'_>, api: &DynamoApi) {
    let spec = pass.run.spec();
    pass.status.workload = Some(WorkloadStatus {
        name: names::deployment(&pass.run.id()),
        api_version: api.resource.api_version.clone(),
        dynamo_version: api.operator_version.clone(),
        runtime_version: spec
            .workload
            .runtime_version
            .clone()
            .filter(|_| api.takes_runtime_version),
        router_mode: spec.workload.router_mode.flag().into(),
        ..WorkloadStatus::default()
    });
    pass.status.environment = Some(Environment {
        model: spec.model.name.clone(),
        image: spec.workload.image.clone(),
        dynamo: api.operator_version.clone(),
        kubernetes: pass.seen.kubernetes.clone(),
        settings: Some(environment::settings(spec)),
        ..Environment::default()
    });
}
