//! The parts of a release.

use std::fs;
use std::process::Command;

use perfval_lab::programs::{self, Family, HELM, KUSTOMIZE};

use crate::Result;
use crate::command::{line, output};
use crate::names::PROGRAMS;
use crate::source::Source;

/// The static programs for a target.
pub fn programs(source: &Source, triple: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let home = match std::env::var("CARGO_HOME") {
        Ok(home) => home,
        Err(_) => format!("{}/.cargo", std::env::var("HOME")?),
    };
    let flags = format!(
        "-C target-feature=+crt-static --remap-path-prefix={}=. --remap-path-prefix={home}=cargo",
        source.root.display()
    );
    let folder = source.root.with_file_name("release-build");
    let mut cargo = source.command("cargo");
    cargo
        .args(["build", "--locked", "--release", "--target", triple])
        .args(["-p", "perfval-operator", "-p", "perfval-runner", "-p", "perfval-cli"])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", flags)
        .env("PERFVAL_REVISION", &source.commit);
    if let Some(linker) = linker(triple)? {
        let variable = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace('-', "_"));
        cargo.env(variable, linker);
    }
    output(&mut cargo)?;
    let built = folder.join(triple).join("release");
    let read = |name: &str| Ok((name.to_owned(), fs::read(built.join(name))?));
    PROGRAMS.into_iter().map(|(name, _)| read(name)).collect()
}

/// The linker for a target of another architecture than this machine's. Debian names its packages this way.
fn linker(triple: &str) -> Result<Option<String>> {
    let architecture = triple.split('-').next().unwrap_or_default();
    if architecture == std::env::consts::ARCH {
        return Ok(None);
    }
    let linker = format!("{architecture}-linux-gnu-gcc");
    match Command::new(&linker).arg("--version").output() {
        Ok(_) => Ok(Some(linker)),
        Err(error) => Err(format!(
            "{linker} does not start ({error}); on Debian: apt-get install gcc-{}-linux-gnu libc6-dev-{}-cross; \
             rustup target add {triple}",
            architecture.replace('_', "-"),
            if architecture == "aarch64" { "arm64" } else { "amd64" },
        )
        .into()),
    }
}

/// What a program is made of, in `CycloneDX`.
pub fn bill_of_materials(source: &Source, package: &str) -> Result<Vec<u8>> {
    let manifest = format!("crates/{package}/Cargo.toml");
    // The plug-in has other parts on macOS.
    let triple = match package {
        "cli" => "all".to_owned(),
        _ => format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
    };
    let mut cyclonedx = source.command("cargo-cyclonedx");
    cyclonedx
        .args([
            "cyclonedx",
            "--quiet",
            "--format=json",
            "--spec-version=1.5",
            "--no-build-deps",
        ])
        .args([
            "--target",
            &triple,
            "--manifest-path",
            &manifest,
            "--override-filename=bom",
        ]);
    output(&mut cyclonedx)?;
    let text = String::from_utf8(source.read(&format!("crates/{package}/bom.json"))?)?;
    // It names crates of the workspace by where they lie.
    Ok(text.replace(&*source.root.to_string_lossy(), "").into_bytes())
}

/// The licences of everything in a program, with their texts.
pub fn licences(source: &Source, package: &str) -> Result<Vec<u8>> {
    let manifest = format!("crates/{package}/Cargo.toml");
    let mut about = source.command("cargo-about");
    about
        .args([
            "generate",
            "--fail",
            "--locked",
            "--config",
            "deploy/licenses/about.toml",
        ])
        .args(["--manifest-path", &manifest, "deploy/licenses/about.hbs"]);
    output(&mut about)
}

/// The chart's package. Helm's own holds the time of day.
pub fn chart(source: &Source) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let mut helm = source.command(program(&HELM)?);
    helm.args(["package", "charts/perfvalidation-operator", "--destination"])
        .arg(folder.path());
    output(&mut helm)?;
    let package = fs::read_dir(folder.path())?.next().ok_or("helm made no package")??;
    source.repack(&fs::read(package.path())?)
}

/// All manifests in one file.
pub fn manifests(source: &Source) -> Result<Vec<u8>> {
    let mut kustomize = source.command(program(&KUSTOMIZE)?);
    let text = line(kustomize.args(["build", "config/default"]))?;
    Ok(format!("{text}\n").into_bytes())
}

/// A program of the lab's cache; the first use on a machine builds it.
fn program(family: &Family) -> Result<std::path::PathBuf> {
    let folder = programs::build(family, &mut |text| eprintln!("{text}"))?;
    Ok(folder.join(family.name))
}
