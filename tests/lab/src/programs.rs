//! The cluster's programs, built from source by wrapper modules.
//!
//! `go install` cannot build Kubernetes (its `replace` lines and `v0.0.0` requirements), so modules of ours in `programs/`
//! pin the programs and, with `go.sum`, every dependency. A build is kept in the cache under a key of the module's content
//! and the build's arguments: nothing is built twice.

mod families;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::error::{Error, FileResult as _};
use crate::{command, packages, paths};

pub use families::{
    CONTAINERD, CONTROL_PLANE_FAMILIES, Family, HELM, KUSTOMIZE, MANIFEST_FAMILIES, NODE_FAMILIES, SIMULATION_FAMILIES,
};

/// The version of every `k8s.io` program.
pub const KUBERNETES: &str = "1.36.4";

/// Time from one progress line of a build to the next.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

impl Family {
    /// Names this exact build: changes with the wrapper's content and with the build's arguments.
    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        let arguments = self.arguments().join("\n");
        let linked = if self.cgo { "cgo" } else { "static" };
        let files = self.files().flat_map(|(path, content)| [path, content]);
        for part in files.chain([arguments.as_str(), linked]) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        format!("{:x}", hash.finalize())[..16].to_owned()
    }

    /// The folder of this build in the cache.
    pub fn folder(&self) -> PathBuf {
        paths::cache()
            .join("programs")
            .join(format!("{}-{}", self.name, self.key()))
    }

    /// Every file of the build: path and content.
    fn files(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let module = [("go.mod", self.module.go_mod), ("go.sum", self.module.go_sum)];
        module.into_iter().chain(self.sources.iter().copied())
    }

    /// Whether the cache has all of its programs.
    pub fn is_built(&self) -> bool {
        let folder = self.folder();
        self.binaries.iter().all(|binary| folder.join(binary).is_file())
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["-ldflags".to_owned(), linker_flags()];
        if !self.tags.is_empty() {
            arguments.extend(["-tags".to_owned(), self.tags.to_owned()]);
        }
        arguments.extend(self.packages.iter().map(ToString::to_string));
        arguments
    }
}

/// Stamps the Kubernetes version: NVIDIA's driver and Helm's `kubeVersion` read it. Go ignores it in other programs.
fn linker_flags() -> String {
    let (major, rest) = KUBERNETES.split_once('.').unwrap_or((KUBERNETES, ""));
    let minor = rest.split('.').next().unwrap_or_default();
    let mut flags = vec!["-s -w".to_owned()];
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in [
            ("gitVersion", format!("v{KUBERNETES}").as_str()),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "clean"),
            ("gitCommit", "unknown"),
            ("buildDate", "1970-01-01T00:00:00Z"),
        ] {
            flags.push(format!("-X {package}.{name}={value}"));
        }
    }
    flags.join(" ")
}

/// Builds a family unless the cache has it, and returns the folder with its programs.
pub fn build(family: &Family, say: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    let folder = family.folder();
    if family.is_built() {
        return Ok(folder);
    }
    let lock = folder.with_extension("lock");
    let _lock = hold(&lock).file("lock", &lock)?;
    if family.is_built() {
        return Ok(folder);
    }
    if packages::find("go").is_none() {
        return Err(Error::MissingPrograms {
            missing: "go (1.26.8 or newer)".to_owned(),
            install: "the archive of https://go.dev/dl unpacked to /usr/local, with /usr/local/go/bin in PATH"
                .to_owned(),
        });
    }
    say(&format!(
        "building {} from source (once; minutes on a small machine)",
        family.name
    ));
    let work = folder.with_extension("building");
    if work.exists() {
        std::fs::remove_dir_all(&work).file("remove", &work)?;
    }
    let out = work.join("bin");
    std::fs::create_dir_all(&out).file("create", &out)?;
    for (name, content) in family.files() {
        let file = work.join(name);
        let folder = file.parent().unwrap_or(&work);
        std::fs::create_dir_all(folder).file("create", folder)?;
        std::fs::write(&file, content).file("write", &file)?;
    }
    let started = Instant::now();
    compile(family, &work, &out, say)?;
    // Renamed last: an interrupted build never looks like a finished one.
    std::fs::rename(&out, &folder).file("move into place", &folder)?;
    std::fs::remove_dir_all(&work).file("remove", &work)?;
    say(&format!("built {} in {} s", family.name, started.elapsed().as_secs()));
    Ok(folder)
}

/// One line of a running build; `tests/lab/prepare/progress.py` reads it.
fn progress(family: &Family, compiled: u32, elapsed: Duration) -> String {
    let (name, expected, seconds) = (family.name, family.compiles.max(compiled), elapsed.as_secs());
    format!("{name}: {compiled} of about {expected} packages, {seconds} s")
}

/// Tests and labs may want the same program at the same time; the lock goes with the file.
fn hold(lock: &Path) -> io::Result<File> {
    lock.parent().map_or(Ok(()), fs::create_dir_all)?;
    let file = File::create(lock)?;
    file.lock().map(|()| file)
}

fn compile(family: &Family, work: &Path, out: &Path, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    // One program gets its name (etcd's package would be called `server`), several keep theirs.
    let target = if let [binary] = family.binaries {
        out.join(binary)
    } else {
        out.join("")
    };
    let mut command = Command::new("go");
    command
        .current_dir(work)
        .args(["build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o"])
        .arg(target)
        .args(family.arguments())
        .env("CGO_ENABLED", if family.cgo { "1" } else { "0" })
        // The wrapper decides versions; a different toolchain is never downloaded.
        .env("GOTOOLCHAIN", "local")
        .env_remove("GOFLAGS")
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let start_error = |source| Error::Start {
        program: "go".to_owned(),
        source,
    };
    let mut child = command.spawn().map_err(start_error)?;
    let (started, mut last_said) = (Instant::now(), Instant::now());
    let (mut compiled, mut said) = (0_u32, String::new());
    for line in child
        .stderr
        .take()
        .map(BufReader::new)
        .into_iter()
        .flat_map(BufRead::lines)
        .map_while(Result::ok)
    {
        compiled += 1;
        said.push_str(&line);
        said.push('\n');
        if last_said.elapsed() >= PROGRESS_EVERY {
            last_said = Instant::now();
            say(&progress(family, compiled, started.elapsed()));
        }
    }
    let status = child.wait().map_err(start_error)?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Command {
        command: format!("go build {}", family.packages.join(" ")),
        status,
        output: command::tail(&said, 4000).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        families::{COREDNS, ETCD, KUBERNETES_PROGRAMS, Module},
        *,
    };

    #[test]
    fn the_key_follows_every_input_of_the_build() {
        let same = Family { ..ETCD };
        assert_eq!(ETCD.key(), same.key());
        let with_module = |change: fn(&mut Module)| {
            let mut module = ETCD.module;
            change(&mut module);
            Family { module, ..ETCD }
        };
        let changes = [
            with_module(|module| module.go_mod = "module lab/other"),
            with_module(|module| module.go_sum = ""),
            Family {
                sources: &[("coredns/main.go", "package main")],
                ..ETCD
            },
            Family { tags: "netgo", ..ETCD },
            Family { cgo: true, ..ETCD },
            Family {
                packages: &["go.etcd.io/etcd/etcdctl/v3"],
                ..ETCD
            },
        ];
        for change in changes {
            assert_ne!(ETCD.key(), change.key(), "{change:?}");
        }
    }

    #[test]
    fn every_wrapper_pins_what_it_builds() {
        let families = [
            CONTROL_PLANE_FAMILIES,
            SIMULATION_FAMILIES,
            NODE_FAMILIES,
            MANIFEST_FAMILIES,
        ];
        for family in families.concat() {
            let module = family.module;
            for package in family.packages {
                let source = package.strip_prefix("./").map(|folder| format!("{folder}/main.go"));
                let is_pinned = source.map_or(module.go_mod.contains(package), |source| {
                    family.sources.iter().any(|(path, _)| *path == source)
                });
                assert!(is_pinned, "{package} is not in the module of {}", family.name);
            }
            assert!(!module.go_sum.is_empty(), "{}", family.name);
        }
        assert!(
            KUBERNETES_PROGRAMS
                .module
                .go_mod
                .contains(&format!("k8s.io/kubernetes v{KUBERNETES}"))
        );
    }

    #[test]
    fn the_fake_api_server_reports_the_version_of_the_lab() {
        let fake = include_str!("../../testkit/src/api_server/route.rs");
        let minor = KUBERNETES.split('.').nth(1).expect("a minor version");
        for part in [
            format!("KUBERNETES: &str = \"v{KUBERNETES}\";"),
            format!("\"minor\": \"{minor}\""),
        ] {
            assert!(fake.contains(&part), "the fake API server lacks {part}");
        }
    }

    #[test]
    fn progress_is_counted_up_to_the_expected_number_and_beyond() {
        let family = Family { compiles: 100, ..ETCD };
        let line = |compiled| progress(&family, compiled, Duration::from_secs(12));
        assert_eq!(line(40), "etcd: 40 of about 100 packages, 12 s");
        assert_eq!(line(140), "etcd: 140 of about 140 packages, 12 s");
    }

    #[test]
    fn coredns_has_the_plugins_that_its_corefile_uses() {
        let (_, source) = COREDNS.sources[0];
        let corefile = crate::node::corefile(&crate::paths::StateDir::at("/lab"));
        let inside = corefile.lines().filter_map(|line| line.strip_prefix("    "));
        let used = inside.filter(|line| !line.starts_with([' ', '}']));
        let mut count = 0;
        for plugin in used.filter_map(|line| line.split(' ').next()) {
            count += 1;
            let import = format!("_ \"github.com/coredns/coredns/plugin/{plugin}\"");
            assert!(source.contains(&import), "{plugin} is not in coredns/main.go");
        }
        assert_eq!(count, source.matches("/coredns/plugin/").count());
    }
}
