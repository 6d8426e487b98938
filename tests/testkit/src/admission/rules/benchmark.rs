//! Rules on `spec.benchmark`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, out_of_schema, refused};

pub fn cases() -> Vec<Case> {
    let benchmark = |patch: Value| json!({"benchmark": patch});
    let extra = |words: &[&str]| json!({"benchmark": {"extraArgs": words}});
    let mut cases = vec![
        accepted(
            "own AIPerf image",
            benchmark(json!({"image": "localhost/aiperf:0.13.0"})),
        ),
        refused(
            "AIPerf image with a blank",
            benchmark(json!({"image": " "})),
            "write an image reference, or",
        ),
        accepted("extra inputs", benchmark(json!({"extraInputs": {"top_p": "0.9"}}))),
        refused(
            "output length among the extra inputs",
            benchmark(json!({"extraInputs": {"max_tokens": "7"}})),
            "benchmark.outputTokens",
        ),
        refused(
            "extra input with a comma",
            benchmark(json!({"extraInputs": {"stop": "a,b"}})),
            "AIPerf splits at commas",
        ),
        accepted(
            "objective",
            benchmark(json!({"goodput": [{"metric": "TimeToFirstToken", "max": "500"}]})),
        ),
        out_of_schema(
            "objective on a rate",
            benchmark(json!({"goodput": [{"metric": "RequestThroughput", "max": "5"}]})),
            "spec.benchmark.goodput[0].metric",
        ),
        refused(
            "objective of zero",
            benchmark(json!({"goodput": [{"metric": "RequestLatency", "max": "0"}]})),
            "write a quantity above 0",
        ),
        accepted("own tokenizer", benchmark(json!({"tokenizer": "/models/tiny"}))),
        refused(
            "tokenizer that looks like a flag",
            benchmark(json!({"tokenizer": "--x"})),
            "write a tokenizer id or path",
        ),
        refused(
            "claim of the load generator",
            benchmark(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            "CPU and memory only",
        ),
        accepted(
            "a request as long as a trial",
            benchmark(json!({"requestTimeout": "15m", "minRequests": 1})),
        ),
        refused(
            "a request longer than a trial",
            benchmark(json!({"requestTimeout": "16m"})),
            "outlives the trial",
        ),
        accepted(
            "extra arguments",
            extra(&[
                "--workers-max",
                "4",
                "--header",
                "A: b, c",
                "--slice-duration=1.5",
                "--request-rate",
                "50",
            ]),
        ),
        accepted(
            "extra arguments of one letter",
            extra(&["-v", "-H", "A: b", "-HX-Team: perf", "-b", "4"]),
        ),
        refused(
            "extra argument with underscores",
            extra(&["--request_count=5"]),
            "write '-' instead of '_'",
        ),
    ];
    cases.extend(lengths());
    for key in ["", "--url", "a:b", "a,b", "a b", "$(HF_TOKEN)", "模型", ".a"] {
        cases.push(refused(
            format!("extra input {key:?}"),
            benchmark(json!({"extraInputs": {key: "1"}})),
            "write the name of a request's field",
        ));
    }
    cases.push(accepted(
        "extra inputs that a shell would read",
        benchmark(
            json!({"extraInputs": {"stop": "'; rm -rf / $(HF_TOKEN) `id` | sh #", "min_p": "0.1", "x-y.z_1": "模型"}}),
        ),
    ));
    for word in [
        "--concurrency",
        "--url=http://x",
        "--url=http://x\n",
        "-u",
        "-u=http://x",
        "-uhttp://x",
        "-vuhttp://x",
        "-m",
        "-mother",
        "-f/x.yaml",
        "-vvf/x.yaml",
        "--output-artifact-dir",
        "--isl",
        "--ui",
        "--prompt-input-tokens-mean",
        "--benchmark-grace-period",
    ] {
        cases.push(refused(
            format!("extra argument {word}"),
            extra(&[word]),
            "the operator sets this flag",
        ));
    }
    for word in [
        "--num-profile-runs",
        "--search-recipe=x",
        "--sweep-variant",
        "--isl-osl-pairs",
    ] {
        cases.push(refused(
            format!("extra argument {word}"),
            extra(&[word]),
            "a trial is one run of AIPerf",
        ));
    }
    for word in ["10,20", "--request-rate=0.5,1", "1, 2"] {
        cases.push(refused(
            format!("extra argument {word}"),
            extra(&["--request-rate", word]),
            "a comma list starts a sweep",
        ));
    }
    cases
}

/// How long a trial lasts.
fn lengths() -> Vec<Case> {
    let benchmark = |patch: Value| json!({"benchmark": patch});
    let mut cases = vec![
        accepted("a trial of a time", benchmark(json!({"duration": "500ms"}))),
        accepted(
            "a trial of a number of requests",
            benchmark(json!({"requestsPerConcurrency": 8, "minRequests": 1000})),
        ),
        accepted(
            "a trial that just fits into its limit",
            benchmark(json!({"duration": "555s", "requestTimeout": "5m"})),
        ),
        refused(
            "a trial that outlives its limit",
            benchmark(json!({"duration": "556s", "requestTimeout": "5m"})),
            "the trial outlives its limit",
        ),
        accepted(
            "a soak beside a number of requests",
            benchmark(json!({"requestsPerConcurrency": 8, "soak": "5m"})),
        ),
        accepted("a soak of a day", benchmark(json!({"soak": "24h"}))),
    ];
    for number in ["requestsPerConcurrency", "minRequests"] {
        cases.push(refused(
            format!("a trial of a time and of {number}"),
            benchmark(json!({"duration": "1m", number: 8})),
            "a trial ends after a time or after a number",
        ));
    }
    for duration in ["", "5", "0s", "25h", "1d"] {
        cases.push(refused(
            format!("a trial of {duration:?}"),
            benchmark(json!({"duration": duration})),
            "write a Go duration above 0s",
        ));
    }
    for soak in ["", "10", "299s", "25h"] {
        cases.push(refused(
            format!("a soak of {soak:?}"),
            benchmark(json!({"soak": soak})),
            "write a Go duration from 5m",
        ));
    }
    cases
}
