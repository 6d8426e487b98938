//! Objects as the watch's store keeps them: packed, and with no more than decisions need.
//!
//! In memory a waiting object took 9 KB, and 5,000 of them did not fit into 128 MiB beside 5,000 nodes. As compressed JSON it
//! takes about 1 KB. The API server admits objects of 1.5 MB, so an object that is too large is kept by its name alone.

use std::cell::RefCell;
use std::io;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use kube::api::ObjectMeta;
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::{Resource, ResourceExt as _};
use perfval_api::meta::FINALIZER;
use perfval_api::{PerfValidation, PerfValidationSpec, PerfValidationStatus, Phase};
use perfval_fleet::policy::Outline;
use serde::{Deserialize, Deserializer};

use crate::resting;

/// Longest spec (bytes of JSON).
const SPEC_BYTES: usize = 16 << 10;
/// Longest value of an annotation of the operator, and longest reference to a controller (bytes).
const TEXT_BYTES: usize = 1 << 10;
/// Most finalizers of others. Kubernetes limits only the length of each, and 1.4 MB of short ones took 8 MB.
const FINALIZERS: usize = 20;

/// An object of the watch. An object that cannot be parsed does not hide the others.
#[derive(Resource, Clone, Debug)]
#[resource(inherit = "PerfValidation")]
pub struct Stored {
    metadata: ObjectMeta,
    phase: Option<Phase>,
    is_answered: bool,
    outline: Outline,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// Spec and status.
    Packed(PackedObject),
    /// Reason for which only the metadata is kept.
    Unreadable(Box<str>),
    /// The store has no room for the packed object of this many bytes.
    Refused(usize, &'static str),
}

#[derive(Clone, Debug)]
struct PackedObject {
    bytes: Box<[u8]>,
    length: usize,
}

/// Parts that are packed.
type Unpacked = (PerfValidationSpec, Option<PerfValidationStatus>);

impl Stored {
    /// Packs an object. An object that is too large counts as unreadable.
    pub fn new(mut object: PerfValidation) -> Self {
        let outline = Outline::new(&object);
        resting::reduce(&mut object);
        let packed = match too_large(&object) {
            Some(reason) => Err(reason),
            None => pack(&object).map_err(|error| format!("the operator cannot keep the object: {error}")),
        };
        let status = object.status.as_ref();
        match packed {
            Ok(packed) => Self {
                phase: status.and_then(|status| status.phase),
                is_answered: status.is_some_and(|status| status.is_of_an_operator() && status.phase.is_some()),
                metadata: object.metadata,
                outline,
                content: Content::Packed(packed),
            },
            Err(reason) => Self::unreadable(object.metadata, reason),
        }
    }

    fn unreadable(mut metadata: ObjectMeta, reason: String) -> Self {
        metadata.annotations = None;
        metadata.owner_references = None;
        // The operator adds its own after at most as many of others. It keeps its place, by which it is released.
        if let Some(finalizers) = &mut metadata.finalizers {
            finalizers.truncate(FINALIZERS + 1);
            finalizers.shrink_to_fit();
        }
        Self {
            metadata,
            phase: None,
            is_answered: true,
            outline: Outline::default(),
            content: Content::Unreadable(reason.into()),
        }
    }

    /// The object, or the reason for which it cannot be read.
    pub fn unpack(&self) -> Result<PerfValidation, Box<InvalidObject>> {
        let error = match &self.content {
            Content::Packed(packed) => match unpack(packed) {
                Ok((spec, status)) => {
                    return Ok(PerfValidation {
                        metadata: self.metadata.clone(),
                        spec,
                        status,
                    });
                }
                Err(error) => format!("the operator cannot read the object that it kept: {error}"),
            },
            Content::Unreadable(reason) => reason.to_string(),
            Content::Refused(_, reason) => (*reason).to_owned(),
        };
        Err(Box::new(InvalidObject {
            error,
            metadata: self.metadata.clone(),
        }))
    }

    /// Phase of the run; `None` if the object cannot be read.
    pub fn phase(&self) -> Option<Phase> {
        self.is_readable().then(|| self.phase.unwrap_or(Phase::Pending))
    }

    /// Parts that policies read, without unpacking.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Reports whether the outline is that of the object.
    pub fn has_outline(&self) -> bool {
        !matches!(self.content, Content::Unreadable(_))
    }

    /// Reports whether there is anything to unpack.
    pub fn is_readable(&self) -> bool {
        matches!(self.content, Content::Packed(_))
    }

    /// Reports whether the object needs no first status: it has one, or it cannot be read and gets none.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Bytes of the packed object that the store keeps.
    pub(crate) fn bytes(&self) -> usize {
        match &self.content {
            Content::Packed(packed) => packed.bytes.len(),
            Content::Unreadable(_) | Content::Refused(..) => 0,
        }
    }

    /// Drops everything but the metadata, because the store has no room.
    pub(crate) fn refuse(&mut self, reason: &'static str) {
        self.content = Content::Refused(self.bytes(), reason);
        self.is_answered = true;
    }

    /// Bytes for which the store had no room.
    pub(crate) fn lacks_room(&self) -> Option<usize> {
        match self.content {
            Content::Refused(bytes, _) => Some(bytes),
            Content::Packed(_) | Content::Unreadable(_) => None,
        }
    }
}

fn pack(object: &PerfValidation) -> io::Result<PackedObject> {
    let json = serde_json::to_vec(&(&object.spec, &object.status))?;
    // Deflate adds five bytes to each 16 KB that it cannot make shorter.
    let mut bytes = Vec::with_capacity(json.len() + json.len() / 1_000 + 64);
    let status = COMPRESS.with_borrow_mut(|compress| {
        compress.reset();
        compress.compress_vec(&json, &mut bytes, FlushCompress::Finish)
    })?;
    if status != Status::StreamEnd {
        return Err(io::Error::other("compression made it longer"));
    }
    Ok(PackedObject {
        // Copied, because an allocator may leave a vector that shrinks where it is.
        bytes: Box::from(bytes.as_slice()),
        length: json.len(),
    })
}

thread_local! {
    /// A new compressor has 300 KB, and a new decompressor 43 KB. To clear them took as long as their work on a small object.
    static COMPRESS: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
    static DECOMPRESS: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

fn unpack(packed: &PackedObject) -> io::Result<Unpacked> {
    let mut json = Vec::with_capacity(packed.length);
    DECOMPRESS.with_borrow_mut(|decompress| {
        decompress.reset(false);
        decompress.decompress_vec(&packed.bytes, &mut json, FlushDecompress::Finish)
    })?;
    Ok(serde_json::from_slice(&json)?)
}

/// Returns the reason and the remedy, if an object is too large.
pub(crate) fn too_large(object: &PerfValidation) -> Option<String> {
    let metadata = &object.metadata;
    let annotations = metadata.annotations.iter().flatten();
    let annotations = annotations
        .filter(|(key, _)| resting::READ.contains(&key.as_str()))
        .map(|(key, value)| (format!("annotation {key}"), value.len()));
    let owners = metadata.owner_references.iter().flatten().map(|owner| {
        let texts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
        let length = texts.into_iter().map(String::len).sum::<usize>();
        ("reference to its controller".to_owned(), length)
    });
    let long = annotations.chain(owners).find(|(_, length)| *length > TEXT_BYTES);
    if let Some((text, length)) = long {
        return Some(format!("the {text} has {length} bytes; write at most {TEXT_BYTES}"));
    }
    let finalizers = object.finalizers().iter().filter(|name| *name != FINALIZER).count();
    if finalizers > FINALIZERS {
        return Some(format!(
            "the object has {finalizers} finalizers of others; keep at most {FINALIZERS}"
        ));
    }
    // A spec has a JSON form.
    let length = serde_json::to_vec(&object.spec).ok()?.len();
    (length > SPEC_BYTES).then(|| {
        format!("the spec has {length} bytes of JSON; write at most {SPEC_BYTES}, and put long values into a ConfigMap (env.valueFrom)")
    })
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let DeserializeGuard(object) = DeserializeGuard::<PerfValidation>::deserialize(deserializer)?;
        Ok(match object {
            Ok(object) => Self::new(object),
            Err(InvalidObject { error, mut metadata }) => {
                resting::strip(&mut metadata);
                Self::unreadable(
                    metadata,
                    format!("this operator version cannot parse the object: {error}"),
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_object;

    fn stored(change: impl FnOnce(&mut Value)) -> Stored {
        let annotations =
            json!({"note": "n".repeat(9_000), "perfvalidation.dev/rerun": "1", "perfvalidation.dev/note": "1"});
        let owners = json!([
            {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "2"},
            {"apiVersion": "example.com/v1", "kind": "Owner", "name": "controller", "uid": "3", "controller": true},
        ]);
        let mut object: Value = test_object::object(
            &json!({"uid": "1", "labels": {"team": "a"}, "annotations": annotations, "ownerReferences": owners}),
            &json!({"phase": "Sizing", "observedGeneration": 1, "ofANewerVersion": {"a": 1}}),
        );
        change(&mut object);
        serde_json::from_value(object).expect("an object has metadata")
    }

    fn unreadable(change: impl FnOnce(&mut Value)) -> String {
        let stored = stored(change);
        assert_eq!((stored.phase(), stored.bytes(), stored.is_answered()), (None, 0, true));
        let invalid = stored.unpack().expect_err("it is unreadable");
        assert_eq!(
            (invalid.metadata.name.as_deref(), invalid.metadata.uid.as_deref()),
            (Some("run"), Some("1"))
        );
        assert_eq!(invalid.metadata.annotations, None);
        assert_eq!(invalid.metadata.owner_references, None);
        invalid.error
    }

    #[test]
    fn unpacks_what_it_packed_without_foreign_metadata() {
        let stored = stored(|_| ());
        assert_eq!((stored.phase(), stored.is_answered()), (Some(Phase::Sizing), true));
        let object = stored.unpack().expect("it is small");
        let annotations: Vec<_> = object.metadata.annotations.iter().flatten().collect();
        assert_eq!(annotations, [(&"perfvalidation.dev/rerun".to_owned(), &"1".to_owned())]);
        assert_eq!(object.metadata.labels, None);
        let owners = object.owner_references().iter().map(|owner| owner.name.as_str());
        assert_eq!(owners.collect::<Vec<_>>(), ["controller"]);
        assert_eq!(object.spec.model.name, "m");
        let again = Stored::new(object.clone()).unpack().expect("it is small");
        assert_eq!(
            serde_json::to_value(again).expect("JSON"),
            serde_json::to_value(object).expect("JSON")
        );
    }

    #[test]
    fn a_waiting_object_takes_little() {
        let bytes = stored(|_| ()).bytes();
        assert!((100..2_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn keeps_only_the_name_of_an_object_that_is_too_large() {
        let long = "a".repeat(1_024);
        let error =
            unreadable(|object| object["spec"]["workload"]["dynamo"]["worker"]["args"] = json!(vec![&long; 20]));
        assert!(error.contains("at most 16384"), "{error}");
        let error = unreadable(|object| object["metadata"]["ownerReferences"][1]["name"] = json!(&long));
        assert!(error.contains("controller has 1044 bytes"), "{error}");
        let error =
            unreadable(|object| object["metadata"]["annotations"]["perfvalidation.dev/rerun"] = json!(long + "a"));
        assert!(error.contains("rerun has 1025 bytes; write at most 1024"), "{error}");
        let fits = stored(|object| {
            object["spec"]["workload"]["dynamo"]["worker"]["args"] = json!(vec!["a".repeat(1_024); 14]);
        });
        assert!(fits.is_readable());
    }

    #[test]
    fn keeps_no_more_finalizers_than_show_the_place_of_its_own() {
        let finalizers = |others: usize| {
            let mut all: Vec<String> = (0..others).map(|number| format!("others.example/{number}")).collect();
            all.insert(FINALIZERS, FINALIZER.to_owned());
            json!(all)
        };
        assert!(stored(|object| object["metadata"]["finalizers"] = finalizers(FINALIZERS)).is_readable());
        let error = unreadable(|object| object["metadata"]["finalizers"] = finalizers(1_000));
        assert!(error.contains("1000 finalizers of others; keep at most 20"), "{error}");
        let crowded = stored(|object| object["metadata"]["finalizers"] = finalizers(1_000));
        assert_eq!(crowded.finalizers().len(), FINALIZERS + 1);
        assert_eq!(crowded.finalizers()[FINALIZERS], FINALIZER);
    }

    #[test]
    fn keeps_only_the_name_of_an_object_that_cannot_be_parsed() {
        let error = unreadable(|object| object["spec"]["model"] = json!(7));
        assert!(
            error.starts_with("this operator version cannot parse the object: "),
            "{error}"
        );
    }
}
