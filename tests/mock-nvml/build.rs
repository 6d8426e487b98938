//! Gives the library NVIDIA's soname and a body to every symbol that is not simulated.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    println!("cargo:rerun-if-changed=symbols.txt");
    println!("cargo:rerun-if-changed=src");

    let answered = answered()?;
    let mut code = String::new();
    for name in fs::read_to_string("symbols.txt")?
        .lines()
        .filter(|name| !answered.contains(*name))
    {
        writeln!(
            code,
            "/// Not simulated.\n#[unsafe(no_mangle)]\npub extern \"C\" fn {name}() -> Return {{\n    Return::NotSupported\n}}\n"
        )?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("not_supported.rs"), code)?;
    Ok(())
}

/// The functions that `src` writes out by hand.
fn answered() -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut names = BTreeSet::new();
    for file in fs::read_dir("src")? {
        let source = fs::read_to_string(file?.path())?;
        names.extend(
            source
                .split("extern \"C\" fn ")
                .skip(1)
                .filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())),
        );
    }
    Ok(names)
}
