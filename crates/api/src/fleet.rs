//! Kinds about many nodes.

mod baseline;
mod in_use;
mod node_performance;
mod policy;

pub use baseline::{
    BaselineEnvironment, BaselineMetric, BaselineMetricName, BaselineRevision, BaselineSource, BaselineSpread,
    PerfBaseline, PerfBaselineSpec, PerfBaselineStatus,
};
pub use in_use::baselines_in_use;
pub use node_performance::{
    GpuPerformance, NodeIdentity, NodePerformance, NodePerformanceSpec, NodePerformanceStatus, SelectedNode,
    StatisticsText, ValidationReference,
};
pub use policy::{
    ActRule, Budget, ComparisonRules, DueReason, FeedbackMode, Freshness, MOST_OUTLIERS, NodeFeedback, NodeOrder,
    Outlier, OutlierConfidence, OutlierReason, PeerRule, PerfValidationPolicy, PerfValidationPolicySpec,
    PerfValidationPolicyStatus, PolicyEnvironment, PolicyNodes, ReportRule, TemplateMetadata, ValidationHistory,
    ValidationTemplate,
};
