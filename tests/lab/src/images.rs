//! The lab's container images, made without a registry and without a container engine.
//!
//! Each is a docker-archive in the cache, named by the hash of everything it is made of: the second call costs nothing.

mod archive;
mod cache;
mod dynamo;
mod operator;
mod small;
mod store;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use dynamo::DynamoVersion;
pub use store::{fill as fill_store, make as make_store};

use crate::error::{Error, FileResult as _};
use crate::packages;

/// The user of every image but busybox: no name, no rights.
const NOBODY: &str = "65532:65532";

/// An image the lab can make.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Image {
    /// The sandbox of every pod, `localhost/pause:lab`
    Pause,
    /// A shell and its tools for tests, `localhost/busybox:lab`
    Busybox,
    /// Dynamo, `AIPerf` and the model lab/tiny-qwen3, `localhost/dynamo-lab:<version>`
    Dynamo {
        /// Release of Dynamo
        #[arg(value_enum, default_value_t)]
        version: DynamoVersion,
    },
    /// The operator and its runner, `localhost/perfvalidation-operator:lab`
    Operator {
        /// The static program perfvalidation-operator
        operator: PathBuf,
        /// The static program perfval-runner
        runner: PathBuf,
    },
}

/// What an image is made of.
struct Recipe {
    repository: &'static str,
    tag: String,
    layers: Vec<Layer>,
    /// `User`, `Env`, `Entrypoint`, `Cmd` as in the OCI image configuration.
    config: Value,
}

/// One layer: a root folder's content.
struct Layer {
    name: String,
    /// Everything the content depends on; it is made anew when one byte of it changes.
    inputs: Vec<Vec<u8>>,
    fill: Fill,
}

/// Puts a layer's files into an empty folder that starts as `/`, and says what takes long.
type Fill = Box<dyn FnOnce(&Path, &mut dyn FnMut(&str)) -> Result<(), Error>>;

impl Image {
    fn recipe(&self) -> Result<Recipe, Error> {
        match self {
            Self::Pause => Ok(small::pause()),
            Self::Busybox => small::busybox(),
            Self::Dynamo { version } => Ok(dynamo::recipe(*version)),
            Self::Operator { operator, runner } => operator::recipe(operator, runner),
        }
    }
}

/// The path of the image's docker-archive (`ctr -n k8s.io images import`), which is made when the cache has none.
pub fn build(image: &Image, say: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    let Recipe {
        repository,
        tag,
        layers,
        config,
    } = image.recipe()?;
    let reference = format!("localhost/{repository}:{tag}");
    let config = archive::config(&config);
    let keys = layers.iter().map(Layer::key).collect::<Vec<_>>();
    let key = cache::key(
        [reference.as_bytes(), config.to_string().as_bytes(), archive::SOURCE]
            .into_iter()
            .chain(keys.iter().map(String::as_bytes)),
    );
    let target = cache::cached(&format!("{repository}-{tag}"), &key);
    if target.exists() {
        return Ok(target);
    }

    let _lock = cache::lock(say)?;
    if target.exists() {
        return Ok(target);
    }
    say(&format!("making image {reference}"));
    let layers = layers
        .into_iter()
        .map(|layer| layer.build(say))
        .collect::<Result<Vec<_>, _>>()?;
    cache::replace(&target, |part| archive::write(part, &reference, config, &layers))?;
    Ok(target)
}

impl Layer {
    fn key(&self) -> String {
        cache::key(self.inputs.iter().map(Vec::as_slice).chain([archive::SOURCE]))
    }

    fn build(self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
        let target = cache::cached(&format!("layer-{}", self.name), &self.key());
        if !target.exists() {
            let root = cache::unfinished_folder()?;
            // The image's user must be able to enter `/`.
            fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755))
                .file("open to everyone", root.path())?;
            (self.fill)(root.path(), say)?;
            cache::replace(&target, |part| archive::write_layer(part, root.path()))?;
        }
        Ok(target)
    }
}

/// A program of the distribution, or the command that installs it.
fn need(program: &str, install: &str) -> Result<PathBuf, Error> {
    packages::find(program).ok_or_else(|| Error::MissingPrograms {
        missing: program.to_owned(),
        install: install.to_owned(),
    })
}

/// Writes an executable file and the folders above it.
fn write_program(path: &Path, content: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).file("make", folder)?;
    fs::write(path, content).file("write", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).file("make executable", path)
}

/// Reads a program that must run without a dynamic linker, for the image has none.
fn read_static_program(path: &Path, build: &str) -> Result<Vec<u8>, Error> {
    use object::{
        elf::PT_INTERP,
        read::elf::{ElfFile64, ProgramHeader as _},
    };

    let program = fs::read(path).file("read", path)?;
    let complain = |what: &str| Error::Usage(format!("{} {what}; make a static one: {build}", path.display()));
    let elf: ElfFile64 = ElfFile64::parse(&*program).map_err(|_| complain("is no 64-bit ELF program"))?;
    if elf
        .elf_program_headers()
        .iter()
        .any(|header| header.p_type(elf.endian()) == PT_INTERP)
    {
        return Err(complain("needs a dynamic linker, which the image has not"));
    }
    Ok(program)
}

/// `/tmp`, where every user may write.
fn make_tmp(root: &Path) -> Result<(), Error> {
    let tmp = root.join("tmp");
    fs::create_dir_all(&tmp).file("make", &tmp)?;
    fs::set_permissions(&tmp, fs::Permissions::from_mode(0o1777)).file("open to everyone", tmp)
}
