//! Names that would be markup, or nothing at all, in one of the formats.

use k8s_openapi::api::core::v1::EnvVar;
use perfval_api::text::reorders;
use perfval_api::{Finding, Severity};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::{Value, json};

use super::pipelines::{against_the_schema, junit};
use super::recorded::{self, Saved};
use super::report;
use super::sources::edited;

const NAMES: [&str; 7] = [
    "<script>alert(1)</script>",
    "]]></failure><system-out>",
    "\u{0}\u{1}\u{8}\u{1b}[31m\u{7f}\r\n\t",
    "a|b`c`*d*_e_ [f](javascript:g) @team # h",
    "\u{202e}ffo\u{2066} 名前 \u{1f600} \u{feff}",
    "\"'&quot;\\n{}\n# EOF\n",
    "</style><img src=x onerror=alert(1)>",
];

/// A run in which every text that a user or a program wrote is this one.
fn named(name: &str) -> Saved {
    let mut run = recorded::slow();
    let object = &mut run.object;
    object.metadata.name = Some(name.to_owned());
    object.metadata.namespace = Some(name.to_owned());
    name.clone_into(&mut object.spec.model.name);
    let spec = &mut object.spec;
    name.clone_into(&mut spec.gates[0].name);
    let status = object.status.as_mut().expect("a status");
    name.clone_into(&mut status.gates[0].name);
    (status.message, status.reason) = (Some(name.to_owned()), Some(name.to_owned()));
    status.state.trials[0].causes = vec![name.to_owned()];
    status.diagnosis.push(Finding {
        cause: name.to_owned(),
        severity: Severity::Warning,
        evidence: name.to_owned(),
        remedy: name.to_owned(),
    });
    name.clone_into(&mut status.state.worker_pods[0].pod);
    let environment = status.state.environment.as_mut().expect("an environment");
    (environment.model, environment.image) = (name.to_owned(), name.to_owned());
    let placement = status.placement.as_mut().expect("a plan");
    name.clone_into(&mut placement.node);
    run
}

#[test]
fn no_name_becomes_markup() {
    for name in NAMES {
        let page = report(&named(name)).html();
        for tag in ["<script", "<img", "<system-out", "<a href=\"javascript"] {
            assert!(!page.contains(tag), "{tag} of {name:?}");
        }
        assert_eq!(page.matches("</style>").count(), 1, "{name:?}");
        assert!(!page.contains(reorders), "{name:?}");
    }
}

#[test]
fn every_name_comes_out_of_junit_and_ctrf_as_it_went_in() {
    for name in NAMES {
        let report = report(&named(name));
        let read = junit(&report.junit());
        let text = report.junit();
        assert!(
            text.chars().all(|letter| letter >= ' ' || "\n\t\r".contains(letter)),
            "{name:?}"
        );
        let gate = read.test_suites[1].test_cases[0].name.as_str().to_owned();
        let printable: String = name.chars().filter(|letter| *letter > '\u{1f}').collect();
        if name == printable {
            assert_eq!(gate, name);
        }
        against_the_schema(&report.ctrf());
        let ctrf: Value = serde_json::from_str(&report.ctrf()).expect("JSON");
        assert_eq!(ctrf["results"]["tests"][1]["name"], name);
    }
}

#[test]
fn a_name_stays_inside_its_cell_and_its_label() {
    for name in NAMES {
        let report = report(&named(name));
        the_words_of_a_summary(&report.markdown(), name);
        let metrics = report.openmetrics();
        assert_eq!(metrics.lines().filter(|line| *line == "# EOF").count(), 1, "{metrics}");
        for line in metrics.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit_once("} ").and_then(|(_, value)| value.parse::<f64>().ok());
            assert!(value.is_some(), "{line:?} of {name:?}");
        }
    }
}

/// The summary as a reader of Markdown understands it.
fn the_words_of_a_summary(text: &str, name: &str) {
    let (mut cells, mut cell) = (Vec::new(), None);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::TableCell) => cell = Some(String::new()),
            Event::End(TagEnd::TableCell) => cells.extend(cell.take()),
            Event::Text(words) => cell.iter_mut().for_each(|cell| cell.push_str(&words)),
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::Code(_) | Event::InlineHtml(_) => {
                panic!("{event:?} in {text}")
            }
            Event::Html(markup) => assert!(
                markup.starts_with("<details>") || markup.starts_with("</details>"),
                "{markup}"
            ),
            _ => {}
        }
    }
    let shown: String = name
        .chars()
        .map(|letter| {
            if letter.is_control() || reorders(letter) {
                ' '
            } else {
                letter
            }
        })
        .collect();
    assert_eq!(cells[5], shown.trim(), "the first gate's name in {text}");
    // A mention would notify someone; GitHub does not look at an entity.
    assert!(!text.contains("@team"));
}

#[test]
fn what_may_be_a_secret_is_in_no_file() {
    const SECRET: &str = "hf-5ebe2294ecd0";
    let mut run = recorded::healthy();
    let spec = &mut run.object.spec;
    spec.dynamo_mut().env.push(EnvVar {
        name: "HF_TOKEN".to_owned(),
        value: Some(SECRET.to_owned()),
        ..EnvVar::default()
    });
    spec.benchmark.extra_args = ["--api-key", SECRET, "--header", SECRET].map(str::to_owned).to_vec();
    spec.dynamo_mut().worker.args.push(format!("--hf-token={SECRET}"));
    run.results = edited(&run.results, |payload| {
        let command = format!("aiperf profile --url 'http://h' --model '{SECRET}'");
        let export = json!({"run_info": {"cli_command": command}}).to_string();
        *payload = payload.clone().with_export(&export).expect("JSON");
    });
    for file in report(&run).files() {
        assert!(!file.content.contains(SECRET), "{}", file.name);
    }
    let page = report(&run).html();
    assert!(
        page.contains("HF_TOKEN") && page.contains("[hidden]") && page.contains("aiperf profile --url 'http://h'"),
        "the rest of the manifest and of the command is there"
    );
}

#[test]
fn a_value_with_a_secret_name_is_in_no_file() {
    const VALUE: &str = "plain-but-secret";
    for name in [
        "SSH_PRIVATE_KEY",
        "LICENSE_KEY",
        "REGISTRY_CREDENTIAL",
        "NGC_APIKEY",
        "MY_ACCESSKEY",
        "DB_PASSPHRASE",
        "TOKEN_FILE",
    ] {
        let mut run = recorded::healthy();
        run.object.spec.dynamo_mut().env.push(EnvVar {
            name: name.to_owned(),
            value: Some(VALUE.to_owned()),
            ..EnvVar::default()
        });
        let dynamo = run.object.spec.dynamo_mut();
        dynamo.worker.args.push(format!("says {VALUE}, nvapi-0123456789abcdef"));
        // As somebody else may write it.
        let status = run.object.status.as_mut().expect("a status");
        let words = format!("the webhook \u{202e}refuses \"{VALUE}\", nvapi-0123456789abcdef");
        status.message = Some(words.clone());
        status.diagnosis.push(Finding {
            cause: "Refused".to_owned(),
            severity: Severity::Error,
            evidence: words.clone(),
            remedy: words,
        });
        for file in report(&run).files() {
            let shown = file.content.contains(VALUE) || file.content.contains("nvapi-0123456789");
            assert!(!shown, "{name} in {}", file.name);
            assert!(!file.content.contains('\u{202e}'), "{}", file.name);
        }
    }
}

#[test]
fn commands_are_safe_to_paste() {
    let mut run = recorded::healthy();
    run.object.metadata.namespace = Some("x; rm -rf $HOME 'y".to_owned());
    let page = report(&run).html();
    assert!(page.contains(r"-n 'x; rm -rf $HOME '\''y'"), "quoted");
}
