//! Fields and their numbers, after `generated.proto` of `k8s.io/api` 0.36.4: those that tests and the bench write.

use Kind::{Json, Map, Message, Number, Quantity, Text, Time, Truth};

/// A field: its name in JSON, its number, and what it holds. Lists of all of them are written alike.
pub struct Field(pub &'static str, pub u32, pub Kind);

/// What a field holds.
pub enum Kind {
    Text,
    Number,
    Truth,
    Quantity,
    Time,
    /// JSON as it is: `FieldsV1`.
    Json,
    Message(&'static [Field]),
    Map(&'static Kind),
}

/// The fields of a kind.
pub fn schema(kind: &str) -> Option<&'static [Field]> {
    match kind {
        "Node" => Some(NODE),
        "Pod" => Some(POD),
        "ResourceClaim" => Some(CLAIM),
        "ResourceSlice" => Some(SLICE),
        "Status" => Some(STATUS),
        _ => None,
    }
}

const STATUS: &[Field] = &[
    Field("metadata", 1, Message(&[])),
    Field("status", 2, Text),
    Field("message", 3, Text),
    Field("reason", 4, Text),
    Field("details", 5, Message(DETAILS)),
    Field("code", 6, Number),
];

const DETAILS: &[Field] = &[
    Field("name", 1, Text),
    Field("group", 2, Text),
    Field("kind", 3, Text),
    Field("retryAfterSeconds", 5, Number),
    Field("uid", 6, Text),
];

const META: &[Field] = &[
    Field("name", 1, Text),
    Field("namespace", 3, Text),
    Field("uid", 5, Text),
    Field("resourceVersion", 6, Text),
    Field("generation", 7, Number),
    Field("creationTimestamp", 8, Time),
    Field("deletionTimestamp", 9, Time),
    Field("labels", 11, Map(&Text)),
    Field("annotations", 12, Map(&Text)),
    Field("ownerReferences", 13, Message(OWNER)),
    Field("finalizers", 14, Text),
    Field("managedFields", 17, Message(MANAGED)),
];

const OWNER: &[Field] = &[
    Field("kind", 1, Text),
    Field("name", 3, Text),
    Field("uid", 4, Text),
    Field("apiVersion", 5, Text),
    Field("controller", 6, Truth),
    Field("blockOwnerDeletion", 7, Truth),
];

const MANAGED: &[Field] = &[
    Field("manager", 1, Text),
    Field("operation", 2, Text),
    Field("apiVersion", 3, Text),
    Field("fieldsType", 6, Text),
    Field("fieldsV1", 7, Json),
];

const NODE: &[Field] = &[
    Field("metadata", 1, Message(META)),
    Field(
        "spec",
        2,
        Message(&[
            Field("podCIDR", 1, Text),
            Field("providerID", 3, Text),
            Field("unschedulable", 4, Truth),
            Field("taints", 5, Message(TAINT)),
        ]),
    ),
    Field(
        "status",
        3,
        Message(&[
            Field("capacity", 1, Map(&Quantity)),
            Field("allocatable", 2, Map(&Quantity)),
            Field("conditions", 4, Message(NODE_CONDITION)),
            Field(
                "addresses",
                5,
                Message(&[Field("type", 1, Text), Field("address", 2, Text)]),
            ),
            Field(
                "images",
                8,
                Message(&[Field("names", 1, Text), Field("sizeBytes", 2, Number)]),
            ),
        ]),
    ),
];

const TAINT: &[Field] = &[
    Field("key", 1, Text),
    Field("value", 2, Text),
    Field("effect", 3, Text),
    Field("timeAdded", 4, Time),
];

const NODE_CONDITION: &[Field] = &[
    Field("type", 1, Text),
    Field("status", 2, Text),
    Field("lastHeartbeatTime", 3, Time),
    Field("lastTransitionTime", 4, Time),
    Field("reason", 5, Text),
    Field("message", 6, Text),
];

const POD: &[Field] = &[
    Field("metadata", 1, Message(META)),
    Field(
        "spec",
        2,
        Message(&[
            Field("volumes", 1, Message(VOLUME)),
            Field("containers", 2, Message(CONTAINER)),
            Field("serviceAccountName", 8, Text),
            Field("nodeName", 10, Text),
            Field("schedulerName", 19, Text),
            Field("initContainers", 20, Message(CONTAINER)),
            Field("overhead", 32, Map(&Quantity)),
            Field("resourceClaims", 39, Message(POD_CLAIM)),
            Field("resources", 40, Message(RESOURCES)),
        ]),
    ),
    Field(
        "status",
        3,
        Message(&[
            Field("phase", 1, Text),
            Field("conditions", 2, Message(POD_CONDITION)),
            Field("podIP", 6, Text),
            Field("startTime", 7, Time),
            Field("containerStatuses", 8, Message(CONTAINER_STATUS)),
            Field("initContainerStatuses", 10, Message(CONTAINER_STATUS)),
            Field("nominatedNodeName", 11, Text),
            Field("extendedResourceClaimStatus", 18, Message(SERVED_BY_CLAIM)),
            Field("allocatedResources", 19, Map(&Quantity)),
            Field("resources", 20, Message(RESOURCES)),
        ]),
    ),
];

const VOLUME: &[Field] = &[
    Field("name", 1, Text),
    // `VolumeSource` is inline in JSON; an empty directory is all that is written here.
    Field("emptyDir", 2, Message(&[])),
];

const CONTAINER: &[Field] = &[
    Field("name", 1, Text),
    Field("image", 2, Text),
    Field("args", 4, Text),
    Field("env", 7, Message(&[Field("name", 1, Text), Field("value", 2, Text)])),
    Field("resources", 8, Message(RESOURCES)),
    Field("volumeMounts", 9, Message(MOUNT)),
    Field("restartPolicy", 24, Text),
];

const MOUNT: &[Field] = &[
    Field("name", 1, Text),
    Field("readOnly", 2, Truth),
    Field("mountPath", 3, Text),
];

const RESOURCES: &[Field] = &[Field("limits", 1, Map(&Quantity)), Field("requests", 2, Map(&Quantity))];

const POD_CLAIM: &[Field] = &[
    Field("name", 1, Text),
    Field("resourceClaimName", 3, Text),
    Field("resourceClaimTemplateName", 4, Text),
];

const POD_CONDITION: &[Field] = &[
    Field("type", 1, Text),
    Field("status", 2, Text),
    Field("lastTransitionTime", 4, Time),
    Field("reason", 5, Text),
    Field("message", 6, Text),
];

const CONTAINER_STATUS: &[Field] = &[
    Field("name", 1, Text),
    Field("state", 2, Message(STATE)),
    Field("lastState", 3, Message(STATE)),
    Field("ready", 4, Truth),
    Field("restartCount", 5, Number),
    Field("image", 6, Text),
    Field("imageID", 7, Text),
    Field("allocatedResources", 10, Map(&Quantity)),
    Field("resources", 11, Message(RESOURCES)),
    Field("allocatedResourcesStatus", 14, Message(HEALTH)),
];

const STATE: &[Field] = &[
    Field(
        "waiting",
        1,
        Message(&[Field("reason", 1, Text), Field("message", 2, Text)]),
    ),
    Field("running", 2, Message(&[Field("startedAt", 1, Time)])),
    Field("terminated", 3, Message(TERMINATED)),
];

const TERMINATED: &[Field] = &[
    Field("exitCode", 1, Number),
    Field("signal", 2, Number),
    Field("reason", 3, Text),
    Field("message", 4, Text),
    Field("startedAt", 5, Time),
    Field("finishedAt", 6, Time),
];

const HEALTH: &[Field] = &[
    Field("name", 1, Text),
    Field(
        "resources",
        2,
        Message(&[Field("resourceID", 1, Text), Field("health", 2, Text)]),
    ),
];

const SERVED_BY_CLAIM: &[Field] = &[
    Field(
        "requestMappings",
        1,
        Message(&[
            Field("containerName", 1, Text),
            Field("resourceName", 2, Text),
            Field("requestName", 3, Text),
        ]),
    ),
    Field("resourceClaimName", 2, Text),
];

const CLAIM: &[Field] = &[
    Field("metadata", 1, Message(META)),
    Field(
        "spec",
        2,
        Message(&[Field(
            "devices",
            1,
            Message(&[Field(
                "requests",
                1,
                Message(&[Field("name", 1, Text), Field("exactly", 2, Message(EXACTLY))]),
            )]),
        )]),
    ),
    Field(
        "status",
        3,
        Message(&[
            Field("allocation", 1, Message(ALLOCATION)),
            Field(
                "reservedFor",
                2,
                Message(&[
                    Field("apiGroup", 1, Text),
                    Field("resource", 3, Text),
                    Field("name", 4, Text),
                    Field("uid", 5, Text),
                ]),
            ),
        ]),
    ),
];

const EXACTLY: &[Field] = &[
    Field("deviceClassName", 1, Text),
    Field("allocationMode", 3, Text),
    Field("count", 4, Number),
];

const ALLOCATION: &[Field] = &[
    Field("devices", 1, Message(&[Field("results", 1, Message(RESULT))])),
    Field("nodeSelector", 3, Message(NODE_SELECTOR)),
];

const RESULT: &[Field] = &[
    Field("request", 1, Text),
    Field("driver", 2, Text),
    Field("pool", 3, Text),
    Field("device", 4, Text),
    Field("adminAccess", 5, Truth),
    Field("shareID", 9, Text),
];

const NODE_SELECTOR: &[Field] = &[Field(
    "nodeSelectorTerms",
    1,
    Message(&[
        Field("matchExpressions", 1, Message(REQUIREMENT)),
        Field("matchFields", 2, Message(REQUIREMENT)),
    ]),
)];

const REQUIREMENT: &[Field] = &[
    Field("key", 1, Text),
    Field("operator", 2, Text),
    Field("values", 3, Text),
];

const SLICE: &[Field] = &[
    Field("metadata", 1, Message(META)),
    Field(
        "spec",
        2,
        Message(&[
            Field("driver", 1, Text),
            Field(
                "pool",
                2,
                Message(&[
                    Field("name", 1, Text),
                    Field("generation", 2, Number),
                    Field("resourceSliceCount", 3, Number),
                ]),
            ),
            Field("nodeName", 3, Text),
            Field("nodeSelector", 4, Message(NODE_SELECTOR)),
            Field("allNodes", 5, Truth),
            Field("devices", 6, Message(DEVICE)),
            Field("perDeviceNodeSelection", 7, Truth),
            Field(
                "sharedCounters",
                8,
                Message(&[Field("name", 1, Text), Field("counters", 2, Map(&COUNTER))]),
            ),
        ]),
    ),
];

const COUNTER: Kind = Message(&[Field("value", 1, Quantity)]);

const DEVICE: &[Field] = &[
    Field("name", 1, Text),
    Field("attributes", 2, Map(&ATTRIBUTE)),
    Field("capacity", 3, Map(&COUNTER)),
    Field(
        "consumesCounters",
        4,
        Message(&[Field("counterSet", 1, Text), Field("counters", 2, Map(&COUNTER))]),
    ),
    Field("nodeName", 5, Text),
    Field("nodeSelector", 6, Message(NODE_SELECTOR)),
    Field("allNodes", 7, Truth),
    Field("taints", 8, Message(TAINT)),
    Field("bindingConditions", 10, Text),
    Field("bindingFailureConditions", 11, Text),
    Field("allowMultipleAllocations", 12, Truth),
];

const ATTRIBUTE: Kind = Message(&[
    Field("int", 2, Number),
    Field("bool", 3, Truth),
    Field("string", 4, Text),
    Field("version", 5, Text),
    Field("strings", 8, Text),
]);
