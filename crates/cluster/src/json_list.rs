//! A list in JSON, read object by object: of a page with megabytes only one object is in memory.

use std::fmt;
use std::marker::PhantomData;

use perfval_sizing::inventory::protobuf::ListMeta;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Hands each object on; returns the metadata of the list.
pub(crate) fn read<K: DeserializeOwned>(json: &[u8], each: impl FnMut(K)) -> serde_json::Result<ListMeta> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let metadata = List(each, PhantomData).deserialize(&mut json)?;
    json.end()?;
    Ok(metadata)
}

struct List<K, F>(F, PhantomData<K>);

impl<'de, K: DeserializeOwned, F: FnMut(K)> DeserializeSeed<'de> for List<K, F> {
    type Value = ListMeta;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K: DeserializeOwned, F: FnMut(K)> Visitor<'de> for List<K, F> {
    type Value = ListMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut metadata = ListMeta::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => metadata = map.next_value()?,
                "items" => map.next_value_seed(Items(&mut self.0, PhantomData))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(metadata)
    }
}

struct Items<'f, K, F>(&'f mut F, PhantomData<K>);

impl<'de, K: DeserializeOwned, F: FnMut(K)> DeserializeSeed<'de> for Items<'_, K, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, K: DeserializeOwned, F: FnMut(K)> Visitor<'de> for Items<'_, K, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<(), A::Error> {
        while let Some(object) = objects.next_element()? {
            (self.0)(object);
        }
        Ok(())
    }

    // A list without objects may have `null`.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
