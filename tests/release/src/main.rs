//! `just release VERSION`: everything that a release consists of, from the committed sources alone, into one folder.
//!
//! Twice the same bytes: sources are unpacked from git, paths are mapped away, times are that of the commit.

mod archive;
mod build;
mod command;
mod krew;
mod source;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use sha2::{Digest as _, Sha256};

use crate::archive::File;
use crate::source::Source;

/// The program that kubectl finds.
const PLUG_IN: &str = "kubectl-perfval";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
struct Args {
    /// The version, which Cargo.toml, the chart and config/default must have
    version: String,
    /// Folder of the release; what is in it goes
    #[arg(long, default_value = "dist")]
    out: PathBuf,
    /// Folder to build in, kept for the next time
    #[arg(long, env = "CARGO_TARGET_DIR", default_value = "target")]
    target: PathBuf,
}

fn main() -> ExitCode {
    match release(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn release(args: &Args) -> Result<()> {
    let source = Source::unpack(&args.target.join("release-source"))?;
    source.check_version(&args.version)?;
    let files = contents(&source, &args.version, &args.target)?;
    if args.out.exists() {
        fs::remove_dir_all(&args.out)?;
    }
    fs::create_dir_all(&args.out)?;
    for (name, content) in &files {
        fs::write(args.out.join(name), content)?;
    }
    fs::write(args.out.join("SHA256SUMS"), sums(&files))?;
    for (name, content) in &files {
        println!("{:>10}  {name}", content.len());
    }
    println!(
        "version {}, commit {}, in {}",
        args.version,
        source.commit,
        args.out.display()
    );
    Ok(())
}

/// Every file of the release, by name.
fn contents(source: &Source, version: &str, target: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let mut files = BTreeMap::new();
    let licence = File::plain(source.read("LICENSE")?);
    let mut programs = BTreeMap::from([("LICENSE".to_owned(), licence.clone())]);
    // krew and people install the plug-in alone.
    let mut plug_in = BTreeMap::from([("LICENSE".to_owned(), licence)]);
    let built = [
        ("perfvalidation-operator", "operator"),
        ("perfval-runner", "runner"),
        (PLUG_IN, "cli"),
    ];
    for (name, package) in built {
        let licences = build::licences(source, package)?;
        let archive = if name == PLUG_IN { &mut plug_in } else { &mut programs };
        archive.insert(format!("{name}-LICENSES.txt"), File::plain(licences.clone()));
        files.insert(format!("{name}-LICENSES.txt"), licences);
        files.insert(format!("{name}.cdx.json"), build::bill_of_materials(source, package)?);
    }
    for (name, program) in build::programs(source, target)? {
        let archive = if name == PLUG_IN { &mut plug_in } else { &mut programs };
        archive.insert(name, File::program(program));
    }
    let archive = format!("perfvalidation-operator-{version}-linux-{architecture}.tar.gz");
    files.insert(archive, archive::write(&programs, source.epoch)?);
    let archive = archive::write(&plug_in, source.epoch)?;
    let krew = krew::manifest(source, version, architecture, &archive)?;
    files.insert("perfval.yaml".to_owned(), krew.into_bytes());
    files.insert(format!("{PLUG_IN}-{version}-linux-{architecture}.tar.gz"), archive);
    files.insert(format!("perfvalidation-operator-{version}.tgz"), build::chart(source)?);
    files.insert("install.yaml".to_owned(), build::manifests(source)?);
    let crd = "perfvalidations.perfvalidation.dev.yaml";
    files.insert(crd.to_owned(), source.read(&format!("config/crd/{crd}"))?);
    Ok(files)
}

/// As `sha256sum --check` reads them.
fn sums(files: &BTreeMap<String, Vec<u8>>) -> String {
    let lines = files
        .iter()
        .map(|(name, content)| format!("{:x}  {name}\n", Sha256::digest(content)));
    lines.collect()
}
