//! CEL rules that several fields share. Every message suggests a valid value.

use kube::core::Rule;

use crate::{GateOperator, Metric};

/// Rule for a Go duration with these bounds.
fn go_duration(bounds: &str) -> Rule {
    Rule::new(format!("self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && {bounds}"))
}

/// Rule for a wait of a run: a Go duration above zero.
pub fn duration() -> Rule {
    go_duration("duration(self) > duration('0s') && duration(self) <= duration('24h')")
        .message("write a Go duration above 0s and up to 24h, such as 90s or 1h5m")
}

/// Rule for a wait that may be zero.
pub fn duration_or_zero() -> Rule {
    go_duration("duration(self) <= duration('24h')")
        .message("write a Go duration from 0s to 24h, such as 0s, 90s or 1h5m")
}

/// Rule for the age of a verdict.
pub fn long_duration() -> Rule {
    go_duration("duration(self) >= duration('1h') && duration(self) <= duration('8760h')")
        .message("write a Go duration from 1h to 8760h, such as 24h or 168h")
}

/// Rule for five fields of cron. The operator checks that they name a time.
pub fn cron() -> Rule {
    Rule::new(r"self.matches('^[ ]*[^ ]+([ ]+[^ ]+){4}[ ]*$')")
        .message("write cron's five fields, minute hour day month weekday, such as 0 1 * * *")
}

/// Rule for the length of a window.
pub fn window() -> Rule {
    go_duration("duration(self) >= duration('1m') && duration(self) <= duration('8760h')")
        .message("write a Go duration from 1m to 8760h, such as 90m or 10h")
}

/// Rule for a trial that is long enough to compare each of its last two minutes with the first.
pub fn soak() -> Rule {
    go_duration("duration(self) >= duration('5m') && duration(self) <= duration('24h')")
        .message("write a Go duration from 5m to 24h, such as 10m; leave the field out for no soak")
}

/// Rule for a threshold. The upper bound keeps it inside every integer type to which a quantity is converted.
pub fn threshold() -> Rule {
    Rule::new(
        "isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && quantity(self).compareTo(quantity('1G')) <= 0",
    )
    .message(r#"write a quantity above 0 and up to 1G in the metric's unit, such as "2000", "0.5" or "50k""#)
}

/// Rule for a share that may be zero and may contain tenths.
pub fn percent() -> Rule {
    Rule::new(
        "isQuantity(self) && quantity(self).compareTo(quantity('0')) >= 0 && quantity(self).compareTo(quantity('100')) <= 0",
    )
    .message(r#"write a quantity from 0 to 100, such as "1" or "0.1""#)
}

/// Rule against an upper limit on the smallest value, because one fast request meets it.
pub fn upper_limit_of_the_smallest() -> Rule {
    Rule::new("!(self.statistic == 'Min' && self.operator == '<=')")
        .message("the fastest request shows nothing about the others: write Avg, Max or a percentile such as P99")
}

/// Rule for a share with a maximum of 100.
pub fn percent_is_at_most_100() -> Rule {
    let percentages = listed(|metric| metric.aiperf_tag().is_none());
    Rule::new(format!(
        "!(self.metric in {percentages}) || !isQuantity(self.threshold) || quantity(self.threshold).compareTo(quantity('100')) <= 0"
    ))
    .message("this metric is a percentage: write a threshold of at most 100")
}

/// Rule for a comparison between workers, which needs two of them.
pub fn slowest_worker_needs_two() -> Rule {
    let metric = Metric::SlowestWorkerPercent.as_str();
    Rule::new(format!(
        "!has(self.workload.dynamo) || self.placement.minGPUs >= 2 * self.workload.dynamo.worker.gpus || !self.gates.exists(g, g.metric == '{metric}' && g.mode == 'Enforce')"
    ))
    .message("one worker has no peer, and the gate on the slowest one could not be measured: write placement.minGPUs for at least two workers (2, or twice worker.gpus), or mode Warn for this gate")
}

/// Rule for a gate whose baseline may be missing: without another gate nothing would judge the run.
pub fn baseline_gate_is_not_alone() -> Rule {
    let metric = Metric::BaselinePercent.as_str();
    let relative = listed(Metric::needs_a_reference);
    Rule::new(format!(
        "!self.gates.exists(g, g.metric == '{metric}' && g.mode == 'Enforce') || self.gates.exists(g, !(g.metric in {relative}) && g.mode == 'Enforce')"
    ))
    .message("without an approved baseline nothing would judge the run: add another gate of mode Enforce, such as a loose OutputTokenThroughput or SlowestWorkerPercent")
}

/// Rule for a gate on a metric of the whole trial.
pub fn whole_trial_has_an_average_only() -> Rule {
    let single = listed(Metric::has_an_average_only);
    Rule::new(format!("!(self.metric in {single}) || self.statistic == 'Avg'"))
        .message("a figure of the whole trial has an average only: write statistic Avg, or a metric of single requests")
}

/// Rule for a gate on a metric with a good side; `amount` describes this side.
pub fn good_side(operator: GateOperator, amount: &str) -> Rule {
    let metrics = listed(|metric| metric.good_side() == Some(operator));
    let word = operator.as_str();
    Rule::new(format!("!(self.metric in {metrics}) || self.operator == '{word}'"))
        .message(format!("{amount} of this metric is better: write operator \"{word}\"").as_str())
}

/// Rule for a threshold that scales with the number of GPUs.
pub fn only_rates_scale() -> Rule {
    Rule::new(format!(
        "self.metric in {} || self.scaling == 'None'",
        listed(Metric::is_rate)
    ))
    .message("only tokens and requests a second grow with the number of GPUs: write scaling None")
}

/// Metrics that satisfy a predicate, as a list in CEL.
fn listed(holds: impl Fn(Metric) -> bool) -> String {
    let words = Metric::ALL.iter().copied().filter(|metric| holds(*metric));
    let words: Vec<String> = words.map(|metric| format!("'{}'", metric.as_str())).collect();
    format!("[{}]", words.join(", "))
}

/// Rule for a revision with an existing claim. The engine alone selects the revision, and the operator passes it to its
/// own command only.
pub fn own_command_sets_the_revision() -> Rule {
    Rule::new(
        "!has(self.model.revision) || !has(self.model.cache) || !has(self.model.cache.persistentVolumeClaim) || \
         !has(self.workload.dynamo) || !has(self.workload.dynamo.worker.command) || size(self.workload.dynamo.worker.command) == 0",
    )
    .message("your own command sets the revision of an existing claim: write it in workload.dynamo.worker.args, and leave model.revision out")
}

/// Rule for a pod that reads the weights: it must run on a node that can mount their volume.
pub fn anywhere_needs_shared_weights(field: &str) -> Rule {
    let lacks_dynamo = if field.starts_with("workload.") {
        "!has(self.workload.dynamo) || "
    } else {
        ""
    };
    Rule::new(format!(
        "{lacks_dynamo}!has(self.{field}) || self.{field} != 'Anywhere' || !has(self.model.cache) || \
         (has(self.model.cache.volumeClaimTemplate) && 'ReadWriteMany' in self.model.cache.volumeClaimTemplate.accessModes)"
    ))
    .message(format!(
        "the weights may be on the node under test only: leave {field} out, or write ReadWriteMany in model.cache.volumeClaimTemplate.accessModes"
    ).as_str())
}

/// Rule for names of labels and annotations that Kubernetes allows and the operator does not reserve.
pub fn not_ours() -> Rule {
    // The domain of an annotation may have capitals.
    Rule::new(
        "self.all(k, k.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && !k.startsWith('perfvalidation.dev/') && !k.startsWith('app.kubernetes.io/'))",
    )
    .message("the operator sets what begins with perfvalidation.dev/ and app.kubernetes.io/: write another name of at most 63 letters, digits, '-', '_' and '.', such as team or example.com/team")
}

/// Rule for the values of labels.
pub fn label_values() -> Rule {
    Rule::new("self.all(k, size(self[k]) <= 63 && self[k].matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'))")
        .message("write a label's value of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends")
}

/// Rule for a security context within Pod Security level `baseline`. A user who may create a run gains no right over
/// its node.
pub fn baseline(and: &str) -> Rule {
    Rule::new(format!(
        "!has(self.windowsOptions) && !has(self.seLinuxOptions) && \
         (!has(self.seccompProfile) || self.seccompProfile.type != 'Unconfined') && \
         (!has(self.appArmorProfile) || self.appArmorProfile.type != 'Unconfined'){and}"
    ))
    .message("write what Pod Security level baseline admits: no privileged, procMount, Unconfined, seLinuxOptions or windowsOptions")
}

/// Rule for the size of a volume.
pub fn volume_size() -> Rule {
    Rule::new("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))")
        .message("write a quantity of bytes above 0, such as 100Gi")
}

/// Rule for the name of another object.
pub fn object_name() -> Rule {
    Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of an object: lower-case letters, digits, '-' and '.'; leave the field out for none")
}

/// Rule for an image reference.
pub fn image() -> Rule {
    Rule::new("self.matches('^[A-Za-z0-9][^ \\t\\n]*$')")
        .message("write an image reference such as nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1")
}

/// Rule for an image reference, or an empty text for the default.
pub fn image_or_empty() -> Rule {
    Rule::new("self == '' || self.matches('^[A-Za-z0-9][^ \\t\\n]*$')")
        .message("write an image reference, or leave the field out for its default")
}
