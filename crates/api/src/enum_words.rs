//! Words of enums that derive `IntoStaticStr`.

use crate::fleet::{BaselineMetricName, DueReason, OutlierReason};
use crate::{AccessMode, GateOperator, ImagePullPolicy, Leftovers, Metric, Phase, TrialOutcome, Verdict};

macro_rules! words {
    ($($name:ident),+) => {
        $(impl $name {
            /// The word of the API, also in events and metrics.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        })+
    };
}

words!(
    AccessMode,
    BaselineMetricName,
    DueReason,
    GateOperator,
    ImagePullPolicy,
    Leftovers,
    Metric,
    OutlierReason,
    Phase,
    TrialOutcome,
    Verdict
);
