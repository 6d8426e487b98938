use serde::{Deserialize, Serialize};
use strum::{AsRefStr, Display};

/// Method by which a run requests its GPUs.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, AsRefStr, Display)]
pub enum Allocation {
    /// `ResourceClaim`s (Dynamic Resource Allocation).
    #[serde(rename = "DRA")]
    #[strum(serialize = "DRA")]
    Dra,
    /// Extended resource of a device plugin.
    DevicePlugin,
    /// Method that this version does not support. The status of another version must still be readable.
    #[serde(untagged)]
    #[strum(transparent)]
    Other(String),
}

/// Allocation of a plan that does not exist yet.
impl Default for Allocation {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Allocation;

    #[test]
    fn every_word_comes_back_as_it_was_stored() {
        for (word, allocation) in [
            ("DRA", Allocation::Dra),
            ("DevicePlugin", Allocation::DevicePlugin),
            ("Borrowed", Allocation::Other("Borrowed".into())),
            ("", Allocation::default()),
        ] {
            let read: Allocation = serde_json::from_value(json!(word)).expect("any word is read");
            assert_eq!(read, allocation);
            assert_eq!(allocation.as_ref(), word);
            assert_eq!(serde_json::to_value(allocation).expect("a word"), json!(word));
        }
    }
}
