use clap::ValueEnum;

/// Format of an answer that is no list of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For scripts, as JSON.
    Json,
    /// For scripts, as YAML.
    Yaml,
}
