use std::fmt;

use serde::{Deserialize, Serialize};

/// Method by which a run requests its GPUs.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// `ResourceClaim`s (Dynamic Resource Allocation).
    #[serde(rename = "DRA")]
    Dra,
    /// Extended resource of a device plugin.
    DevicePlugin,
    /// Method that this version does not support. The status of another version must still be readable.
    #[serde(untagged)]
    Other(String),
}

impl Allocation {
    /// Word in a status.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Dra => "DRA",
            Self::DevicePlugin => "DevicePlugin",
            Self::Other(word) => word,
        }
    }
}

/// Allocation of a plan that does not exist yet.
impl Default for Allocation {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
            assert_eq!(allocation.as_str(), word);
            assert_eq!(serde_json::to_value(allocation).expect("a word"), json!(word));
        }
    }
}
