//! Making pods, and their claims.

use serde_json::{Value, json};

use super::{IN_USE, KUBELET, World, owner};

impl World {
    /// Makes a pod, and a claim for each of its claim templates, if those exist.
    pub(super) fn create_pod(&mut self, namespace: &str, name: &str, owner: &Value, labels: &Value, spec: &Value) {
        let templates = templates(spec);
        let missing = |template: &String| self.server.get("resourceclaimtemplates", namespace, template).is_none();
        if self.server.is_terminating(namespace) || templates.iter().any(missing) {
            return;
        }
        let pod = self.server.put(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "namespace": namespace, "name": name, "labels": labels, "ownerReferences": owner, "finalizers": [KUBELET],
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        }));
        for template in templates {
            self.create_claim(namespace, &template, &pod);
        }
    }

    /// As the controller of claims does.
    fn create_claim(&self, namespace: &str, template: &str, pod: &Value) {
        let Some(template) = self.server.get("resourceclaimtemplates", namespace, template) else {
            return;
        };
        let name = format!("{}-gpu", pod["metadata"]["name"].as_str().unwrap_or_default());
        let mut pod = pod.clone();
        (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
        self.server.put(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {
                "namespace": namespace, "name": name, "labels": template["spec"]["metadata"]["labels"],
                "ownerReferences": owner(&pod), "finalizers": [IN_USE],
            },
            "spec": template["spec"]["spec"],
            "status": {},
        }));
    }
}

/// Names of the claim templates of a pod.
fn templates(spec: &Value) -> Vec<String> {
    let claims = spec["resourceClaims"].as_array().cloned().unwrap_or_default();
    let named = |claim: &Value| claim["resourceClaimTemplateName"].as_str().map(str::to_owned);
    claims.iter().filter_map(named).collect()
}
