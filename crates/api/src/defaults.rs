//! Defaults of fields.

/// `N`, as the default of a field.
pub(crate) fn number<const N: i32>() -> i32 {
    N
}
