//! `just release VERSION`: everything that a release consists of, from the committed sources alone, into one folder.
//!
//! Twice the same bytes: sources are unpacked from git, paths are mapped away, times are that of the commit.

mod archive;
mod build;
mod command;
mod krew;
mod names;
mod source;
mod version;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sha2::{Digest as _, Sha256};

use crate::archive::File;
use crate::names::{CRDS, INSTALL, KREW, LINUX, OPERATOR, PLATFORMS, PLUG_IN, PROGRAMS, SUMS};
use crate::source::Source;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
struct Args {
    /// The version to release. Cargo.toml, the chart and config/default must have it, with or without `-dev`
    version: String,
    /// Write the version into the files of this clone instead; it may end in `-dev`
    #[arg(long)]
    write: bool,
    /// Digest of the operator's image, `sha256:…`, for the chart and install.yaml; without it they have the tag
    #[arg(long, value_parser = digest)]
    operator_digest: Option<String>,
    /// Digest of AIPerf's image
    #[arg(long, value_parser = digest)]
    aiperf_digest: Option<String>,
    /// Folder with `amd64/kubectl-perfval` and `arm64/kubectl-perfval` for macOS; without it the release has none
    #[arg(long)]
    macos: Option<PathBuf>,
    /// Folder of the release; what is in it goes
    #[arg(long, default_value = "dist")]
    out: PathBuf,
    /// Folder to build in, kept for the next time
    #[arg(long, env = "CARGO_TARGET_DIR", default_value = "target")]
    target: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = version::check(&args.version, args.write).and_then(|()| {
        if args.write {
            Source::write_version(&args.version)
        } else {
            release(&args)
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn release(args: &Args) -> Result<()> {
    let source = Source::unpack(&args.target.join("release-source"))?;
    source.set_version(&args.version)?;
    for (image, digest) in [(OPERATOR, &args.operator_digest), ("aiperf", &args.aiperf_digest)] {
        if let Some(digest) = digest {
            source.pin(image, digest)?;
        }
    }
    let files = contents(&source, args)?;
    if args.out.exists() {
        fs::remove_dir_all(&args.out)?;
    }
    fs::create_dir_all(&args.out)?;
    for (name, content) in &files {
        fs::write(args.out.join(name), content)?;
    }
    fs::write(args.out.join(SUMS), sums(&files))?;
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

/// A digest as registries print it.
fn digest(text: &str) -> std::result::Result<String, String> {
    let hexadecimal = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    match text.strip_prefix("sha256:") {
        Some(sum) if sum.len() == 64 && sum.chars().all(hexadecimal) => Ok(text.to_owned()),
        _ => Err("expected sha256: and 64 hexadecimal digits".to_owned()),
    }
}

/// Every file of the release, by name.
fn contents(source: &Source, args: &Args) -> Result<BTreeMap<String, Vec<u8>>> {
    let version = &*args.version;
    let mut files = BTreeMap::new();
    let licence = File::plain(source.read("LICENSE")?);
    let mut programs = BTreeMap::from([("LICENSE".to_owned(), licence.clone())]);
    // krew and people install the plug-in alone.
    let mut plug_in = BTreeMap::from([("LICENSE".to_owned(), licence)]);
    for (name, package) in PROGRAMS {
        let licences = build::licences(source, package)?;
        let archive = if name == PLUG_IN { &mut plug_in } else { &mut programs };
        archive.insert(names::licences(name), File::plain(licences.clone()));
        files.insert(names::licences(name), licences);
        files.insert(
            names::bill_of_materials(name),
            build::bill_of_materials(source, package)?,
        );
    }
    let mut sums = BTreeMap::new();
    for (os, architecture, triple) in PLATFORMS {
        let is_linux = os == LINUX;
        let built = if is_linux {
            build::programs(source, triple)?
        } else if let Some(folder) = &args.macos {
            // Apple's frameworks are on its own machines only, so a macOS machine built it.
            vec![(PLUG_IN.to_owned(), fs::read(folder.join(architecture).join(PLUG_IN))?)]
        } else {
            continue;
        };
        for (name, program) in built {
            let archive = if name == PLUG_IN { &mut plug_in } else { &mut programs };
            archive.insert(name, File::program(program));
        }
        if is_linux {
            let archive = archive::write(&programs, source.epoch)?;
            files.insert(names::archive(OPERATOR, version, os, architecture), archive);
        }
        let archive = archive::write(&plug_in, source.epoch)?;
        sums.insert((os, architecture), format!("{:x}", Sha256::digest(&archive)));
        files.insert(names::archive(PLUG_IN, version, os, architecture), archive);
    }
    files.insert(KREW.to_owned(), krew::manifest(source, version, &sums)?.into_bytes());
    files.insert(names::chart(version), build::chart(source)?);
    files.insert(INSTALL.to_owned(), build::manifests(source)?);
    for crd in CRDS {
        files.insert(crd.to_owned(), source.read(&format!("config/crd/{crd}"))?);
    }
    let platforms: Vec<_> = sums.keys().copied().collect();
    names::check(files.keys().chain([&SUMS.to_owned()]), version, &platforms)?;
    Ok(files)
}

/// As `sha256sum --check` reads them.
fn sums(files: &BTreeMap<String, Vec<u8>>) -> String {
    let lines = files
        .iter()
        .map(|(name, content)| format!("{:x}  {name}\n", Sha256::digest(content)));
    lines.collect()
}
