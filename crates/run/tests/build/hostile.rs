//! Builders carry each word of a spec unchanged: no shell reads it, and the kubelet expands none of ours.

use std::collections::BTreeMap;
use std::process::Command;

use perfval_api::PerfValidation;
use perfval_run::{Run, build, dynamo};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
use proptest::{prop_oneof, strategy::Just};
use serde_json::{Value, json};

use super::{everything, object, settings, typical};

/// What shells, the kubelet, argument parsers and JSON have an opinion about.
pub const WORDS: [&str; 20] = [
    "--model",
    "-c",
    "--",
    "",
    " ",
    "$(HF_TOKEN)",
    "$$(HF_TOKEN)",
    "${IFS}",
    "`id`",
    "; rm -rf /",
    "&& true",
    "| sh",
    "'",
    "\"",
    "\\",
    "\n",
    "*",
    "ünïcödé 模型 🤖",
    "\u{202e}\u{0}",
    "#{{.Values}}",
];

fn word() -> impl Strategy<Value = String> {
    let known = (0..WORDS.len()).prop_map(|at| WORDS[at].to_owned());
    let long = Just("x'\"$(A)".repeat(1430));
    prop_oneof![4 => known, 4 => ".{0,40}", 1 => long]
}

fn spec() -> impl Strategy<Value = PerfValidation> {
    let lists = (
        vec(word(), 0..5),
        vec(word(), 0..5),
        vec(word(), 0..5),
        vec(word(), 0..3),
    );
    let maps = (btree_map(word(), word(), 0..5), btree_map(word(), word(), 0..5));
    let single = [word(), word(), word(), word(), word(), word()];
    let served = prop_oneof![Just("nvidia.com/v1alpha1"), Just("nvidia.com/v1beta1")];
    let allocation = prop_oneof![Just("DRA"), Just("DevicePlugin")];
    (lists, maps, single, served, allocation).prop_map(|(lists, maps, single, served, allocation)| {
        let (args, frontend_args, extra_args, command) = lists;
        let (env, inputs) = maps;
        let [model, image, frontend, tokenizer, class, claim] = single;
        let env: Vec<Value> = env
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let spec = json!({
            "model": {"name": model, "tokenSecretRef": {"name": "hf", "key": "token"}, "cache": {"persistentVolumeClaim": {"claimName": claim}}},
            "workload": {"dynamo": {
                "image": image, "env": env,
                "worker": {"command": command, "args": args},
                "frontend": {"image": frontend, "args": frontend_args},
            }},
            "placement": {"deviceClassName": class},
            "benchmark": {"image": image, "extraInputs": inputs, "extraArgs": extra_args, "tokenizer": tokenizer},
        });
        object(served, allocation, &spec)
    })
}

/// Every container of an object, wherever its kind keeps them.
pub fn containers(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => {
            // A frontend whose image is the empty text has none.
            let is_container =
                fields.contains_key("command") && ["image", "args"].iter().any(|key| fields.contains_key(*key));
            let own = is_container.then_some(value);
            own.into_iter().chain(fields.values().flat_map(containers)).collect()
        }
        Value::Array(items) => items.iter().flat_map(containers).collect(),
        _ => Vec::new(),
    }
}

pub fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.map(|word| word.as_str().expect("a word is a string").to_owned())
        .collect()
}

pub fn is_shell(command: &[String]) -> bool {
    command.iter().any(|word| word.ends_with("sh"))
}

/// Kubernetes' expansion of `$(NAME)`: a doubled dollar is one, an unknown name stays as it is.
pub fn expanded(word: &str, environment: &BTreeMap<String, String>) -> String {
    let (mut done, mut rest) = (String::new(), word);
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        done += before;
        let name = from.strip_prefix("$(").and_then(|inside| inside.split_once(')'));
        rest = if let Some(after) = from.strip_prefix("$$") {
            done.push('$');
            after
        } else if let Some((name, after)) = name {
            done += &environment.get(name).cloned().unwrap_or_else(|| format!("$({name})"));
            after
        } else {
            done.push('$');
            &from[1..]
        };
    }
    done + rest
}

/// The one program for a shell, of a spec without anything odd.
pub fn wrapper() -> Vec<String> {
    let object = typical();
    let run = Run::new(&object, settings());
    let deployment = json!(dynamo::deployment(&run));
    let mut commands = containers(&deployment)
        .into_iter()
        .map(|container| strings(&container["command"]));
    commands
        .find(|command| is_shell(command))
        .expect("the worker's wrapper")
}

proptest! {
    #[test]
    fn no_shell_reads_a_word_of_the_spec(object in spec()) {
        let run = Run::new(&object, settings());
        let own = &object.spec.dynamo().worker.command;
        for (kind, built) in everything(&run) {
            for container in containers(&built) {
                let command = strings(&container["command"]);
                prop_assert!(
                    !is_shell(&command) || command == wrapper() || command == *own,
                    "{}: {:?}", kind, command
                );
            }
        }
    }

    #[test]
    fn the_load_generator_gets_every_word_as_it_is(object in spec()) {
        // Without a cache it downloads, so it has the token.
        let mut object = object;
        object.spec.model.cache = None;
        let run = Run::new(&object, settings());
        let pod = build::trial_job(&run, 1).spec.expect("a spec").template.spec.expect("a pod");
        let container = &pod.containers[0];
        let args = container.args.clone().expect("arguments");
        let names = container.env.iter().flatten().map(|var| var.name.clone());
        let secrets: BTreeMap<String, String> = names.map(|name| (name, "a secret".to_owned())).collect();
        prop_assert!(secrets.contains_key("HF_TOKEN"));
        let at = args.iter().position(|word| word == "--").expect("the runner's own end");
        let received: Vec<String> = args[at + 1..].iter().map(|word| expanded(word, &secrets)).collect();
        let spec = &object.spec;
        let has = |flag: &str, value: &str| received.windows(2).any(|pair| pair[0] == flag && pair[1] == value);
        prop_assert_eq!(&received[..2], ["aiperf", "profile"]);
        prop_assert!(has("--model", &spec.model.name), "{:?}", received);
        let tokenizer = &spec.benchmark.tokenizer;
        prop_assert!(tokenizer.is_empty() || has("--tokenizer", tokenizer), "{:?}", received);
        for (key, value) in &spec.benchmark.extra_inputs {
            prop_assert!(has("--extra-inputs", &format!("{key}:{value}")), "{:?}", received);
        }
        prop_assert!(received.ends_with(&spec.benchmark.extra_args), "{:?}", received);
        prop_assert!(!args[..at].iter().any(|word| expanded(word, &secrets) != *word), "{:?}", args);
    }

    #[test]
    fn the_worker_and_the_cache_get_every_word_as_it_is(object in spec()) {
        let run = Run::new(&object, settings());
        let dynamo = object.spec.dynamo();
        let cache = json!(build::cache_job(&run));
        let cache = containers(&cache);
        let args = strings(&cache[0]["args"]);
        prop_assert_eq!(&args[..2], &[object.spec.model.name.clone(), String::new()]);
        prop_assert!(args[2..].iter().all(|word| *word == object.spec.benchmark.tokenizer), "{:?}", args);
        let deployment = json!(dynamo::deployment(&run));
        let found = containers(&deployment);
        let ends_with = |words: &[String]| found.iter().any(|container| strings(&container["args"]).ends_with(words));
        prop_assert!(ends_with(&dynamo.worker.args), "{}", deployment);
        let frontend = [&dynamo.frontend.args[..], &["--router-mode".to_owned(), "least-loaded".to_owned()]].concat();
        prop_assert!(ends_with(&frontend), "{}", deployment);
        let unique = |container: &&Value| {
            let names: Vec<String> = container["env"].as_array().into_iter().flatten().map(|var| var["name"].to_string()).collect();
            let mut once = names.clone();
            once.sort();
            once.dedup();
            once.len() == names.len()
        };
        prop_assert!(found.iter().chain(&cache).all(unique), "{}", deployment);
    }
}

/// `sh` itself is asked: it hands its arguments over and reads none of them.
#[test]
fn the_wrapper_hands_every_word_over() {
    let wrapper = wrapper();
    let words: Vec<&str> = WORDS.into_iter().filter(|word| !word.contains('\0')).collect();
    let long = "a b'\"$(id)`id`".repeat(800);
    let output = Command::new(&wrapper[0])
        .args(&wrapper[1..])
        .args(["printf", "%s\\0"])
        .args(&words)
        .arg(&long)
        .output()
        .expect("a shell");
    let mut expected = words.join("\0");
    expected = format!("{expected}\0{long}\0");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn the_expansion_of_this_test_is_kubernetes_own() {
    let environment = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    let rows = [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(B)", "$(B)"),
        ("$(A", "$(A"),
        ("a$", "a$"),
        ("$A", "$A"),
    ];
    for (word, expected) in rows {
        assert_eq!(expanded(word, &environment), expected, "{word}");
    }
}
