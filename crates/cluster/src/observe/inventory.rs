//! Reads of sizing for one run, beside the [inventory](crate::followed) that all runs share.

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::{LimitRange, Node, PersistentVolume, PersistentVolumeClaim, ResourceQuota};
use k8s_openapi::api::resource::v1::DeviceClass;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use perfval_run::{Run, build};
use perfval_sizing::Seen;
use perfval_sizing::inventory::{self, CacheVolume, Interned, Inventory};
use serde_json::Value;

use crate::Cluster;
use crate::call::{ALL, Read, Unread, read, seen, unless_absent};

/// API group of device taint rules.
const GROUP: &str = DeviceClass::GROUP;
const TAINT_RULES: &str = "devicetaintrules";
/// Their versions, the newest first.
const TAINT_RULE_VERSIONS: [&str; 3] = ["v1", "v1beta2", "v1alpha3"];

impl Cluster {
    /// The class of a name; absent if there is none, or if the kind is not served.
    pub(crate) async fn device_class(&self, name: &str) -> Read<DeviceClass> {
        let api: Api<DeviceClass> = Api::all(self.client.clone());
        read(&format!("get DeviceClass {name}"), self.bounded(api.get(name)).await)
    }

    /// Inventory for one run: of its node, or of the whole cluster at this moment.
    pub(crate) async fn inventory_for(&self, run: &Run<'_>) -> Inventory {
        let quotas: Api<ResourceQuota> = Api::namespaced(self.client.clone(), run.namespace());
        let limit_ranges: Api<LimitRange> = Api::namespaced(self.client.clone(), run.namespace());
        let cache_claim = build::cache_claim_name(run.name(), run.spec());
        let of_run = async {
            futures::join!(
                self.device_class(&run.spec().placement.device_class_name),
                self.list(&quotas, ListParams::default()),
                self.list(&limit_ranges, ListParams::default()),
                self.cache_volume(run.namespace(), cache_claim.as_deref()),
            )
        };
        let ((device_class, quotas, limit_ranges, cache_volume), of_all) = match run.placement() {
            Some(plan) => {
                let (of_run, turn) = Box::pin(self.counted(of_run)).await;
                (of_run, turn.inventory().for_node(&plan.node))
            }
            None => (Box::pin(of_run).await, Box::pin(self.inventory_now()).await),
        };
        Inventory {
            device_class: seen(device_class),
            quotas: seen(read("list ResourceQuotas", quotas)),
            limit_ranges: seen(read("list LimitRanges", limit_ranges)),
            cache_volume,
            naming: run.settings.naming(run.namespace()),
            ..of_all
        }
    }

    /// A list with this node, if it exists.
    pub(crate) async fn one_node(&self, name: &str) -> Read<Vec<inventory::Node>> {
        let api: Api<Node> = Api::all(self.client.clone());
        let node = read(&format!("get Node {name}"), self.bounded(api.get(name)).await);
        let node = unless_absent(node)?.map(|node| inventory::Node::read(&node, &mut Interned::default()));
        Ok(node.into_iter().collect())
    }

    /// Absent where every node reaches the model cache: without one, before it is bound, or on storage of all nodes.
    pub(crate) async fn cache_volume(&self, namespace: &str, claim: Option<&str>) -> Seen<CacheVolume> {
        match claim {
            Some(claim) => seen(self.volume_of(namespace, claim).await),
            None => Seen::Absent,
        }
    }

    async fn volume_of(&self, namespace: &str, name: &str) -> Read<CacheVolume> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let call = format!("get PersistentVolumeClaim {namespace}/{name}");
        let claim = read(&call, self.bounded(claims.get(name)).await)?;
        let bound_to = CacheVolume::name_for(&claim).ok_or(Unread::Absent)?;
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let call = format!("get PersistentVolume {bound_to}");
        let volume = read(&call, self.bounded(volumes.get(bound_to)).await)?;
        CacheVolume::read(&claim, &volume).ok_or(Unread::Absent)
    }

    /// Raw, because three versions are served in the field, each with its version, which decides on the meaning of a
    /// rule; absent if the cluster serves none.
    pub(crate) async fn device_taint_rules(&self) -> Read<Vec<Value>> {
        match self.served.get(&TAINT_RULES) {
            Some(None) => return Err(Unread::Absent),
            Some(Some(version)) => {
                if let Some(rules) = unless_absent(self.taint_rules_at(version).await)? {
                    return Ok(rules);
                }
                // The cluster was upgraded.
            }
            None => {}
        }
        for version in TAINT_RULE_VERSIONS {
            if let Some(rules) = unless_absent(self.taint_rules_at(version).await)? {
                self.served.keep(TAINT_RULES, Some(version));
                return Ok(rules);
            }
        }
        self.served.keep(TAINT_RULES, None);
        Err(Unread::Absent)
    }

    async fn taint_rules_at(&self, version: &str) -> Read<Vec<Value>> {
        let kind = GroupVersionKind::gvk(GROUP, version, "DeviceTaintRule");
        let resource = ApiResource::from_gvk_with_plural(&kind, TAINT_RULES);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let versioned = |(): &mut (), mut rule: Value| {
            let fields = rule.as_object_mut()?;
            fields.insert("apiVersion".to_owned(), kind.api_version().into());
            Some(rule)
        };
        let rules = self.list_as(ALL, api.resource_url(), ListParams::default(), (), versioned);
        Ok(read("list DeviceTaintRules", rules.await)?.items)
    }
}
