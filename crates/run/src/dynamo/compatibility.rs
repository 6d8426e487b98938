//! Requirements of a run that its Dynamo cannot meet.

use std::ops::RangeInclusive;

use perfval_api::{Dynamo, Reason, RouterMode, Why};

use super::version::Version;
use crate::observed::DynamoApi;
use crate::run::Run;

/// `<namespace>-<deployment name>` is a label value of Dynamo's pods: 63 − 12 (reference: Dynamo's operator).
const LONGEST_NAMESPACE: usize = 51;
/// First Dynamo version with least-loaded, power-of-two and device-aware routing; 1.0.2 silently does round-robin.
const LOAD_AWARE_ROUTING: Version = Version { major: 1, minor: 1 };

/// First version of Dynamo's operator with `runtimeVersionOverride`; earlier ones refuse the field.
const RUNTIME_VERSION: Version = Version { major: 1, minor: 4 };

/// Supported versions of Dynamo. No run is refused for another one alone, because it may work.
pub const SUPPORTED: RangeInclusive<Version> = Version { major: 1, minor: 1 }..=Version { major: 1, minor: 6 };

/// Reason why Dynamo cannot serve the run; no waiting changes it.
pub fn refusal(run: &Run<'_>, api: &DynamoApi) -> Option<Why> {
    namespace_too_long(run)
        .or_else(|| version_skew(run, api))
        .or_else(|| router_mode_unsupported(run, api))
}

fn namespace_too_long(run: &Run<'_>) -> Option<Why> {
    let namespace = run.namespace();
    (namespace.len() > LONGEST_NAMESPACE).then(|| {
        Why::new(
            Reason::Refused,
            format!(
                "namespace {namespace} has {} characters, and a label of Dynamo's pods holds {LONGEST_NAMESPACE}: \
                 use a namespace with a shorter name",
                namespace.len()
            ),
        )
    })
}

/// The version of Dynamo in the image: the version in the spec, else the version in the tag.
fn image_version(dynamo: &Dynamo) -> Option<Version> {
    let given = dynamo.runtime_version.as_deref().and_then(Version::parse);
    given.or_else(|| Version::from_image(&dynamo.image))
}

/// Returns true if a deployment may contain this version of its runtime. An operator of unknown version is taken to have the same.
pub fn takes_runtime_version(api: &DynamoApi, runtime: &str) -> bool {
    let operator = api.operator_version.as_deref().and_then(Version::parse);
    let version = operator.or_else(|| Version::parse(runtime));
    version.is_none_or(|version| version >= RUNTIME_VERSION)
}

/// Frontend, workers and Dynamo's operator must share MAJOR.MINOR; a version that cannot be read is not guessed.
fn version_skew(run: &Run<'_>, api: &DynamoApi) -> Option<Why> {
    let dynamo = run.spec().dynamo();
    let image = image_version(dynamo);
    let differs = |what: &str, other: Option<Version>| {
        let (image, other) = (image?, other?);
        (image != other).then(|| {
            Why::new(
                Reason::VersionSkew,
                format!(
                    "image {} is Dynamo {image}, {what} is {other}: use one version",
                    dynamo.image
                ),
            )
        })
    };
    differs(
        "spec.workload.dynamo.frontend.image",
        Version::from_image(&dynamo.frontend.image),
    )
    .or_else(|| {
        differs(
            "Dynamo's operator",
            api.operator_version.as_deref().and_then(Version::parse),
        )
    })
}

fn router_mode_unsupported(run: &Run<'_>, api: &DynamoApi) -> Option<Why> {
    let dynamo = run.spec().dynamo();
    let version = image_version(dynamo).or_else(|| api.operator_version.as_deref().and_then(Version::parse))?;
    let load_aware = match dynamo.router_mode {
        RouterMode::LeastLoaded | RouterMode::PowerOfTwo | RouterMode::DeviceAwareWeighted => true,
        RouterMode::RoundRobin | RouterMode::Random | RouterMode::Kv => false,
    };
    (load_aware && version < LOAD_AWARE_ROUTING).then(|| {
        Why::new(
            Reason::RouterModeUnsupported,
            format!(
                "Dynamo {version} does not know router mode {} and would silently do round-robin: \
                 use an image of 1.1 or later, or routerMode RoundRobin, Random or KV",
                dynamo.router_mode.flag()
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use kube::core::{ApiResource, GroupVersionKind};

    use super::*;

    #[test]
    fn operators_of_1_4_and_later_take_the_version_of_the_runtime() {
        for (version, runtime, takes) in [
            (Some("1.3.1"), "1.3.1", false),
            (Some("1.4.2"), "1.4.2", true),
            (Some("1.10.0"), "1.10.0", true),
            (Some("main"), "1.4.0", true),
            (None, "1.4.0", true),
            (None, "1.3.0", false),
        ] {
            let api = DynamoApi {
                resource: ApiResource::from_gvk(&GroupVersionKind::gvk(
                    "nvidia.com",
                    "v1beta1",
                    "DynamoGraphDeployment",
                )),
                operator_version: version.map(str::to_owned),
            };
            assert_eq!(takes_runtime_version(&api, runtime), takes, "{version:?} {runtime}");
        }
    }
}
