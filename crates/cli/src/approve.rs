//! `approve`: changes that a revision of a baseline makes, and its approval.

use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use perfval_api::admission::is_name;
use perfval_api::condition::{APPROVED, LEARNED};
use perfval_api::fleet::{BaselineMetric, BaselineRevision, PerfBaseline, PerfBaselineStatus};
use perfval_api::quantity::{change_percent, parse};
use serde_json::json;

use crate::args::ApproveArgs;
use crate::error::Error;
use crate::screen::Screen;
use crate::session::Session;
use crate::table::{Table, dash};

/// Shows a revision beside the approved one, and approves it.
pub async fn run(screen: &mut Screen, session: &Session, args: &ApproveArgs) -> Result<u8, Error> {
    let api: Api<PerfBaseline> = Api::all(session.client.clone());
    let name = &args.name;
    // Another text would be a path, such as that of the status, in which an approval is lost.
    let read = if is_name(name) {
        api.get_opt(name).await
    } else {
        Ok(None)
    };
    let read = read.map_err(|error| Error::from_call("read PerfBaselines", error))?;
    let baseline = read.ok_or_else(|| {
        Error::BadInput(format!(
            "there is no PerfBaseline {name}: `kubectl get perfbase` lists all"
        ))
    })?;
    let status = current_status(&baseline)?;
    let revision = choose(&baseline, status, args.revision)?;
    let page = page(&baseline, status.approved.as_ref(), revision, screen.columns());
    if args.revision.is_some() {
        // A script has decided, also if it does not read the page.
        screen.answer(&page)?;
    } else {
        screen.print(&page)?;
    }
    let duplicate = condition(status, APPROVED).filter(|(reason, _)| *reason == "Duplicate");
    if let Some((_, message)) = duplicate {
        screen.note(message);
    }
    let number = revision.revision;
    if baseline.spec.approved_revision == Some(number) {
        screen.print(&format!("revision {number} of {name} is approved already\n"))?;
        return Ok(0);
    }
    if args.revision.is_none() {
        let answer = screen.ask(&format!("Approve revision {number}? [y/N]"));
        let Some(answer) = answer else {
            return Err(Error::BadInput(format!(
                "the question needs a terminal: in a script write `kubectl perfval approve {name} --revision {number}`"
            )));
        };
        if !["y", "yes"].contains(&answer.to_ascii_lowercase().as_str()) {
            screen.print("nothing is changed\n")?;
            return Ok(0);
        }
    }
    let change = json!({
        "metadata": {"resourceVersion": baseline.metadata.resource_version},
        "spec": {"approvedRevision": number},
    });
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await;
    patched.map_err(|error| match error {
        kube::Error::Api(status) if status.code == 409 => Error::BadInput(format!(
            "PerfBaseline {name} has changed since it was read, and nothing was approved: type the command again"
        )),
        error => Error::from_call("approve PerfBaselines", error),
    })?;
    let effect = if duplicate.is_some() {
        "of two approved baselines of this environment only the older one counts: delete the other"
    } else {
        "the operator compares nodes with it from now on"
    };
    screen.print(&format!("revision {number} of {name} is approved; {effect}\n"))?;
    Ok(0)
}

/// Status, if the operator has read the spec as it is.
fn current_status(baseline: &PerfBaseline) -> Result<&PerfBaselineStatus, Error> {
    let status = baseline.status.as_ref();
    let current = status.filter(|status| Some(status.observed_generation) == baseline.metadata.generation);
    current.ok_or_else(|| {
        Error::BadInput(format!(
            "the operator has not read PerfBaseline {} yet: wait some seconds; an operator that watches all namespaces must run",
            baseline.name_any()
        ))
    })
}

/// Revision to approve: the requested one, or the newest.
fn choose<'a>(
    baseline: &PerfBaseline,
    status: &'a PerfBaselineStatus,
    requested: Option<i64>,
) -> Result<&'a BaselineRevision, Error> {
    let name = baseline.name_any();
    let Some(newest) = &status.newest else {
        let why = condition(status, LEARNED).map_or("", |(_, message)| message);
        return Err(Error::BadInput(format!(
            "PerfBaseline {name} has no revision to approve. {why}"
        )));
    };
    let Some(requested) = requested else { return Ok(newest) };
    let mut known = status.approved.iter().chain([newest]);
    known.find(|known| known.revision == requested).ok_or_else(|| {
        Error::BadInput(format!(
            "PerfBaseline {name} has no revision {requested}: the newest is {}",
            newest.revision
        ))
    })
}

fn condition<'a>(status: &'a PerfBaselineStatus, type_: &str) -> Option<(&'a str, &'a str)> {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == type_)?;
    Some((&found.reason, &found.message))
}

fn page(
    baseline: &PerfBaseline,
    approved: Option<&BaselineRevision>,
    revision: &BaselineRevision,
    columns: Option<usize>,
) -> String {
    let environment = &baseline.spec.environment;
    let product = environment.product.as_deref().unwrap_or("GPUs");
    let before = approved.filter(|approved| approved.revision != revision.revision);
    // Without an earlier revision there is neither its column nor a change.
    let row = |name: &str, earlier: Option<String>, now: Option<String>, change: Option<String>| {
        let mut cells = vec![name.to_owned(), dash(now)];
        if before.is_some() {
            cells.insert(1, dash(earlier));
            cells.push(change.unwrap_or_default());
        }
        cells
    };
    let head = |revision: &BaselineRevision| format!("REVISION {}", revision.revision);
    let change = Some("CHANGE".to_owned());
    let mut table = Table::new(row("", before.map(head), Some(head(revision)), change));
    let counts = |revision: &BaselineRevision| {
        [
            ("nodes", revision.nodes),
            ("GPUs", revision.gpus),
            ("nodes left out", revision.excluded_nodes),
        ]
    };
    for (at, (name, count)) in counts(revision).into_iter().enumerate() {
        let text = |count: Option<i64>| count.map(|number| number.to_string());
        let earlier = before.and_then(|before| counts(before)[at].1);
        table.row(row(name, text(earlier), text(count), None));
    }
    for metric in &revision.metrics {
        let earlier = before.and_then(|before| before.metrics.iter().find(|other| other.name == metric.name));
        let change = earlier.and_then(|earlier| change_percent(parse(&earlier.centre)?, parse(&metric.centre)?));
        let change = change.map(|change| format!("{change:+.1}%"));
        let centre = |metric: &BaselineMetric| metric.centre.clone();
        let name = metric.name.as_str();
        table.row(row(name, earlier.map(centre), Some(centre(metric)), change));
        let spread = |metric: &BaselineMetric| Some(format!("{}%", metric.spread.as_ref()?.node_percent));
        table.row(row("spread of nodes", earlier.and_then(spread), spread(metric), None));
    }
    let created = revision.created_at.format("%Y-%m-%d %H:%M UTC");
    format!(
        "PerfBaseline {}: {product}, environment {}; revision {}, created {created}\n\n{}\n",
        baseline.name_any(),
        environment.digest,
        revision.revision,
        table.on(columns)
    )
}
