//! Answers for scripts, and files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Format, Output};
use crate::error::Error;

/// An answer in a format for scripts; `None` where people read it.
pub fn in_format(answer: &impl Serialize, format: Format) -> Result<Option<String>, Error> {
    match format {
        Format::Table => Ok(None),
        Format::Json => json(answer).map(Some),
        Format::Yaml => yaml(answer).map(Some),
    }
}

/// One object or a list of them in a format for scripts, as kubectl prints them; `None` where people read them.
pub fn objects<K>(objects: &[K], is_list: bool, output: Output) -> Result<Option<String>, Error>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    match output {
        Output::Table | Output::Wide => Ok(None),
        Output::Json => json(&printable(objects, is_list)?).map(Some),
        Output::Yaml => yaml(&printable(objects, is_list)?).map(Some),
        Output::Name => {
            let kind = format!("{}.{}", K::kind(&()).to_lowercase(), K::group(&()));
            let names = objects.iter().map(|object| format!("{kind}/{}\n", object.name_any()));
            Ok(Some(names.collect()))
        }
    }
}

/// Removes fields that only the API server reads. `is_list`: a list is printed, even of one object.
fn printable(objects: &[impl Serialize], is_list: bool) -> Result<Value, Error> {
    let mut items = Vec::new();
    for object in objects {
        let mut value = serde_json::to_value(object).map_err(|error| Error::Render(error.to_string()))?;
        if let Some(meta) = value["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
        items.push(value);
    }
    if is_list {
        return Ok(json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}));
    }
    Ok(items.pop().unwrap_or_default())
}

fn json(answer: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(answer).map_err(|error| Error::Render(error.to_string()))?;
    Ok(text + "\n")
}

/// Refuses a file that exists: it may have changes of the user. A pipe or a device has nothing to lose.
pub fn check_new(path: &Path) -> Result<(), Error> {
    let is_broken_link = path.is_symlink() && !path.exists();
    if path.is_file() || is_broken_link {
        return Err(exists(path));
    }
    Ok(())
}

/// Checks before a run that a new file can be written after it. It leaves no empty file.
pub fn can_be_created(path: &Path) -> Result<(), Error> {
    check_new(path)?;
    can_be_written(path)
}

/// Checks before a run that the file can be written after it. It leaves no empty file.
pub fn can_be_written(path: &Path) -> Result<(), Error> {
    // Closing a pipe ends it for its reader.
    if path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return Ok(());
    }
    let is_new = path.symlink_metadata().is_err();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let tried = opened.and_then(|_| if is_new { fs::remove_file(path) } else { Ok(()) });
    tried.map_err(Error::file(path))
}

/// Writes a file that does not exist yet, or to a pipe or a device.
pub fn write_new(path: &Path, content: &[u8]) -> Result<(), Error> {
    check_new(path)?;
    let written = if path.exists() {
        let opened = OpenOptions::new().write(true).open(path);
        opened.and_then(|mut file| file.write_all(content))
    } else {
        File::create_new(path).and_then(|file| fill(path, file, content))
    };
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Error::file(path)(error),
    })
}

/// Fills a file that was made for it. A part of it does not stay.
fn fill(path: &Path, mut file: impl Write, content: &[u8]) -> io::Result<()> {
    file.write_all(content).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

fn exists(path: &Path) -> Error {
    Error::BadInput(format!(
        "{} exists and is not replaced: remove it, or give another file",
        path.display()
    ))
}

pub fn yaml(answer: &impl Serialize) -> Result<String, Error> {
    serde_saphyr::to_string(answer).map_err(|error| Error::Render(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_leaves_no_part_of_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bundle.tar.gz");
        fs::write(&path, "a part").expect("written");
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let error = fill(&path, full, b"content").expect_err("no space");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(!path.exists());
    }
}
