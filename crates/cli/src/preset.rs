//! `presets`: the gates that ship for known GPUs. They are the samples of the repository, so there is one copy of each.

use perfval_api::PerfValidation;

use crate::args::PresetsArgs;
use crate::draw::flow;
use crate::error::Error;
use crate::screen::Screen;
use crate::table::Table;

/// A sample for one kind of GPU.
pub struct Preset {
    pub name: &'static str,
    pub manifest: &'static str,
}

macro_rules! preset {
    ($name:literal) => {
        Preset {
            name: $name,
            manifest: include_str!(concat!("../../../config/samples/gpu-", $name, ".yaml")),
        }
    };
}

pub const PRESETS: [Preset; 5] = [
    preset!("h100-80gb"),
    preset!("h200"),
    preset!("gb200"),
    preset!("gb300"),
    preset!("rtx-pro-6000"),
];

/// The lines of every preset that compare workers with each other, and those that replace them for one GPU.
const NEEDS_A_PEER: [(&str, &str); 3] = [
    (
        "# For one GPU, without the gate on the slowest worker: kubectl perfval run --preset NAME --max-gpus 1\n",
        "# For one GPU, so without the gate on the slowest worker.\n",
    ),
    ("    minGPUs: 2 # the gate on the slowest worker needs a peer\n", ""),
    (
        concat!(
            "    - name: slowest-worker # the throughput hardly shows one slow GPU among many\n",
            "      metric: SlowestWorkerPercent\n",
            "      operator: \">=\"\n",
            "      threshold: \"90\" # percent of its peers\n",
        ),
        "",
    ),
];

impl Preset {
    pub fn find(name: &str) -> Result<&'static Self, Error> {
        let found = PRESETS.iter().find(|preset| preset.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let known: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
            Error::BadInput(format!("there is no preset {name}: there are {}", known.join(", ")))
        })
    }

    pub fn object(&self) -> Result<PerfValidation, Error> {
        serde_saphyr::from_str(self.manifest).map_err(|error| Error::Render(error.to_string()))
    }

    /// The manifest for at most `max_gpus` GPUs. For one GPU it does not compare workers.
    pub fn for_gpus(&self, max_gpus: Option<i64>) -> String {
        let mut text = self.manifest.to_owned();
        if max_gpus == Some(1) {
            for (lines, instead) in NEEDS_A_PEER {
                text = text.replacen(&lines.replace("NAME", self.name), instead, 1);
            }
        }
        text
    }

    /// The label of the nodes that it is for.
    pub fn product(&self) -> Option<String> {
        let placement = self.object().ok()?.spec.placement;
        placement.node_selector.get(PRODUCT).cloned()
    }
}

/// Label of a node with the product name of its GPUs, as NVIDIA's feature discovery sets it.
pub const PRODUCT: &str = "nvidia.com/gpu.product";
/// NVIDIA's DRA driver, as its slices name it.
pub const DRIVER: &str = "gpu.nvidia.com";

/// Lists them, or prints one.
pub fn run(screen: &mut Screen, args: &PresetsArgs) -> Result<u8, Error> {
    if let Some(name) = &args.name {
        screen.print(Preset::find(name)?.manifest)?;
        return Ok(0);
    }
    let mut table = Table::new(["PRESET", "GPU", "MODEL", "GATES"]);
    for preset in &PRESETS {
        let spec = preset.object()?.spec;
        let gates = spec.gates.iter().map(|gate| {
            let scaling = match gate.scaling {
                perfval_api::Scaling::PerGpu => " per GPU",
                perfval_api::Scaling::ByGpuShare => " by share",
                perfval_api::Scaling::None => "",
            };
            format!("{} {} {}{scaling}", gate.name, gate.operator.sign(), gate.threshold)
        });
        table.row([
            preset.name.to_owned(),
            preset.product().unwrap_or_default(),
            spec.model.name.clone(),
            gates.collect::<Vec<_>>().join(", "),
        ]);
    }
    screen.print(&table.on(screen.columns()))?;
    let next = [
        "print one: kubectl perfval presets h200",
        "run it: kubectl perfval run --preset h200",
    ];
    let next = flow(next, "      ", screen.columns().unwrap_or(usize::MAX), "");
    screen.print(&format!("\n{next}"))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use perfval_api::Metric;

    use super::*;

    #[test]
    fn every_preset_compares_its_workers_unless_there_is_one() {
        for preset in &PRESETS {
            let of = |max_gpus: Option<i64>| {
                let text = preset.for_gpus(max_gpus);
                assert_eq!(text.contains("--max-gpus 1"), max_gpus != Some(1), "{text}");
                let object: PerfValidation = serde_saphyr::from_str(&text).expect("a preset");
                let gates = object.spec.gates.iter();
                let compares = gates.filter(|gate| gate.metric == Metric::SlowestWorkerPercent).count();
                (object.spec.placement.min_gpus, compares)
            };
            assert_eq!((of(None), of(Some(8))), ((2, 1), (2, 1)), "{}", preset.name);
            assert_eq!(of(Some(1)), (1, 0), "{}", preset.name);
        }
    }
}
