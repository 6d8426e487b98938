//! Fields that objects of all kinds have.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::core::Status;
use kube::core::response::StatusDetails;
use serde::{Deserialize, Deserializer};

use super::wire::{Malformed, Message, Value};

/// Metadata of a page of a list, in either form.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ListMeta {
    /// Version of the whole list, from which a watch goes on.
    #[serde(rename = "resourceVersion")]
    pub version: Option<String>,
    /// The token of the next page.
    #[serde(rename = "continue", deserialize_with = "token")]
    pub next: Option<String>,
}

/// Some API servers write an empty token.
fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let token = Option::<String>::deserialize(deserializer)?;
    Ok(token.filter(|token| !token.is_empty()))
}

impl Message for ListMeta {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            2 => self.version = value.text_if_any()?,
            3 => self.next = value.text_if_any()?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for ObjectMeta {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.name = Some(value.text()?),
            3 => self.namespace = value.text_if_any()?,
            9 => self.deletion_timestamp = Some(value.message::<Instant>()?.0),
            11 => value.insert_text_into(&mut self.labels)?,
            _ => {}
        }
        Ok(())
    }
}

/// A moment, to the second.
pub struct Instant(pub Time);

impl Default for Instant {
    fn default() -> Self {
        Self(Time(Timestamp::UNIX_EPOCH))
    }
}

impl Message for Instant {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.0 = Time(Timestamp::from_second(value.number()?).map_err(|_| Malformed)?);
        }
        Ok(())
    }
}

impl Message for Quantity {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.0 = value.text()?;
        }
        Ok(())
    }
}

impl Message for NodeSelector {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.node_selector_terms.push(value.message()?);
        }
        Ok(())
    }
}

impl Message for NodeSelectorTerm {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => value.push_to(&mut self.match_expressions)?,
            2 => value.push_to(&mut self.match_fields)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for NodeSelectorRequirement {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.key = value.text()?,
            2 => self.operator = value.text()?,
            3 => self.values.get_or_insert_default().push(value.text()?),
            _ => {}
        }
        Ok(())
    }
}

/// The API server's refusal.
#[derive(Default)]
pub struct RefusalMessage(pub Status);

impl Message for RefusalMessage {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        let Self(status) = self;
        match field {
            3 => status.message = value.text()?,
            4 => status.reason = value.text()?,
            5 => status.details = Some(value.message::<Details>()?.0),
            6 => status.code = u16::try_from(value.number()?).map_err(|_| Malformed)?,
            _ => {}
        }
        Ok(())
    }
}

struct Details(StatusDetails);

impl Default for Details {
    fn default() -> Self {
        Self(StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        })
    }
}

impl Message for Details {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        let Self(details) = self;
        match field {
            1 => details.name = value.text()?,
            2 => details.group = value.text()?,
            3 => details.kind = value.text()?,
            5 => details.retry_after_seconds = u32::try_from(value.number()?).map_err(|_| Malformed)?,
            _ => {}
        }
        Ok(())
    }
}
