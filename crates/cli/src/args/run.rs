//! Flags of the verbs that make and follow a run.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunCommandArgs {
    /// Manifest of the validation; - is standard input (-f or --preset is required)
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["preset", "model", "image"])]
    pub filename: Option<PathBuf>,
    /// The common case, without a manifest.
    #[command(flatten)]
    pub common: CommonCase,
    /// Write the report into this folder once it is over: a page, test cases, a summary, metrics. An earlier one is removed
    /// at the start
    #[arg(long, value_name = "DIR", conflicts_with = "detach")]
    pub report: Option<PathBuf>,
    /// Create it and do not follow
    #[arg(long)]
    pub detach: bool,
    /// Longest time to follow it (such as 90s, 30m, 1h); the run goes on
    #[arg(long, value_parser = duration, conflicts_with = "detach")]
    pub timeout: Option<std::time::Duration>,
}

/// A validation by a preset.
#[derive(Clone, Debug, Default, Args)]
pub struct CommonCase {
    /// Gates and load for this GPU: `kubectl perfval presets` lists them
    #[arg(long, value_name = "GPU")]
    pub preset: Option<String>,
    /// Name of the validation
    #[arg(long)]
    pub name: Option<String>,
    /// Model to serve
    #[arg(long)]
    pub model: Option<String>,
    /// Image of the workers, of the same major and minor version as Dynamo's operator
    #[arg(long)]
    pub image: Option<String>,
    /// At most this many GPUs; with 1 a preset has no gate on the slowest worker
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=64))]
    pub max_gpus: Option<i64>,
    /// Run on this node, by its kubernetes.io/hostname
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub node: Option<String>,
}

/// Flags of `calibrate`.
#[derive(Clone, Debug, Args)]
pub struct CalibrateArgs {
    /// Manifest with model, image and placement; its load and its gates are replaced
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub filename: PathBuf,
    /// Name of the validation that measures; the manifest's name and -calibrate when not given
    #[arg(long)]
    pub name: Option<String>,
    /// Node that you trust, by its kubernetes.io/hostname
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub node: Option<String>,
    /// Least load (requests in flight per GPU)
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=4096))]
    pub from: i32,
    /// Largest load (requests in flight per GPU)
    #[arg(long, default_value_t = 1024, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=4096))]
    pub to: i32,
    /// Runs at the recommended load, each with a new deployment. With three or more, the throughput gate is 95 % of
    /// the slowest run, else 75 %
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub runs: u32,
    /// Keep the validation that measures, for its history and results
    #[arg(long)]
    pub keep: bool,
    /// New file for the manifest; standard output when not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Flags of `watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Name of the validation; optional if the namespace has only one
    pub name: Option<String>,
    /// Longest time to follow it (such as 90s, 30m, 1h); the run goes on
    #[arg(long, value_parser = duration)]
    pub timeout: Option<std::time::Duration>,
}

/// Flags of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// The common case, without a manifest.
    #[command(flatten)]
    pub common: CommonCase,
    /// New file to write; standard output when not given, and for -
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub filename: Option<PathBuf>,
}

/// Flags of `presets`.
#[derive(Clone, Debug, Args)]
pub struct PresetsArgs {
    /// Print this one as a manifest
    pub name: Option<String>,
}

/// Longest text of a duration (characters).
const LONGEST: usize = 12;

/// A duration as the manifests have them: `90s`, `30m`, `1h30m`.
pub(super) fn duration(text: &str) -> Result<std::time::Duration, String> {
    // The parser panics on a negative part and on a large number.
    if text.len() > LONGEST {
        return Err(format!("write at most {LONGEST} characters, such as 90s, 30m or 1h30m"));
    }
    let duration = (!text.contains('-')).then(|| text.parse::<kube::core::Duration>().ok());
    let duration = duration
        .flatten()
        .map(std::time::Duration::from)
        .filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| "write a duration such as 90s, 30m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::duration;

    #[test]
    fn a_text_that_is_no_duration_is_refused() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        let long = ["9223372036854775807h", "5000000000000000h"];
        for wrong in ["5", "2d", "m", "0s", "-5m", "1h-5m", ""].iter().chain(&long) {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        let why = duration("1h30m15s500ms").expect_err("13 characters");
        assert!(why.contains("at most 12 characters"), "{why}");
        assert!(!duration("2d").expect_err("no unit").contains("at most"));
    }
}
