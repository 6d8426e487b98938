//! `init`: a commented manifest of one's own, made of a preset's.

use kube::ResourceExt as _;
use perfval_api::text::quoted;
use serde_json::json;

use crate::args::{CommonCase, InitArgs, Target};
use crate::error::Error;
use crate::preset::{PRESETS, Preset};
use crate::screen::Screen;
use crate::{manifest, output};

/// Name in messages for a manifest made from flags.
pub const OF_FLAGS: &str = "the manifest of these flags";

/// Writes the manifest, for the namespace of the flags.
pub fn run(screen: &mut Screen, args: &InitArgs, target: &Target) -> Result<u8, Error> {
    let path = args.filename.as_ref().filter(|path| path.as_os_str() != "-");
    // Before a person answers questions for it.
    if let Some(path) = path {
        output::check_new(path)?;
    }
    let flags = ask(screen, &args.common);
    let text = manifest(&flags, target.namespace())?;
    manifest::parse(&text, OF_FLAGS)?;
    if flags.preset.is_none() && !screen.asks {
        let preset = PRESETS[0].name;
        screen.note(&format!(
            "the manifest is for {preset}; --preset chooses another GPU (`kubectl perfval presets`)"
        ));
    }
    let Some(path) = path else {
        screen.print(&text)?;
        return Ok(0);
    };
    output::write_new(path, text.as_bytes())?;
    let typed = quoted(&path.display().to_string());
    screen.print(&format!(
        "{} is written; run it with `kubectl perfval run -f {typed}{}`\n",
        path.display(),
        target.cluster_flags()
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
pub fn manifest(flags: &CommonCase, namespace: Option<&str>) -> Result<String, Error> {
    let preset = Preset::find(flags.preset.as_deref().unwrap_or(PRESETS[0].name))?;
    let object = preset.object()?;
    let (name, spec) = (object.name_any(), &object.spec);
    let mut text = preset.for_gpus(flags.max_gpus);
    // In quotes, since a name such as `7` or `on` is no text in YAML.
    for (key, before, after) in [
        ("metadata:\n  name: ", &name, &flags.name),
        ("model:\n    name: ", &spec.model.name, &flags.model),
        ("      image: ", &spec.dynamo().image, &flags.image),
    ] {
        if let Some(after) = after {
            text = text.replacen(&format!("{key}{before}\n"), &format!("{key}{}\n", json!(after)), 1);
        }
    }
    let namespace = namespace.map(|name| ("\nspec:\n", format!("\n  namespace: {}\nspec:\n", json!(name))));
    let (gpus, node) = (flags.max_gpus, flags.node.as_ref());
    let gpus = gpus.map(|gpus| ("  placement:\n", format!("  placement:\n    maxGPUs: {gpus}\n")));
    let label = "    nodeSelector:\n      kubernetes.io/hostname";
    let node = node.map(|node| ("    nodeSelector:\n", format!("{label}: {}\n", json!(node))));
    for (place, instead) in [namespace, gpus, node].into_iter().flatten() {
        text = text.replacen(place, &instead, 1);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    #[test]
    fn a_manifest_is_the_preset_with_the_changes_of_the_flags_only() {
        for (preset, max_gpus) in PRESETS.iter().flat_map(|preset| [(preset, 1), (preset, 2)]) {
            let flags = CommonCase {
                preset: Some(preset.name.to_owned()),
                name: Some("7".to_owned()),
                model: Some("org/other".to_owned()),
                image: Some("registry/vllm:1.4.2".to_owned()),
                max_gpus: Some(max_gpus),
                node: Some("on".to_owned()),
            };
            let text = manifest(&flags, Some("perf")).expect("a preset");
            assert!(text.contains("# Source of the threshold"), "{text}");
            let mut expected = parse(&preset.for_gpus(Some(max_gpus)), preset.name).expect("admitted");
            expected.metadata.name.clone_from(&flags.name);
            expected.metadata.namespace = Some("perf".to_owned());
            let spec = &mut expected.spec;
            "org/other".clone_into(&mut spec.model.name);
            "registry/vllm:1.4.2".clone_into(&mut spec.dynamo_mut().image);
            spec.placement.max_gpus = i32::try_from(max_gpus).ok();
            let selector = &mut spec.placement.node_selector;
            selector.insert("kubernetes.io/hostname".to_owned(), "on".to_owned());
            assert_eq!(selector.len(), 2, "the product of {} stays", preset.name);
            assert_eq!(parse(&text, preset.name).expect("admitted"), expected, "{text}");
            let namespaceless = manifest(&flags, None).expect("a preset");
            expected.metadata.namespace = None;
            assert_eq!(parse(&namespaceless, preset.name).expect("admitted"), expected);
        }
    }
}
