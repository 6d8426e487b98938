//! `init`: a commented manifest of one's own, made of a preset's.

use std::fs;
use std::io::Write as _;

use crate::args::{CommonCase, InitArgs};
use crate::error::Error;
use crate::preset::{PRESETS, Preset};
use crate::screen::Screen;

/// Writes the manifest; `namespace` is that of the flags.
pub fn run(screen: &mut Screen, args: &InitArgs, namespace: Option<&str>) -> Result<u8, Error> {
    let flags = ask(screen, &args.common);
    let text = manifest(&flags, namespace)?;
    let Some(path) = &args.filename else {
        screen.say(&text)?;
        return Ok(0);
    };
    let unusable = Error::file(path);
    // A manifest that the user has edited is not overwritten.
    let mut file = fs::File::create_new(path).map_err(&unusable)?;
    file.write_all(text.as_bytes()).map_err(unusable)?;
    screen.say(&format!(
        "{0} is written; run it with `kubectl perfval run -f {0}`\n",
        path.display()
    ))?;
    Ok(0)
}

/// Asks for everything that the flags leave open, if a person answers; an empty answer takes the value in brackets.
fn ask(screen: &mut Screen, flags: &CommonCase) -> CommonCase {
    let mut flags = flags.clone();
    let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    let mut answer = |question: &str| screen.ask(question).filter(|answer| !answer.is_empty());
    if flags.preset.is_none() {
        flags.preset = answer(&format!("GPU ({}) [{}]:", names.join(", "), names[0]));
    }
    if flags.name.is_none() {
        flags.name = answer("Name [that of the preset]:");
    }
    if flags.model.is_none() {
        flags.model = answer("Model [Qwen/Qwen3-8B]:");
    }
    if flags.image.is_none() {
        flags.image = answer("Image of the workers, of the minor version of Dynamo's operator [that of the preset]:");
    }
    flags
}

/// The preset's manifest with the changes of the flags: its comments give the sources of the thresholds.
fn manifest(flags: &CommonCase, namespace: Option<&str>) -> Result<String, Error> {
    let preset = Preset::find(flags.preset.as_deref().unwrap_or(PRESETS[0].name))?;
    let object = preset.object()?;
    let mut text = preset.for_gpus(flags.max_gpus);
    let mut set = |before: String, after: Option<String>| {
        if let Some(after) = after {
            text = text.replacen(&before, &after, 1);
        }
    };
    let old = object.metadata.name.unwrap_or_default();
    let name = flags.name.as_ref().unwrap_or(&old);
    let namespace = namespace.map_or(String::new(), |namespace| format!("  namespace: {namespace}\n"));
    set(
        format!("metadata:\n  name: {old}\n"),
        Some(format!("metadata:\n  name: {name}\n{namespace}")),
    );
    let old = &object.spec.model.name;
    set(
        format!("model:\n    name: {old}\n"),
        flags.model.as_ref().map(|model| format!("model:\n    name: {model}\n")),
    );
    let old = &object.spec.dynamo().image;
    set(
        format!("      image: {old}\n"),
        flags.image.as_ref().map(|image| format!("      image: {image}\n")),
    );
    set(
        "  placement:\n".to_owned(),
        flags
            .max_gpus
            .map(|gpus| format!("  placement:\n    maxGPUs: {gpus}\n")),
    );
    set(
        "    nodeSelector:\n".to_owned(),
        flags
            .node
            .as_ref()
            .map(|node| format!("    nodeSelector:\n      kubernetes.io/hostname: {node}\n")),
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::from_flags;

    #[test]
    fn what_is_written_is_what_run_would_create_with_the_same_flags() {
        for (preset, max_gpus) in PRESETS.iter().flat_map(|preset| [(preset, 1), (preset, 2)]) {
            let flags = CommonCase {
                preset: Some(preset.name.to_owned()),
                name: Some("mine".to_owned()),
                model: Some("org/other".to_owned()),
                image: Some("registry/vllm:1.4.2".to_owned()),
                max_gpus: Some(max_gpus),
                node: Some("gpu-7".to_owned()),
            };
            let read = |namespace| -> perfval_api::PerfValidation {
                let text = manifest(&flags, namespace).expect("a preset");
                assert!(text.contains("# Source of the threshold"), "{text}");
                serde_saphyr::from_str(&text).expect("YAML")
            };
            let mut created = from_flags(&flags).expect("a preset");
            assert_eq!(read(None), created, "{}", preset.name);
            created.metadata.namespace = Some("perf".to_owned());
            assert_eq!(read(Some("perf")), created, "{}", preset.name);
        }
    }
}
