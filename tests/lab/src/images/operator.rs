//! The image that ships, made from programs that are built elsewhere: nothing in it but the two of them.

use std::path::Path;

use serde_json::json;

use super::{Layer, NOBODY, Recipe, read_static_program, write_program};
use crate::error::Error;

const BUILD: &str = "RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu";

pub(super) fn recipe(operator: &Path, runner: &Path) -> Result<Recipe, Error> {
    let operator = read_static_program(operator, BUILD)?;
    let runner = read_static_program(runner, BUILD)?;
    let layer = Layer {
        name: "perfvalidation-operator".to_owned(),
        inputs: vec![operator.clone(), runner.clone(), include_bytes!("operator.rs").into()],
        fill: Box::new(move |root, _| {
            write_program(&root.join("perfvalidation-operator"), &operator)?;
            write_program(&root.join("perfval-runner"), &runner)
        }),
    };
    Ok(Recipe {
        repository: "perfvalidation-operator",
        tag: "lab".to_owned(),
        layers: vec![layer],
        config: json!({ "User": NOBODY, "Entrypoint": ["/perfvalidation-operator"] }),
    })
}
