use std::fmt;

use serde::{Deserialize, Serialize};

/// How a run asks for its GPUs.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// By `ResourceClaim`s (Dynamic Resource Allocation).
    #[serde(rename = "DRA")]
    Dra,
    /// By the extended resource of a device plugin.
    DevicePlugin,
    /// In a way that this version does not know: the status of another version must still be read.
    #[serde(untagged)]
    Other(String),
}

impl Allocation {
    /// The word in a status.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Dra => "DRA",
            Self::DevicePlugin => "DevicePlugin",
            Self::Other(word) => word,
        }
    }
}

/// Of a plan that is not made yet.
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
