//! Reads for sizing. The order matters: holders are read after devices, so a device that is given out in between is
//! seen as held and never as free. Independent reads run at once.

use std::time::Duration;

use k8s_openapi::api::core::v1::{LimitRange, Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use perfval_sizing::Seen;
use perfval_sizing::inventory::{self, CacheVolume, ClaimUse, Interned, Inventory, PodUse, Slice};
use perfval_sizing::resource_api::GROUP;
use serde_json::Value;
use tokio::time::Instant;

use crate::Cluster;
use crate::call::{Read, Unread, read, seen};
use crate::look::{ReadForRun, RunWish};
use crate::page::{Json, Protobuf};
use crate::shared_reads::Served;

/// Versions of device taint rules, the newest first.
const TAINT_RULE_VERSIONS: [&str; 3] = ["v1", "v1beta2", "v1alpha3"];

/// Age up to which a read of the whole cluster serves further runs, from its beginning. A read takes seconds on a
/// busy machine, so fifty runs at once would each read again if only its end counted.
const SHARED: Duration = Duration::from_secs(1);

fn with_run(inventory: Inventory, of_run: ReadForRun) -> Inventory {
    Inventory {
        device_class: of_run.device_class,
        quotas: of_run.quotas,
        limit_ranges: of_run.limit_ranges,
        ..inventory
    }
}

impl Cluster {
    /// Reads of sizing for one namespace and one device class.
    async fn read_for_run(&self, wish: &RunWish) -> ReadForRun {
        let quotas: Api<ResourceQuota> = Api::namespaced(self.client.clone(), &wish.namespace);
        let limit_ranges: Api<LimitRange> = Api::namespaced(self.client.clone(), &wish.namespace);
        let (device_class, quotas, limit_ranges) = futures::join!(
            self.device_class(&wish.device_class),
            self.list(&quotas, ListParams::default()),
            self.list(&limit_ranges, ListParams::default()),
        );
        ReadForRun {
            device_class: seen(device_class),
            quotas: seen(read("list ResourceQuotas", quotas)),
            limit_ranges: seen(read("list LimitRanges", limit_ranges)),
        }
    }

    /// The class of a name; absent if there is none, or if the kind is not served.
    pub(crate) async fn device_class(&self, name: &str) -> Read<DeviceClass> {
        let api: Api<DeviceClass> = Api::all(self.client.clone());
        read(&format!("get DeviceClass {name}"), self.bounded(api.get(name)).await)
    }

    /// Inventory for one run; `cache_claim` is the name of the volume claim of the run's model cache.
    pub(crate) async fn inventory(&self, wish: &RunWish, cache_claim: Option<&str>) -> Inventory {
        let run = async {
            let cache_volume = self.cache_volume(&wish.namespace, cache_claim);
            futures::join!(self.read_for_run(wish), cache_volume)
        };
        let ((of_run, cache_volume), whole) = Box::pin(self.counted(run)).await;
        Inventory {
            cache_volume,
            ..with_run(whole, of_run)
        }
    }

    /// Inventory of one node, for a run that has it. The cluster is read once for all runs that need it within a
    /// [second](SHARED) or while it is read: sixteen runs that became ready together took 168 MB with 1,000 nodes, each with a
    /// list of its own.
    pub(crate) async fn inventory_of(
        &self,
        wish: &RunWish,
        cache_claim: Option<&str>,
        node: Option<&str>,
    ) -> Inventory {
        let Some(node) = node else {
            return self.inventory(wish, cache_claim).await;
        };
        let cache_volume = self.cache_volume(&wish.namespace, cache_claim);
        let (of_run, cache_volume) = futures::join!(self.read_for_run(wish), cache_volume);
        let asked = Instant::now();
        let part = {
            let mut turn = self.last_inventory.turn().await;
            let is_fresh = |read: &(Instant, Inventory)| read.0 + SHARED > asked;
            if !turn.last.as_ref().is_some_and(is_fresh) {
                // Not both at once.
                *turn.last = None;
                let began = Instant::now();
                let ((), whole) = self.counted(std::future::ready(())).await;
                *turn.last = Some((began, whole));
            }
            let last = turn.last.as_ref();
            last.map(|(_, whole)| whole.for_node(node)).unwrap_or_default()
        };
        Inventory {
            cache_volume,
            ..with_run(part, of_run)
        }
    }

    /// Inventory for every run alike. The result of `meanwhile` is not newer than the holders of devices.
    pub(crate) async fn counted<T>(&self, meanwhile: impl Future<Output = T>) -> (T, Inventory) {
        let (meanwhile, slices, taint_rules, nodes) =
            futures::join!(meanwhile, self.slices(), self.device_taint_rules(), self.nodes());
        // A pod may refer to a claim that serves it, so the claim must not be older.
        let (pods, promises) = futures::join!(self.pods_of_nodes(), self.bind_requests());
        let claims = self.claims().await;
        let inventory = Inventory {
            slices: seen(slices),
            taint_rules: seen(taint_rules),
            nodes: seen(nodes),
            pods: seen(pods),
            promises: seen(promises),
            claims: seen(claims),
            ..Inventory::default()
        };
        (meanwhile, inventory)
    }

    /// Parts of the inventory that show who holds the devices of a node. The claims are read last, so that a device that is
    /// given out in between is seen as held.
    pub(crate) async fn devices_of(&self, node: &str) -> Inventory {
        let (slices, node) = futures::join!(self.slices(), self.one_node(node));
        let claims = self.claims().await;
        Inventory {
            slices: seen(slices),
            nodes: seen(node),
            claims: seen(claims),
            ..Inventory::default()
        }
    }

    /// A list with this node, if it exists.
    async fn one_node(&self, name: &str) -> Read<Vec<inventory::Node>> {
        let api: Api<Node> = Api::all(self.client.clone());
        match read(&format!("get Node {name}"), self.bounded(api.get(name)).await) {
            Ok(node) => Ok(vec![inventory::Node::read(&node, &mut Interned::default())]),
            Err(Unread::Absent) => Ok(Vec::new()),
            Err(unknown) => Err(unknown),
        }
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

    async fn slices(&self) -> Read<Vec<Slice>> {
        let api: Api<ResourceSlice> = Api::all(self.client.clone());
        let interned = &mut Interned::default();
        let reduce = |slice: ResourceSlice| Some(Slice::read(&slice, interned));
        read(
            "list ResourceSlices",
            self.list_reduced(Protobuf, api.resource_url(), ListParams::default(), reduce)
                .await,
        )
    }

    /// Raw, because three versions are served in the field, each with its version, which decides on the meaning of a
    /// rule; absent if the cluster serves none.
    async fn device_taint_rules(&self) -> Read<Vec<Value>> {
        match self.taint_rules.last() {
            Some(Served::Nowhere) => return Err(Unread::Absent),
            Some(Served::At(version)) => match self.taint_rules_at(version).await {
                // The cluster was upgraded.
                Err(Unread::Absent) => {}
                known => return known,
            },
            None => {}
        }
        for version in TAINT_RULE_VERSIONS {
            match self.taint_rules_at(version).await {
                Err(Unread::Absent) => {}
                Ok(rules) => {
                    self.taint_rules.keep(Served::At(version));
                    return Ok(rules);
                }
                unknown => return unknown,
            }
        }
        self.taint_rules.keep(Served::Nowhere);
        Err(Unread::Absent)
    }

    async fn taint_rules_at(&self, version: &str) -> Read<Vec<Value>> {
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: version.to_owned(),
            api_version: format!("{GROUP}/{version}"),
            kind: "DeviceTaintRule".to_owned(),
            plural: "devicetaintrules".to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let versioned = |mut rule: Value| {
            let fields = rule.as_object_mut()?;
            fields.insert("apiVersion".to_owned(), format!("{GROUP}/{version}").into());
            Some(rule)
        };
        let rules = self
            .list_reduced(Json, api.resource_url(), ListParams::default(), versioned)
            .await;
        read("list DeviceTaintRules", rules)
    }

    async fn nodes(&self) -> Read<Vec<inventory::Node>> {
        let api: Api<Node> = Api::all(self.client.clone());
        let interned = &mut Interned::default();
        let reduce = |node: Node| Some(inventory::Node::read(&node, interned));
        read(
            "list Nodes",
            self.list_reduced(Protobuf, api.resource_url(), ListParams::default(), reduce)
                .await,
        )
    }

    async fn pods_of_nodes(&self) -> Read<Vec<PodUse>> {
        let api: Api<Pod> = Api::all(self.client.clone());
        let running = ListParams::default().fields("status.phase!=Succeeded,status.phase!=Failed");
        let interned = &mut Interned::default();
        let reduce = |pod: Pod| PodUse::read(&pod, interned);
        read(
            "list Pods",
            self.list_reduced(Protobuf, api.resource_url(), running, reduce).await,
        )
    }

    async fn claims(&self) -> Read<Vec<ClaimUse>> {
        let api: Api<ResourceClaim> = Api::all(self.client.clone());
        let interned = &mut Interned::default();
        let reduce = |claim: ResourceClaim| ClaimUse::read(&claim, interned);
        read(
            "list ResourceClaims",
            self.list_reduced(Protobuf, api.resource_url(), ListParams::default(), reduce)
                .await,
        )
    }
}
