use std::collections::BTreeMap;
use std::fmt;

use perfval_api::text::cut;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::ReportError;

/// Larger than anything AIPerf can have measured (31 years in ms); keeps all sums far from overflow.
const ABSURD: f64 = 1e12;

/// A JSON object whose values keep their text, so that 0.1 stays 0.1 and every error contains its path.
pub(super) struct JsonObject<'a> {
    path: String,
    fields: BTreeMap<String, &'a RawValue>,
}

impl<'a> JsonObject<'a> {
    /// The whole document.
    pub fn document(json: &'a str) -> Result<Self, ReportError> {
        let fields = serde_json::from_str::<ObjectFields>(json).map_err(|e| ReportError::Json(e.to_string()))?;
        Ok(Self {
            path: String::new(),
            fields: fields.0,
        })
    }

    /// The path of a field below this object, for messages.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// An object; `None` if it is absent or null.
    pub fn object(&self, key: &str) -> Result<Option<Self>, ReportError> {
        self.read::<ObjectFields>(key, "an object").map(|found| {
            found.map(|fields| Self {
                path: self.path(key),
                fields: fields.0,
            })
        })
    }

    /// The objects of a list; empty if it is absent or null.
    pub fn objects(&self, key: &str) -> Result<Vec<Self>, ReportError> {
        let items = self
            .read::<Vec<ObjectFields>>(key, "a list of objects")?
            .unwrap_or_default();
        let item = |(index, fields): (usize, ObjectFields<'a>)| Self {
            path: format!("{}[{index}]", self.path(key)),
            fields: fields.0,
        };
        Ok(items.into_iter().enumerate().map(item).collect())
    }

    pub fn text(&self, key: &str) -> Result<Option<String>, ReportError> {
        self.read(key, "a string")
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, ReportError> {
        self.read(key, "true or false")
    }

    /// A finite number, in the shortest decimal form of its double.
    pub fn number(&self, key: &str) -> Result<Option<Decimal>, ReportError> {
        let Some(text) = self.fields.get(key).map(|raw| raw.get()).filter(|text| *text != "null") else {
            return Ok(None);
        };
        let wrong = |wanted| self.wrong(key, wanted, text);
        // A quoted number is a wrong type, although Rust could read its content.
        if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return Err(wrong("a number"));
        }
        let double: f64 = text.parse().map_err(|_| wrong("a number"))?;
        if !double.is_finite() || double.abs() > ABSURD {
            return Err(wrong("a number within ±1e12"));
        }
        let shortest = format!("{double}");
        shortest.parse().map(Some).map_err(|_| wrong("a number"))
    }

    /// A whole number ≥ 0; AIPerf writes counts as `768.0` too.
    pub fn count(&self, key: &str) -> Result<Option<i64>, ReportError> {
        let Some(number) = self.number(key)? else {
            return Ok(None);
        };
        let whole = number.is_integer() && number >= Decimal::ZERO;
        let wrong = || self.wrong(key, "a whole number ≥ 0", &number.to_string());
        number.to_i64().filter(|_| whole).map(Some).ok_or_else(wrong)
    }

    /// A value that the export must have.
    pub fn required<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Self, &str) -> Result<Option<T>, ReportError>,
    ) -> Result<T, ReportError> {
        read(self, key)?.ok_or_else(|| ReportError::Missing { path: self.path(key) })
    }

    fn read<T: Deserialize<'a>>(&self, key: &str, wanted: &'static str) -> Result<Option<T>, ReportError> {
        let Some(raw) = self.fields.get(key) else {
            return Ok(None);
        };
        serde_json::from_str::<Option<T>>(raw.get()).map_err(|e| match e.classify() {
            serde_json::error::Category::Data if !e.to_string().contains(DUPLICATE) => {
                self.wrong(key, wanted, raw.get())
            }
            _ => ReportError::Json(format!("{}: {e}", self.path(key))),
        })
    }

    fn wrong(&self, key: &str, wanted: &'static str, found: &str) -> ReportError {
        ReportError::Wrong {
            path: self.path(key),
            wanted,
            found: cut(found, 40),
        }
    }
}

const DUPLICATE: &str = "duplicate key";

/// serde's own maps keep the last of two equal keys; here that is an error, because one of them is a lie.
struct ObjectFields<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectFields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = BTreeMap<String, &'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    if fields.insert(key.clone(), value).is_some() {
                        return Err(A::Error::custom(format_args!("{DUPLICATE} `{}`", cut(&key, 40))));
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Collect).map(ObjectFields)
    }
}
