//! Kinds about many nodes.

mod node_performance;
mod policy;

pub use node_performance::{
    GpuPerformance, NodePerformance, NodePerformanceSpec, NodePerformanceStatus, ValidationReference,
};
pub use policy::{
    Budget, ComparisonRules, DueReason, FeedbackMode, Freshness, NodeFeedback, NodeOrder, Outlier, OutlierConfidence,
    OutlierReason, PeerRule, PerfValidationPolicy, PerfValidationPolicySpec, PerfValidationPolicyStatus, PolicyNodes,
    ReportRule, TemplateMetadata, ValidationHistory, ValidationTemplate,
};
