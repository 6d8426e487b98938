//! docs/causes.md: what you see, why, and what to do, printed from the enums that status shows.

use std::fmt::Write as _;

use perfval_run::diagnosis::obstacle::Obstacle;
use perfval_verdict::diagnosis::cause::Cause;

const INTRODUCTION: &str = "\
<!-- Generated from the code: run `just generate`. -->
# Causes

Your run ended with `Failed`, `Inconclusive` or `Error`, or takes long, and you want to know what to do. Type

```sh
kubectl get perfval -n perf NAME \\
  -o jsonpath='{range .status.diagnosis[*]}{.severity} {.cause}: {.evidence}{\"\\n\"}  what to do: {.remedy}{\"\\n\"}{end}'
```

or read the same in `kubectl describe perfval -n perf NAME`: its conditions tell what was asked, where it ran and how far
it came; `Diagnosis` tells why; the events at the end say what to do. Look the cause up below.
";

/// The whole page.
pub fn causes() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str(
        "\n## Before a benchmark\n\nThe deployment cannot be measured. None of these is a verdict on its performance.\n",
    );
    for obstacle in Obstacle::ALL {
        entry(
            &mut page,
            obstacle.as_str(),
            [
                ("You see", obstacle.seen()),
                ("Why", obstacle.why()),
                ("Do", obstacle.remedy()),
                ("Effect", obstacle.response().explanation()),
            ],
        );
    }
    page.push_str("\n## In a trial\n\nThe deployment was measured, and this explains what the trial showed.\n");
    for cause in Cause::ALL {
        let (seen, why, effect) = explain(cause);
        entry(
            &mut page,
            cause.as_str(),
            [
                ("You see", seen),
                ("Why", why),
                ("Do", cause.remedy()),
                ("Effect", effect),
            ],
        );
    }
    page
}

fn entry(page: &mut String, name: &str, parts: [(&str, &str); 4]) {
    let _ = write!(page, "\n### {name}\n\n");
    for (what, text) in parts {
        let _ = writeln!(page, "* **{what}:** {text}");
    }
}

const INVALID: &str = "the trial is Invalid; two in a row end the run with Error";
const UNTRUSTED: &str = "the trial is Invalid; two in a row end the run with Inconclusive";
const MISS: &str = "the trial is a Miss";
const NONE: &str = "none: it is reported";

/// What a cause looks like, why it happens, and what the trial becomes.
fn explain(cause: Cause) -> (&'static str, &'static str, &'static str) {
    match cause {
        Cause::GPUsMissing => (
            "`status.placement.expected`: the node has fewer healthy GPUs than `placement.expectGPUs` asks for, or than the node \
             itself, its label `nvidia.com/gpu.count` or most nodes like it say",
            "a GPU fell off the bus, is unhealthy or tainted, or its driver does not publish it",
            "with `placement.expectGPUs` the run is Failed where its gates are met; without it is reported",
        ),
        Cause::BenchmarkFailed => (
            "a Job that ended without a result",
            "AIPerf could not start, could not load the tokenizer, or was killed",
            INVALID,
        ),
        Cause::ResultIncomplete => (
            "a result that AIPerf itself marks as cancelled or cut short",
            "AIPerf was stopped, or gave up after too many failed requests",
            INVALID,
        ),
        Cause::BenchmarkTimeout => (
            "a Job that ended with `DeadlineExceeded`",
            "the deployment is so slow, or the load so large, that a trial does not fit into `timeouts.benchmark`",
            INVALID,
        ),
        Cause::JobLost => (
            "the Job of a trial is gone, or another Job has its name",
            "somebody deleted it: its result, if any, went with it, and what another Job says is not read",
            INVALID,
        ),
        Cause::MetricMissing => (
            "a gate with result `Unmeasured`",
            "AIPerf reports this metric only under certain settings",
            INVALID,
        ),
        Cause::RequestErrors => (
            "failed requests, or streams shorter than asked, above `maxErrorPercent`",
            "frontend or workers refuse or drop requests; the error's code and text are in the evidence",
            MISS,
        ),
        Cause::DeadWorkerBlackHole => (
            "most requests failed within seconds, and one worker is gone",
            "a dead worker refuses at once, so it always looks least loaded, and the router feeds it everything (Dynamo 1.1 to 1.4)",
            MISS,
        ),
        Cause::WorkerRestarted => (
            "a worker's restart count rose during the trial, or its pod was replaced",
            "the engine crashed under load, or the pod was evicted",
            UNTRUSTED,
        ),
        Cause::GPUChanged => (
            "a worker holds another GPU at the end of the trial than at its start",
            "its pod or claim was replaced",
            UNTRUSTED,
        ),
        Cause::UnevenService => (
            "a worker that served no request while others did",
            "it is not registered with the frontend, or the router never chose it",
            UNTRUSTED,
        ),
        Cause::GeneratorStarved => (
            "fewer requests in flight than asked, while requests waited inside AIPerf",
            "the load generator has too little CPU, so it measured itself",
            UNTRUSTED,
        ),
        Cause::FrontendLost => (
            "failed requests above `maxErrorPercent`, among them connections that failed or broke (`ClientConnectorError`, \
             `ServerDisconnectedError`)",
            "the load generator connects to the frontend only: its pod restarted under load, or the network to it broke",
            MISS,
        ),
        Cause::WorkerStall => (
            "a request takes one worker several times as long as its peers, or the worker neither moves nor answers to the end",
            "its GPU is slow (clocks, temperature, a neighbour, XID errors), or its engine hangs",
            "the trial is a Miss, even if every gate is met",
        ),
        Cause::TransientStall => (
            "one worker had requests and did not move for 5 s or more, then went on",
            "its process or GPU was stopped for a while; a TTFT gate does not show it, ITL p99 does",
            NONE,
        ),
        Cause::FrontendBound => (
            "requests spend more than 30 % of their time, and over 0.5 s, outside of the workers",
            "the frontend cannot feed the workers as fast as they could work",
            MISS,
        ),
        Cause::PastKnee => (
            "half of the requests wait for their first token longer than for all others; the throughput is met",
            "more requests are in flight than the engines run at once",
            MISS,
        ),
        Cause::KneeJitter => (
            "only a latency is missed, by at most 25 %",
            "near the knee a tail latency varies from trial to trial; the trial rule absorbs it",
            MISS,
        ),
        Cause::BalancedDegradation => (
            "all workers work alike, and all are slow",
            "what they share is slow: image, flags, power limit, driver, network",
            MISS,
        ),
        Cause::FarBelowGate => (
            "at most half of the throughput asked for, with workers that work alike",
            "the threshold is for another GPU or model, or everything is slow",
            "the trial is a Miss; two of them fail the run at once",
        ),
        Cause::WorkersNotSampled => (
            "no samples of the workers in the results",
            "the benchmark pod cannot reach the workers' metrics port 9090",
            NONE,
        ),
        Cause::SuspiciousAllocation => (
            "a ResourceClaim that holds a device nobody publishes, or two claims that hold one",
            "a pod was force-deleted, or a device vanished from its driver",
            NONE,
        ),
    }
}
