//! Commit of the model, which Hugging Face's library writes into its cache.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Bytes that are read: a commit has 40 hex digits and perhaps a line break.
const BYTES: u64 = 64;

/// Model of an AIPerf command. `None` with another tokenizer, because its commit is not the model's.
pub fn from_command(command: &[String]) -> Option<&str> {
    let value = |flag: &str| {
        let mut pairs = command.windows(2).filter(|pair| pair[0] == flag);
        pairs.next().map(|pair| pair[1].as_str())
    };
    let model = value("--model")?;
    value("--tokenizer")
        .is_none_or(|tokenizer| tokenizer == model)
        .then_some(model)
}

/// Commit of `main` in the cache from which AIPerf loaded the tokenizer: of the volume with the weights, or of the hub at the
/// time of the trial. `None` if the cache has none. `variable` answers with a variable of the environment.
pub fn commit(model: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let folder = |name: &str| variable(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    // The order of `huggingface_hub.constants`.
    let hub = folder("HF_HUB_CACHE")
        .or_else(|| folder("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/huggingface/hub")))?;
    let repository = format!("models--{}", model.replace('/', "--"));
    let file = File::open(hub.join(repository).join("refs/main")).ok()?;
    let mut noted = String::new();
    file.take(BYTES).read_to_string(&mut noted).ok()?;
    Some(noted.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{commit, from_command};

    #[test]
    fn the_model_is_known_unless_the_tokenizer_is_another_one() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, model) in [
            ("aiperf profile --model a/b --concurrency 1", Some("a/b")),
            ("aiperf profile --model a/b --tokenizer a/b", Some("a/b")),
            ("aiperf profile --model a/b --tokenizer c/d", None),
            ("aiperf profile --model", None),
        ] {
            assert_eq!(from_command(&words(line)), model, "{line}");
        }
    }

    #[test]
    fn the_commit_is_read_from_the_cache_that_the_library_would_use() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().to_str().expect("UTF-8").to_owned();
        for (hub, commit) in [
            ("a", "1"),
            ("b/hub", "2"),
            ("c/huggingface/hub", "3"),
            ("d/.cache/huggingface/hub", "4"),
        ] {
            let refs = dir.path().join(hub).join("models--Qwen--Qwen3-8B/refs");
            fs::create_dir_all(&refs).expect("a folder");
            fs::write(refs.join("main"), format!("{commit}\n")).expect("a file");
        }
        let variables = [
            ("HF_HUB_CACHE", "a"),
            ("HF_HOME", "b"),
            ("XDG_CACHE_HOME", "c"),
            ("HOME", "d"),
        ];
        for (first, expected) in ["1", "2", "3", "4"].into_iter().enumerate() {
            let set = |name: &str| {
                let (_, folder) = variables[first..].iter().find(|(variable, _)| *variable == name)?;
                Some(format!("{root}/{folder}"))
            };
            assert_eq!(commit("Qwen/Qwen3-8B", set).as_deref(), Some(expected));
            assert_eq!(commit("Qwen/Qwen3-4B", set), None);
        }
        assert_eq!(commit("Qwen/Qwen3-8B", |_| None), None);
    }
}
