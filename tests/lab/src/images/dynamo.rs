//! Dynamo and `AIPerf` on a minimal Debian, with a tiny model: a base layer that all versions share, and one layer per version.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs};

use clap::ValueEnum;
use nix::unistd::geteuid;
use serde_json::json;

use super::{Layer, NOBODY, Recipe, make_tmp, need, write_program};
use crate::command;
use crate::error::{Error, FileResult as _};

const SUITE: &str = "bookworm";
/// Of Debian's bookworm; the wheels must fit it.
const PYTHON: &str = "3.11";
/// The list of the image that ships, with its hashes: the lab measures with the same files.
const AIPERF: &str = include_str!("../../../../deploy/images/aiperf-0.13.0.txt");
const UNPACK: &str = include_str!("../../images/unpack-debian");
const AIPERF_PROGRAM: &str = include_str!("../../images/aiperf");
const WORKER_PROGRAM: &str = include_str!("../../images/lab-worker");
const MODEL: &str = include_str!("../../images/tiny_qwen3.py");
/// The text AIPerf makes its prompts from, so that the tokenizer knows its words.
const CORPUS: &str = "/opt/aiperf/aiperf/dataset/generator/assets/shakespeare.txt";
const HF_HOME: &str = "/opt/huggingface";

/// What is of no use in a container: a tenth of the base layer.
const UNUSED: &[&str] = &[
    "var/cache",
    "var/lib/apt/lists",
    "var/log",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
];

/// Packages of AIPerf's that a run does not import, or imports a corner of: not worth a fifth of the image.
const NOT_COMPILED: &str = "/(plotly|dash|matplotlib|mpl_toolkits|sqlalchemy|kubernetes_asyncio|fontTools|models|kaleido\
    |pygments|PIL|seaborn|alembic|setuptools|optuna|_pytest|textual|pyarrow|scipy)/";

/// A release of Dynamo the lab can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DynamoVersion {
    /// 1.2.1
    #[value(name = "1.2.1")]
    V1_2_1,
    /// 1.4.2
    #[default]
    #[value(name = "1.4.2")]
    V1_4_2,
    /// 1.6.1
    #[value(name = "1.6.1")]
    V1_6_1,
}

impl DynamoVersion {
    /// Every package and its version, from `uv pip compile`; `images/README.md` has the commands.
    fn packages(self) -> &'static str {
        match self {
            Self::V1_2_1 => include_str!("../../images/dynamo-1.2.1.txt"),
            Self::V1_4_2 => include_str!("../../images/dynamo-1.4.2.txt"),
            Self::V1_6_1 => include_str!("../../images/dynamo-1.6.1.txt"),
        }
    }
}

impl fmt::Display for DynamoVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::V1_2_1 => "1.2.1",
            Self::V1_4_2 => "1.4.2",
            Self::V1_6_1 => "1.6.1",
        })
    }
}

pub(super) fn recipe(version: DynamoVersion) -> Recipe {
    let source = include_str!("dynamo.rs");
    let base = Layer {
        name: "aiperf".to_owned(),
        inputs: [source, UNPACK, AIPERF, AIPERF_PROGRAM, MODEL].map(Into::into).into(),
        fill: Box::new(fill_base),
    };
    let dynamo = Layer {
        name: format!("dynamo-{version}"),
        inputs: [source, version.packages(), WORKER_PROGRAM].map(Into::into).into(),
        fill: Box::new(move |root, say| fill_dynamo(version, root, say)),
    };
    let env = [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME=/tmp",
        "PYTHONPATH=/opt/dynamo",
        "PYTHONUNBUFFERED=1",
        &format!("HF_HOME={HF_HOME}"),
        "HF_HUB_OFFLINE=1",
    ];
    Recipe {
        repository: "dynamo-lab",
        tag: version.to_string(),
        layers: vec![base, dynamo],
        config: json!({ "User": NOBODY, "Env": env, "WorkingDir": "/tmp", "Cmd": ["python3"] }),
    }
}

/// Debian, AIPerf and the model.
fn fill_base(root: &Path, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    if !geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    let debootstrap = need("debootstrap", "apt-get install --no-install-recommends debootstrap")?;
    say("  unpacking Debian");
    // Only its first stage, which downloads. The second one configures packages, syncs every file to the disk and takes
    // two thirds of the time, and programs that only run need little of it.
    let packages = [
        "--foreign",
        "--variant=minbase",
        "--include=python3,ca-certificates",
        SUITE,
    ];
    command::output(Command::new(debootstrap).args(packages).arg(root))?;
    command::output(Command::new("sh").args(["-eu", "-c", UNPACK, "unpack"]).arg(root))?;
    for unused in UNUSED {
        let path = root.join(unused);
        fs::remove_dir_all(&path).file("remove", path)?;
    }

    say("  installing AIPerf");
    install(&root.join("opt/aiperf"), AIPERF)?;
    write_program(&root.join("usr/local/bin/aiperf"), AIPERF_PROGRAM.as_bytes())?;

    say("  training the model's tokenizer");
    // With the image's own Python: the wheels fit no other.
    let python = ["python3", "-B", "-", CORPUS, HF_HOME];
    let mut train = Command::new("chroot");
    train.arg(root).args(python).env("PYTHONPATH", "/opt/aiperf");
    command::output_with_input(&mut train, MODEL)?;

    say("  compiling AIPerf");
    let mut python = Command::new("chroot");
    python.arg(root).arg("python3");
    compile(
        python,
        &["-x", NOT_COMPILED, "/opt/aiperf", &format!("/usr/lib/python{PYTHON}")],
    )?;
    make_tmp(root)
}

/// Dynamo in one release, and the worker that runs it.
fn fill_dynamo(version: DynamoVersion, root: &Path, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    say(&format!("  installing Dynamo {version}"));
    let folder = root.join("opt/dynamo");
    install(&folder, version.packages())?;
    // The layer has no Python of its own; bytecode of another version than the image's would be ignored.
    let find = ["python", "find", "--no-python-downloads", PYTHON];
    match command::output(Command::new(need_uv()?).args(find)) {
        Ok(python) => {
            let (root, folder) = (root.to_string_lossy(), folder.to_string_lossy());
            compile(Command::new(python.trim()), &["-s", &root, "-p", "/", &folder])?;
        }
        Err(_) => say(&format!("  not compiled: this machine has no Python {PYTHON}")),
    }
    write_program(&root.join("usr/local/bin/lab-worker"), WORKER_PROGRAM.as_bytes())
}

/// Compiles what the arguments name. The container cannot keep bytecode: each run would compile anew, which is 1.7 of the
/// 8 s of CPU that a short run of AIPerf takes, 0.8 of a worker's 1.9 s and 1.5 of a frontend's 1.8 s.
/// By hash: in a layer all times are the same, so bytecode that goes by time is stale, Debian's own too.
fn compile(mut python: Command, sources: &[&str]) -> Result<(), Error> {
    let options = ["-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"];
    command::output(python.args(options).args(sources)).map(drop)
}

fn need_uv() -> Result<PathBuf, Error> {
    need("uv", "pip install uv")
}

/// Installs exactly these packages. `--no-deps`: the list is whole, and the real dependencies of 1.6.1 cannot be had.
fn install(folder: &Path, packages: &str) -> Result<(), Error> {
    let uv = need_uv()?;
    let options = [
        "pip",
        "install",
        "--no-deps",
        "--python-version",
        PYTHON,
        "--requirement",
        "-",
        "--target",
    ];
    command::output_with_input(Command::new(uv).args(options).arg(folder), packages)?;
    remove_tests_and_bytecode(folder)
}

/// The test suites of numpy, scipy and pandas are bigger than Dynamo's Python.
fn remove_tests_and_bytecode(folder: &Path) -> Result<(), Error> {
    let mut walk = walkdir::WalkDir::new(folder).into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(std::io::Error::from).file("walk", folder)?;
        let unused = entry.file_name() == "tests" || entry.file_name() == "__pycache__";
        if entry.file_type().is_dir() && unused {
            fs::remove_dir_all(entry.path()).file("remove", entry.path())?;
            walk.skip_current_dir();
        }
    }
    Ok(())
}
