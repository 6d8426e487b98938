/// Points in order of time; a new part begins where nothing is known in between.
pub(crate) type ChartLine = Vec<Vec<(f64, f64)>>;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineMark {
    pub trial: i64,
    /// On the common clock.
    pub at: i64,
    pub text: String,
}
