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

or read the same in `kubectl describe perfval -n perf NAME`: its conditions say what was asked, where it ran and how far
it came; `Diagnosis` says why; the events at the end say what to do. Look the cause up below.
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
                ("Effect", &obstacle.effect()),
            ],
        );
    }
    page.push_str("\n## In a trial\n\nThe deployment was measured, and this explains what the trial showed.\n");
    for cause in Cause::ALL {
        entry(
            &mut page,
            cause.as_str(),
            [
                ("You see", cause.seen()),
                ("Why", cause.why()),
                ("Do", cause.remedy()),
                ("Effect", cause.effect().explanation()),
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
