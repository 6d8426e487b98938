//! Facts of a node that explain a slow run, from files that every container may read.
//!
//! Two healthy machines with the same two H100s differed by a fifth in throughput (`docs/evidence/silicon.md`): such facts are
//! the first thing to compare. No verdict depends on them.

use serde::{Deserialize, Deserializer, Serialize};

/// Longest text of a fact (characters); the longest model name seen has 47.
const TEXT: usize = 80;
/// Longest name of a node in Kubernetes (characters).
const NAME: usize = 253;

/// Facts of the node on which the load generator ran; unknown ones are absent.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeFacts {
    /// Name of the node.
    #[serde(deserialize_with = "name")]
    pub node: String,
    /// Model of its CPUs, such as `Intel(R) Xeon(R) Platinum 8480C`; arm64 has none.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// NUMA nodes that are online, such as `0-1`.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub numa_nodes: Option<String>,
    /// Frequency governor of the first CPU, such as `performance`; most virtual machines have none.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// CPUs on which the kernel starts nothing by itself (`isolcpus`), such as `2-63`.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub isolated_cpus: Option<String>,
    /// Release of the kernel.
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

impl NodeFacts {
    /// Reads the facts of this machine. `file` answers with the content of a path below `/`, or `None` if it cannot be read.
    pub fn read(node: &str, file: impl Fn(&str) -> Option<String>) -> Self {
        let line = |path: &str| file(path).and_then(|content| shown(&content));
        Self {
            node: printable(node, NAME),
            cpu_model: file("proc/cpuinfo").as_deref().and_then(cpu_model),
            numa_nodes: line("sys/devices/system/node/online"),
            governor: line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            isolated_cpus: line("sys/devices/system/cpu/isolated"),
            kernel: line("proc/sys/kernel/osrelease"),
        }
    }

    /// The known facts in one line, without the name of the node.
    pub fn in_words(&self) -> String {
        let named = |label: &str, value: &Option<String>| value.as_ref().map(|value| format!("{label} {value}"));
        [
            self.cpu_model.clone(),
            named("NUMA nodes", &self.numa_nodes),
            named("governor", &self.governor),
            named("isolated CPUs", &self.isolated_cpus),
            named("kernel", &self.kernel),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
    }
}

/// `model name` of the first CPU.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut models = fields.filter(|(key, _)| key.trim() == "model name");
    models.next().and_then(|(_, model)| shown(model))
}

/// The first line of a fact; empty ones are unknown.
fn shown(content: &str) -> Option<String> {
    Some(printable(content, TEXT)).filter(|text| !text.is_empty())
}

/// The first line without what a terminal would obey.
fn printable(content: &str, length: usize) -> String {
    let line = content.trim().lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(length).collect()
}

/// A name from a record: every user with pods of their own can forge a record.
pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(printable(&name, NAME))
}

/// A text from a record, bounded in the same way.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.as_deref().and_then(shown))
}

#[cfg(test)]
mod tests {
    use super::NodeFacts;

    const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n\n\
                           processor\t: 1\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n";

    #[test]
    fn what_can_be_read_is_recorded() {
        let facts = NodeFacts::read("gpu-node-1", |path| {
            let content = match path {
                "proc/cpuinfo" => CPUINFO,
                "sys/devices/system/node/online" => "0-1\n",
                "sys/devices/system/cpu/isolated" => "\n",
                "proc/sys/kernel/osrelease" => "6.18.44\n",
                _ => return None,
            };
            Some(content.to_owned())
        });
        assert_eq!((facts.isolated_cpus.as_ref(), facts.governor.as_ref()), (None, None));
        assert_eq!(
            facts.in_words(),
            "Intel(R) Xeon(R) Platinum 8480C, NUMA nodes 0-1, kernel 6.18.44"
        );
        assert_eq!(NodeFacts::read("n", |_| None).in_words(), "");
    }

    #[test]
    fn a_forged_record_is_short_and_printable() {
        let forged = format!(r#"{{"node": "n\u001b[2J", "kernel": "{}\u0007"}}"#, "k".repeat(10_000));
        let facts: NodeFacts = serde_json::from_str(&forged).expect("facts");
        assert_eq!(facts.node, "n[2J");
        assert_eq!(facts.kernel.map(|kernel| kernel.len()), Some(80));
        // Reports compare the whole name with that of the run's node.
        for (length, kept) in [(253, 253), (10_000, 253)] {
            let forged = format!(r#"{{"node": "{}"}}"#, "n".repeat(length));
            let facts: NodeFacts = serde_json::from_str(&forged).expect("facts");
            assert_eq!(facts.node.len(), kept);
        }
    }
}
