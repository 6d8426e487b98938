//! The outcome beside the goals.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use perfval_api::PerfValidation;
use perfval_api::fleet::{NodePerformance, Outlier, OutlierConfidence, PerfValidationPolicy};
use perfval_fleet::baseline::Approved;
use perfval_fleet::policy::{Outline, compare_nodes};
use perfval_testkit::api_server::ApiServer;

use super::super::crowd::operator::Operator;
use super::super::crowd::row;
use super::super::serve;
use super::calls::{Calls, Load};
use super::coverage::Coverage;
use super::hardware::{Fault, Hardware, uuid};
use super::laws::{Laws, is_suspicion};
use super::{POLICY, Size};

/// Seconds of a week.
const WEEK: f64 = 7.0 * 86_400.0;
/// Requests that are listed.
const LISTED: usize = 8;

/// Everything that was measured.
pub struct Table<'a> {
    pub size: Size,
    pub hardware: &'a Hardware,
    pub server: &'a ApiServer,
    pub watched: &'a Laws,
    pub calls: &'a Calls,
    /// Pages of lists of the whole cluster.
    pub pages: usize,
    pub load: &'a Load,
    pub coverage: &'a Coverage,
    pub operator: &'a Operator,
    pub saved: &'a HashMap<String, (f64, usize)>,
    /// Until all validations were over.
    pub wall: Duration,
    /// Until the last node had its verdict.
    pub covered_after: Duration,
    /// CPU time of the operator (s).
    pub cpu: f64,
    /// CPU time (s) and peak memory (MiB) of the API server of a lab.
    pub api_server: Option<(f64, f64)>,
}

/// Time of all validations (s).
#[derive(Default)]
struct Times {
    runs: usize,
    trials: usize,
    /// From the creation to the end.
    active: f64,
    /// With the GPUs.
    held: f64,
    /// What the speed-up saved.
    saved: f64,
    /// GPU minutes per GPU of each run at the usual speed, sorted.
    minutes: Vec<f64>,
}

impl Table<'_> {
    pub fn print(&self) {
        let times = self.times();
        self.print_time(&times);
        self.print_requests();
        self.print_operator();
        self.print_faults();
        for (reason, count) in &self.coverage.without {
            row(&format!("without a verdict: {reason}"), &count.to_string(), "");
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a table")]
    fn print_time(&self, times: &Times) {
        let (covered, nodes) = (self.coverage.covered, self.size.nodes);
        row("nodes with a verdict", &format!("{covered} of {nodes}"), "");
        let share = 100.0 * covered as f64 / self.coverage.idle_once.max(1) as f64;
        row("of nodes that were idle once", &format!("{share:.1} %"), "≥ 99 % (G14)");
        let wall = self.covered_after.as_secs_f64();
        row("time to cover them, as it ran", &format!("{:.1} min", wall / 60.0), "");
        let longer = 1.0 + times.saved / times.active.max(1.0);
        let goal = if nodes == 5_000 {
            "3.3 h at 4 min a run, 6.7 h at 8 (G7)"
        } else {
            ""
        };
        row(
            "time to cover them, without the speed-up",
            &format!("{:.2} h", wall * longer / 3_600.0),
            goal,
        );
        let runs = times.runs.max(1) as f64;
        let (active, held, saved) = (times.active / runs, times.held / runs, times.saved / runs);
        row(
            "a run, from its creation to its end",
            &format!("{active:.0} s, {:.0} s without the speed-up", active + saved),
            "",
        );
        row(
            "a run, with GPUs",
            &format!("{held:.0} s, {:.0} s without the speed-up", held + saved),
            "",
        );
        let at = |percent: usize| {
            times
                .minutes
                .get(times.minutes.len() * percent / 100)
                .copied()
                .unwrap_or_default()
        };
        row(
            "GPU minutes per GPU, without the speed-up",
            &format!("{:.1} median, {:.1} p95", at(50), at(95)),
            "≤ 4, ≤ 8 (G6)",
        );
        row(
            "trials of a run",
            &format!("{:.2}", times.trials as f64 / runs),
            "≤ 1.15 (G6)",
        );
        let gpus = serve::GPUS as f64;
        let hours = (times.held + times.saved) * gpus / 3_600.0;
        let goal = if nodes == 5_000 {
            "5,333 at 8 min a run (G7)"
        } else {
            ""
        };
        row("GPU-hours, without the speed-up", &format!("{hours:.0}"), goal);
        let week = 100.0 * hours * 3_600.0 / (nodes as f64 * gpus * WEEK);
        row("share of a week", &format!("{week:.3} %"), "0.04 to 0.079 % (G7)");
        row(
            "active at once, at most",
            &self.watched.most_active.to_string(),
            "2 % of the nodes",
        );
    }

    #[expect(clippy::cast_precision_loss, reason = "a table")]
    fn print_requests(&self) {
        // The history drops a run that a confirmation follows.
        let runs = self.calls.of("create", "perfvalidations").max(1) as f64;
        let seconds = self.wall.as_secs_f64();
        let both = |count: usize| format!("{:.1} per run, {:.1}/s", count as f64 / runs, count as f64 / seconds);
        let writes = self.calls.writes();
        row("writes of runs", &both(writes), "≤ 25 per run, ≤ 5.3/s (G10)");
        row("all requests", &both(self.calls.total() + self.pages), "≤ 20/s (G10)");
        row("busiest ten seconds", &format!("{:.0}/s", self.load.peak()), "");
        for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
            row(&format!("  {verb}"), &both(self.calls.of_verb(verb)), "");
        }
        row("  pages of lists of the whole cluster", &both(self.pages), "");
        for (what, count) in self.calls.most(true).into_iter().take(LISTED) {
            row(&format!("  writes: {what}"), &both(count), "");
        }
        for (what, count) in self.calls.most(false).into_iter().take(LISTED) {
            row(&format!("  reads: {what}"), &both(count), "");
        }
        let policy = self.calls.of("patch", "perfvalidationpolicies/status");
        row(
            "status of the policy",
            &format!(
                "{:.2}/s, {} bytes at most",
                policy as f64 / seconds,
                self.watched.largest_status
            ),
            "≤ 0.1/s, ≤ 32 KiB (G10)",
        );
        row(
            "largest NodePerformance",
            &format!("{} bytes", self.watched.largest_node),
            "≤ 4,096 (G10)",
        );
        let nodes = self.calls.of("patch", "nodes") + self.calls.of("update", "nodes");
        row("writes of Nodes", &nodes.to_string(), "0 if nothing changes (G10)");
    }

    #[expect(clippy::cast_precision_loss, reason = "a table")]
    fn print_operator(&self) {
        let peak = self
            .operator
            .peak()
            .map_or_else(|| "?".to_owned(), |peak| format!("{peak:.0} MiB"));
        row("operator: peak memory", &peak, "≤ 150 MiB (G11)");
        let cores = self.cpu / self.wall.as_secs_f64();
        row("operator: CPU", &format!("{cores:.2} cores"), "≤ 0.2 cores (G11)");
        if let Some((cpu, peak)) = self.api_server {
            let cores = cpu / self.wall.as_secs_f64();
            row(
                "API server: CPU, peak memory",
                &format!("{cores:.2} cores, {peak:.0} MiB"),
                "",
            );
        }
        let looks = self.operator.looks();
        let longest = looks.iter().copied().fold(0.0, f64::max);
        let mean = looks.iter().sum::<f64>() / looks.len().max(1) as f64;
        row(
            "operator: look of the queue",
            &format!("{mean:.2} s, {longest:.2} s at most, of {}", looks.len()),
            "≤ 1 s (G11)",
        );
        let counted =
            ["is lost", "pass given up", "pass panicked", "pass failed"].map(|word| self.operator.logged(word));
        let [lost, given_up, panicked, failed] = counted;
        row(
            "lease lost, passes given up, panicked, failed",
            &format!("{lost}, {given_up}, {panicked}, {failed}"),
            "0, 0, 0, 0",
        );
    }

    fn print_faults(&self) {
        let mut injected: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for (index, fault) in self.hardware.faults() {
            let gpu = match fault {
                Fault::SlowGpu(gpu) => Some(gpu),
                Fault::SlowNode => None,
                _ => continue,
            };
            if self.watched.covered.contains(&serve::name(index)) {
                injected.insert(serve::name(index), gpu);
            }
        }
        let is_right = |node: &str, gpu: Option<&str>| match injected.get(node) {
            None => false,
            Some(None) => true,
            Some(Some(slow)) => {
                let index = super::hardware::index(node).unwrap_or_default();
                gpu == Some(uuid(index, *slow).as_str())
            }
        };
        let count = |named: &mut dyn Iterator<Item = (String, Option<String>)>| {
            let (right, wrong): (BTreeSet<_>, BTreeSet<_>) =
                named.partition(|(node, gpu)| is_right(node, gpu.as_deref()));
            let right: BTreeSet<String> = right.into_iter().map(|(node, _)| node).collect();
            (right.len(), wrong.len())
        };
        let policy = self
            .server
            .get("perfvalidationpolicies", "", POLICY)
            .unwrap_or_default();
        let found = self.compare(&policy).into_iter();
        let (right, wrong) = count(&mut found.map(|outlier| (outlier.node, outlier.gpu)));
        let all = injected.len();
        row(
            "slow GPUs and nodes found, at the end",
            &format!("{right} of {all}"),
            "all",
        );
        row("false names, at the end", &wrong.to_string(), "≤ 5 % of the names");
        let ever = self.watched.named.iter();
        let (_, wrong) = count(&mut ever.map(|(node, gpu, _)| (node.clone(), gpu.clone())));
        row("false names, ever listed", &wrong.to_string(), "≤ 5 % of the names");
        let shown = policy["status"]["outliers"].as_array().cloned().unwrap_or_default();
        let (suspected, shown): (Vec<_>, Vec<_>) = shown.iter().partition(|outlier| is_suspicion(outlier));
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let names = |outliers: &[&serde_json::Value]| {
            let name =
                |outlier: &&serde_json::Value| (text(&outlier["node"]).unwrap_or_default(), text(&outlier["gpu"]));
            count(&mut outliers.iter().map(name))
        };
        let (right, wrong) = names(&shown);
        row(
            "listed at the end: right, false",
            &format!("{right}, {wrong}"),
            "at most 20 are listed",
        );
        let (right, wrong) = names(&suspected);
        row(
            "suspicions at the end: right, false",
            &format!("{right}, {wrong}"),
            "a new deployment decides",
        );
    }

    /// All outliers by what the operator stored. The policy's status lists the worst 20.
    fn compare(&self, policy: &serde_json::Value) -> Vec<Outlier> {
        let Ok(policy) = serde_json::from_value::<PerfValidationPolicy>(policy.clone()) else {
            return Vec::new();
        };
        let nodes = self.server.shared("nodeperformances").into_iter();
        let nodes = nodes.map(|object| serde_json::from_value(object.as_ref().clone()).expect("a NodePerformance"));
        let nodes: Vec<NodePerformance> = nodes.collect();
        let measured = nodes.iter();
        let measured = measured.filter_map(|node| Some((node.metadata.name.clone()?, node.status.as_ref()?)));
        let compared = compare_nodes(
            &policy.spec.comparison,
            &measured.collect(),
            &Approved::default(),
            |_| true,
        );
        let is_suspected = |outlier: &Outlier| outlier.confidence == Some(OutlierConfidence::Suspected);
        let outliers = compared.outliers.into_iter();
        outliers.filter(|outlier| !is_suspected(outlier)).collect()
    }

    fn times(&self) -> Times {
        let mut times = Times::default();
        for object in self.server.shared("perfvalidations") {
            let Ok(object) = serde_json::from_value::<PerfValidation>(object.as_ref().clone()) else {
                continue;
            };
            let (outline, status) = (Outline::new(&object), object.status.as_ref());
            let run = status.and_then(|status| status.run.as_ref());
            let ended = run.and_then(|run| run.completed_at);
            let created = object.metadata.creation_timestamp.as_ref().map(|at| at.0.as_second());
            let (Some(ended), Some(created)) = (ended, created) else {
                continue;
            };
            let name = object.metadata.name.unwrap_or_default();
            let (saved, trials) = self.saved.get(&name).copied().unwrap_or_default();
            let seconds = |whole: i64| f64::from(i32::try_from(whole).unwrap_or_default());
            times.runs += 1;
            times.trials += trials;
            times.saved += saved;
            times.active += seconds(ended.timestamp() - created);
            if let Some((since, until)) = outline.gpus_since.zip(outline.gpus_until) {
                let held = seconds((until - since).num_seconds());
                times.held += held;
                times.minutes.push((held + saved) / 60.0);
            }
        }
        times.minutes.sort_by(f64::total_cmp);
        times
    }
}
