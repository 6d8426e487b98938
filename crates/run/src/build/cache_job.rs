use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, PodSecurityContext, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::load::whole_seconds;
use super::model::{CACHE_PATH, cache_mount, cache_volume, token_env};
use super::pod::{
    job, mount, ours_win, pin, restricted_container, restricted_pod, scratch, templated, templated_container, var,
};
use crate::names::dynamo::USER;
use crate::{Run, names};

/// Downloads the model `argv[1]` at the commit `argv[2]` (empty: the newest), and makes it the cache's `main`: Dynamo's own
/// download, the frontend's tokenizer and AIPerf have no flag for a revision. Of `argv[3]` it downloads the tokenizer only.
/// Constant: what the spec contains is an argument, never part of the program.
const FILL: &str = "\
import pathlib, sys
from huggingface_hub import snapshot_download
model, revision, *tokenizers = sys.argv[1:]
snapshot = pathlib.Path(snapshot_download(model, revision=revision or None))
main = snapshot.parents[1] / 'refs' / 'main'
main.parent.mkdir(exist_ok=True)
main.write_text(snapshot.name)
for tokenizer in tokenizers:
    snapshot_download(tokenizer, allow_patterns=['*.json', '*.txt', '*.model', '*.tiktoken', '*.jinja', '*.py'])
";

/// The Job that fills the model cache, on the node under test, where its volume has to be.
pub fn cache_job(run: &Run<'_>) -> Job {
    let deadline = whole_seconds(&run.spec().timeouts.model_cache);
    job(run, names::cache_job(&run.id()), names::MODEL_CACHE, deadline, pod(run))
}

fn pod(run: &Run<'_>) -> PodSpec {
    let security = PodSecurityContext {
        fs_group: Some(USER),
        ..restricted_pod(USER)
    };
    let placement = run.placement().cloned().unwrap_or_default();
    PodSpec {
        affinity: Some(pin(&placement.node)),
        containers: vec![container(run)],
        volumes: Some(cache_volume(run).into_iter().chain([scratch("tmp")]).collect()),
        ..templated(run, Some(security))
    }
}

fn container(run: &Run<'_>) -> Container {
    let dynamo = run.spec().dynamo();
    // With the user's, for a proxy or a mirror (HTTPS_PROXY, HF_ENDPOINT). Only this pod is set to go online: an image
    // may be built to stay offline.
    let ours = [
        var("HF_HOME", CACHE_PATH),
        var("HF_HUB_OFFLINE", "0"),
        var("HOME", "/tmp"),
        var("DO_NOT_TRACK", "1"),
    ];
    let mounts = cache_mount(run, false).into_iter();
    let ours = ours.into_iter().chain(token_env(run)).collect();
    Container {
        name: names::FILL_CONTAINER.to_owned(),
        image: Some(dynamo.image.clone()),
        command: Some(["python3", "-c", FILL].map(str::to_owned).into()),
        args: Some(arguments(run)),
        env: Some(ours_win(&dynamo.env, ours)),
        // No memory limit: the page cache of the written files counts and would kill large downloads.
        resources: Some(ResourceRequirements {
            requests: Some(
                [("cpu", "100m"), ("memory", "512Mi")]
                    .map(|(k, v)| (k.to_owned(), Quantity(v.to_owned())))
                    .into(),
            ),
            ..ResourceRequirements::default()
        }),
        volume_mounts: Some(mounts.chain([mount("tmp", "/tmp")]).collect()),
        ..templated_container(run, Some(restricted_container()))
    }
}

fn arguments(run: &Run<'_>) -> Vec<String> {
    let (model, tokenizer) = (&run.spec().model, &run.spec().benchmark.tokenizer);
    // A path is in AIPerf's image, and `builtin` is a tokenizer of AIPerf's own.
    let is_on_hub = !tokenizer.starts_with('/') && !matches!(tokenizer.as_str(), "" | "builtin");
    let mut args = vec![model.name.clone(), model.revision.clone().unwrap_or_default()];
    args.extend((is_on_hub && *tokenizer != model.name).then(|| tokenizer.clone()));
    args
}
