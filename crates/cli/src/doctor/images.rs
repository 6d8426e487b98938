use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LocalObjectReference, Node, Secret, SecretKeySelector};
use kube::Api;
use kube::api::ListParams;

use super::asked::Asked;
use super::check::Check;
use crate::error::Error;

/// Checks if the images of the manifest are on the nodes already, and if its Secrets exist. Only the kubelet can find
/// out if a registry gives an image out.
pub async fn checks(asked: &Asked<'_>) -> Vec<Check> {
    if !asked.given() {
        return Vec::new();
    }
    let spec = &asked.object.spec;
    let mut checks = Vec::new();
    let dynamo = spec.dynamo();
    // Some may be one.
    let images = [&dynamo.image, &dynamo.frontend.image, &spec.benchmark.image];
    let mut images = BTreeSet::from(images.map(String::as_str));
    images.remove("");
    let nodes: Api<Node> = Api::all(asked.session.client.clone());
    match nodes.list(&ListParams::default()).await {
        Ok(nodes) => checks.extend(images.into_iter().map(|image| on_nodes(asked, image, &nodes.items))),
        Err(error) => checks.push(Check::unknown(
            format!("images: {}", Error::from_call("read Nodes", error)),
            "kubectl get nodes",
        )),
    }
    for LocalObjectReference { name } in &spec.pod_template.spec.image_pull_secrets {
        let create = format!("kubectl create secret docker-registry {name} --docker-server=… --docker-username=…");
        checks.push(asked.exists::<Secret>(name, &create).await);
    }
    if let Some(SecretKeySelector { name, key, .. }) = &spec.model.token_secret_ref {
        let create = format!("kubectl create secret generic {name} --from-literal={key}=…");
        checks.push(asked.exists::<Secret>(name, &create).await);
    }
    checks
}

fn on_nodes(asked: &Asked<'_>, image: &str, nodes: &[Node]) -> Check {
    let namespace = asked.object.metadata.namespace.as_deref().unwrap_or_default();
    let has = |node: &&Node| {
        let images = node.status.iter().flat_map(|status| status.images.iter().flatten());
        images
            .flat_map(|image| image.names.iter().flatten())
            .any(|name| same(name, image))
    };
    let count = nodes.iter().filter(has).count();
    match count {
        0 => Check::worse(
            format!("no node lists {image}: the first run pulls it, which may take longer than timeouts.workloadReady"),
            format!(
                "kubectl run pull -n {namespace} --rm -it --restart=Never --image={image} --command -- true   (tries it once)"
            ),
        ),
        count => Check::good(format!("{image} is on {count} of {} nodes", nodes.len())),
    }
}

/// Compares image names; a node's have their registry, which a manifest may leave out.
fn same(on_node: &str, wanted: &str) -> bool {
    on_node == wanted
        || on_node
            .strip_suffix(wanted)
            .is_some_and(|registry| registry.ends_with('/'))
}
