//! Objects in Kubernetes' protobuf, as an API server sends them to whoever asks for that.

mod schema;

use k8s_openapi::jiff::Timestamp;
use perfval_sizing::inventory::protobuf::MEDIA_TYPE;
use serde_json::Value;

use schema::{Field, Kind, schema};

/// An object, or a list of them, as the body of an answer; none for a kind that has no such form here.
///
/// # Panics
/// If it has a field that is not known here: what is left out silently would never be tested.
pub fn body(object: &Value) -> Option<Vec<u8>> {
    let kind = object["kind"].as_str()?;
    let raw = match kind.strip_suffix("List") {
        Some(of) => {
            schema(of)?;
            let items: Vec<Vec<u8>> = object["items"]
                .as_array()?
                .iter()
                .map(|object| item(of, object))
                .collect::<Option<_>>()?;
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            list(text("resourceVersion"), text("continue"), &items.concat())
        }
        None => message(object, schema(kind)?),
    };
    Some(envelope(object["apiVersion"].as_str().unwrap_or("v1"), kind, &raw))
}

/// One object of a list, as the list holds it.
pub fn item(kind: &str, object: &Value) -> Option<Vec<u8>> {
    let mut item = Vec::new();
    put_bytes(&mut item, 2, &message(object, schema(kind)?));
    Some(item)
}

/// A list of such items.
pub fn list(version: &str, next: &str, items: &[u8]) -> Vec<u8> {
    let mut metadata = Vec::new();
    put_bytes(&mut metadata, 2, version.as_bytes());
    put_bytes(&mut metadata, 3, next.as_bytes());
    let mut list = Vec::with_capacity(items.len() + 64);
    put_bytes(&mut list, 1, &metadata);
    list.extend_from_slice(items);
    list
}

/// The envelope of every body.
pub fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut body = Vec::with_capacity(raw.len() + 128);
    body.extend_from_slice(b"k8s\0");
    put_bytes(&mut body, 1, &type_meta);
    put_bytes(&mut body, 2, raw);
    put_bytes(&mut body, 3, b"");
    put_bytes(&mut body, 4, b"");
    body
}

/// Whether a request asks for this form.
pub fn is_wanted(accept: &str) -> bool {
    accept.starts_with(MEDIA_TYPE)
}

fn message(object: &Value, schema: &[Field]) -> Vec<u8> {
    let mut message = Vec::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let field = schema.iter().find(|field| field.0 == name);
        match field {
            Some(Field(_, number, kind)) => put(&mut message, *number, kind, value),
            // The envelope says it.
            None if name == "kind" || name == "apiVersion" => {}
            None => panic!("{name} is not known in {object}"),
        }
    }
    message
}

fn put(message: &mut Vec<u8>, number: u32, kind: &Kind, value: &Value) {
    match (kind, value) {
        (_, Value::Null) => {}
        (_, Value::Array(all)) => all.iter().for_each(|one| put(message, number, kind, one)),
        (Kind::Map(of), Value::Object(entries)) => {
            for (key, value) in entries {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                put(&mut entry, 2, of, value);
                put_bytes(message, number, &entry);
            }
        }
        (Kind::Message(schema), value) => put_bytes(message, number, &self::message(value, schema)),
        (Kind::Text, Value::String(text)) => put_bytes(message, number, text.as_bytes()),
        (Kind::Quantity, Value::String(text)) => {
            let mut quantity = Vec::new();
            put_bytes(&mut quantity, 1, text.as_bytes());
            put_bytes(message, number, &quantity);
        }
        (Kind::Time, Value::String(text)) => {
            let time: Timestamp = text.parse().expect("a time");
            let mut moment = Vec::new();
            put_number(&mut moment, 1, time.as_second());
            put_bytes(message, number, &moment);
        }
        (Kind::Json, value) => {
            let mut raw = Vec::new();
            put_bytes(&mut raw, 1, value.to_string().as_bytes());
            put_bytes(message, number, &raw);
        }
        (Kind::Number, Value::Number(value)) => put_number(message, number, value.as_i64().expect("a whole number")),
        (Kind::Truth, Value::Bool(value)) => put_number(message, number, i64::from(*value)),
        (_, value) => panic!("{value} is of another kind than field {number}"),
    }
}

fn put_bytes(message: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(message, u64::from((number << 3) | 2));
    put_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

fn put_number(message: &mut Vec<u8>, number: u32, value: i64) {
    put_varint(message, u64::from(number << 3));
    put_varint(message, value.cast_unsigned());
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    message.push(value.to_le_bytes()[0]);
}
