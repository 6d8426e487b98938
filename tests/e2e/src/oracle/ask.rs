//! What sizing says of a random cluster, read through the operator's own eyes.

use perfval_api::PerfValidation;
use perfval_run::observed::Need;
use perfval_run::{Needs, Run, Settings};
use perfval_sizing::Plan;
use perfval_sizing::inventory::Inventory;
use perfval_sizing::{Fleet, HeldNodes, NodeReport, Seen, Sizing, explain};

use super::{Cluster, Probe};

/// What sizing says of one node.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The node.
    pub probe: Probe,
    /// The object that asked.
    pub object: PerfValidation,
    /// The answer.
    pub answer: Answer,
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A plan.
    Plan(Box<Plan>),
    /// None: the obstacle's name, and what it says to people.
    None(String, String),
}

/// All answers.
pub struct Answers {
    /// Node by node.
    pub nodes: Vec<Asked>,
    /// The plan for the whole cluster.
    pub chosen: Option<Plan>,
}

/// Reads the API server as a run in its sizing does, and asks about every node and about all of them.
pub async fn ask(
    operator: &perfval_cluster::Cluster,
    namespace: &str,
    cluster: &Cluster,
) -> Result<Answers, serde_json::Error> {
    let settings = Settings::default();
    let object = cluster.validation(namespace, None)?;
    let needs = Needs {
        parts: [Need::Inventory].into(),
        ..Needs::default()
    };
    let run = Run::new(&object, &settings);
    let seen = operator.observe(&run, &needs).await.inventory;
    let inventory = match seen {
        Seen::Present(inventory) => only(inventory, namespace, &cluster.id),
        other => panic!("the inventory is always read, not {other:?}"),
    };
    let nodes = cluster.probes.iter().map(|probe| {
        let object = cluster.validation(namespace, Some(&probe.node))?;
        // Without the others, whose reasons would come first.
        let (reports, sizing) = explain(&of_node(&inventory, &probe.node), &object.spec, &[]);
        let answer = match sizing {
            Sizing::Chosen(plan) => Answer::Plan(plan),
            Sizing::Wait { message, .. } | Sizing::Refuse { message, .. } => Answer::None(obstacle(&reports)?, message),
        };
        Ok(Asked {
            probe: probe.clone(),
            object,
            answer,
        })
    });
    let nobody = HeldNodes::default();
    let sizing = Fleet::new(&inventory).choose(inventory.for_run(), run.spec(), &nobody, &[]);
    let chosen = match sizing {
        Sizing::Chosen(plan) => Some(*plan),
        Sizing::Wait { .. } | Sizing::Refuse { .. } => None,
    };
    Ok(Answers {
        nodes: nodes.collect::<Result<_, serde_json::Error>>()?,
        chosen,
    })
}

/// What rules out the only node, by its stable name.
fn obstacle(reports: &[NodeReport]) -> Result<String, serde_json::Error> {
    let report = serde_json::to_value(reports.first())?;
    Ok(report["why"].as_str().unwrap_or("none").to_owned())
}

/// Everything, but only one node.
fn of_node(inventory: &Inventory, name: &str) -> Inventory {
    let mut inventory = inventory.clone();
    keep(&mut inventory.nodes, |node| &*node.name == name);
    inventory
}

/// The part that one of several clusters on the API server owns.
fn only(mut inventory: Inventory, namespace: &str, id: &str) -> Inventory {
    let (nodes, drivers, names) = (format!("{id}-"), format!(".{id}.example"), format!("{namespace}/"));
    keep(&mut inventory.nodes, |node| node.name.starts_with(&nodes));
    keep(&mut inventory.slices, |slice| slice.driver.ends_with(&drivers));
    keep(&mut inventory.pods, |pod| pod.name.starts_with(&names));
    keep(&mut inventory.claims, |claim| claim.name.starts_with(&names));
    inventory
}

fn keep<T>(part: &mut Seen<Vec<T>>, wanted: impl Fn(&T) -> bool) {
    if let Seen::Present(list) = part {
        list.retain(wanted);
    }
}
