//! Large tables of the operator's state as one text: eight GPUs, eight trials and ten earlier runs take 19 KB of JSON, and
//! 5 KB packed. etcd keeps every version of an object.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use serde_json::{Map, Value};

/// Fields that are packed.
const TABLES: [&str; 8] = [
    "environment",
    "history",
    "lastPassed",
    "plan",
    "timeline",
    "trials",
    "workerPods",
    "workers",
];
/// Field that holds them: base64 of gzip of a JSON object.
const PACKED: &str = "tables";
/// Largest JSON that is unpacked (bytes). A person may have written the text.
const MOST: u64 = 1 << 20;

/// Replaces the tables of a state by their packed text.
pub(super) fn pack(state: &mut Map<String, Value>) -> serde_json::Result<()> {
    let tables = TABLES.iter().filter_map(|name| state.remove_entry(*name));
    let tables: Map<String, Value> = tables.collect();
    if tables.is_empty() {
        return Ok(());
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&serde_json::to_vec(&tables)?)
        .map_err(serde_json::Error::io)?;
    let bytes = gzip.finish().map_err(serde_json::Error::io)?;
    state.insert(PACKED.to_owned(), serde_json::to_value(ByteString(bytes))?);
    Ok(())
}

/// Replaces the packed text by the tables. Fails if the text cannot be unpacked or exceeds 1 MiB.
pub(super) fn unpack(state: &mut Map<String, Value>) -> serde_json::Result<()> {
    let Some(packed) = state.remove(PACKED) else {
        return Ok(());
    };
    let ByteString(bytes) = serde_json::from_value(packed)?;
    // Read whole first: the JSON reader asks the decoder for one byte at a time.
    let mut json = Vec::new();
    let unpacked = GzDecoder::new(&*bytes).take(MOST).read_to_end(&mut json);
    unpacked.map_err(serde_json::Error::io)?;
    let tables: Map<String, Value> = serde_json::from_slice(&json)?;
    for (name, table) in tables {
        state.entry(name).or_insert(table);
    }
    Ok(())
}
