//! The two images of a single program: the pods' sandbox and a shell.

use std::os::unix;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Layer, Recipe, need, read_static_program, write_program};
use crate::command;
use crate::error::{Error, FileResult as _};

const PAUSE: &str = include_str!("../../images/pause.c");
const CC: &str = "apt-get install --no-install-recommends gcc libc6-dev";
const BUSYBOX: &str = "apt-get install --no-install-recommends busybox-static";

pub(super) fn pause() -> Recipe {
    let layer = Layer {
        name: "pause".to_owned(),
        inputs: vec![PAUSE.into(), include_bytes!("small.rs").into()],
        fill: Box::new(|root, _| {
            let compiler = need("cc", CC)?;
            let compile = ["-static", "-Os", "-s", "-x", "c", "-", "-o"];
            command::output_with_input(Command::new(compiler).args(compile).arg(root.join("pause")), PAUSE)?;
            Ok(())
        }),
    };
    Recipe {
        repository: "pause",
        tag: "lab".to_owned(),
        layers: vec![layer],
        config: json!({ "User": super::NOBODY, "Entrypoint": ["/pause"] }),
    }
}

pub(super) fn busybox() -> Result<Recipe, Error> {
    let busybox = read_static_program(&need("busybox", BUSYBOX)?, BUSYBOX)?;
    let layer = Layer {
        name: "busybox".to_owned(),
        inputs: vec![busybox.clone(), include_bytes!("small.rs").into()],
        fill: Box::new(move |root, _| fill_busybox(root, &busybox)),
    };
    Ok(Recipe {
        repository: "busybox",
        tag: "lab".to_owned(),
        layers: vec![layer],
        config: json!({ "Env": ["PATH=/bin"], "Cmd": ["sh"] }),
    })
}

fn fill_busybox(root: &Path, busybox: &[u8]) -> Result<(), Error> {
    let program = root.join("bin/busybox");
    write_program(&program, busybox)?;
    for applet in command::output(Command::new(&program).arg("--list"))?
        .lines()
        .filter(|name| *name != "busybox")
    {
        let link = program.with_file_name(applet);
        unix::fs::symlink("busybox", &link).file("link", link)?;
    }
    super::make_tmp(root)
}
