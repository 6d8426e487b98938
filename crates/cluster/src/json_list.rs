//! A list in JSON, read object by object: of a page with megabytes only one object is in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Metadata of a page of a list.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ListMeta {
    /// Version of the whole list, from which a watch goes on.
    #[serde(rename = "resourceVersion")]
    pub(crate) version: Option<String>,
    /// The token of the next page.
    #[serde(rename = "continue", deserialize_with = "token")]
    pub(crate) next: Option<String>,
}

/// Some API servers write an empty token.
fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let token = Option::<String>::deserialize(deserializer)?;
    Ok(token.filter(|token| !token.is_empty()))
}

/// Hands each object on; returns the metadata of the list.
pub(crate) fn read<K: DeserializeOwned>(json: &[u8], mut each: impl FnMut(K)) -> serde_json::Result<ListMeta> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let metadata = json.deserialize_map(Each(&mut each, PhantomData))?;
    json.end()?;
    Ok(metadata)
}

/// Visitor of a list, and of its objects, which have no metadata of the list.
struct Each<'f, K, F>(&'f mut F, PhantomData<K>);

impl<'de, K: DeserializeOwned, F: FnMut(K)> DeserializeSeed<'de> for Each<'_, K, F> {
    type Value = ListMeta;

    // A list without objects may have `null`.
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ListMeta, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, K: DeserializeOwned, F: FnMut(K)> Visitor<'de> for Each<'_, K, F> {
    type Value = ListMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListMeta, A::Error> {
        let (mut metadata, mut has_items) = (ListMeta::default(), false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => metadata = map.next_value()?,
                "items" => {
                    map.next_value_seed(Each(&mut *self.0, PhantomData))?;
                    has_items = true;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        // Any other JSON, such as that of a proxy, is no empty list.
        if has_items {
            Ok(metadata)
        } else {
            Err(serde::de::Error::missing_field("items"))
        }
    }

    fn visit_none<E>(self) -> Result<ListMeta, E> {
        Ok(ListMeta::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<ListMeta, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<ListMeta, A::Error> {
        while let Some(object) = objects.next_element()? {
            (self.0)(object);
        }
        Ok(ListMeta::default())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn names(page: &str) -> serde_json::Result<(Vec<String>, ListMeta)> {
        let mut names = Vec::new();
        let metadata = read(page.as_bytes(), |pod: Pod| names.extend(pod.metadata.name))?;
        Ok((names, metadata))
    }

    fn page(metadata: &Value, items: &Value) -> String {
        json!({ "kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items }).to_string()
    }

    #[test]
    fn a_page_has_its_objects_and_names_the_next_one() {
        let items = json!([{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" } }]);
        let page = page(&json!({ "resourceVersion": "7", "continue": "more" }), &items);
        let (found, metadata) = names(&page).unwrap();
        assert_eq!(found, ["a", "b"]);
        assert_eq!(metadata.version.as_deref(), Some("7"));
        assert_eq!(metadata.next.as_deref(), Some("more"));
    }

    #[test]
    fn the_last_page_names_no_other() {
        for metadata in [json!({}), json!({ "continue": "" }), json!({ "continue": null })] {
            let found = names(&page(&metadata, &Value::Null)).unwrap();
            assert_eq!(found, (Vec::new(), ListMeta::default()), "{metadata}");
        }
    }

    #[test]
    fn half_a_page_is_an_error_and_never_a_shorter_list() {
        let items = json!([{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" } }]);
        let whole = page(&json!({ "resourceVersion": "7" }), &items);
        for length in 0..whole.len() {
            assert!(names(&whole[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn json_without_items_is_an_error_and_never_an_empty_list() {
        for page in [
            "{}",
            r#"{"message": "no"}"#,
            r#"{"metadata": {"resourceVersion": "7"}}"#,
        ] {
            let error = names(page).expect_err(page);
            assert!(error.to_string().contains("items"), "{error}");
        }
    }
}
