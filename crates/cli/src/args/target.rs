//! Flags that choose a cluster, a user and a namespace.

use std::path::PathBuf;

use clap::Args;
use perfval_api::text::quoted;

use super::evidence::namespace_name;

/// Cluster and namespace.
#[derive(Clone, Debug, Default, Args)]
pub struct Target {
    /// Namespace; that of the kubeconfig's context when not given
    #[arg(short, long, global = true, value_parser = namespace)]
    pub namespace: Option<String>,
    /// Context of the kubeconfig
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// File with the kubeconfig; KUBECONFIG, then ~/.kube/config when not given
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Cluster of the kubeconfig, instead of the context's
    #[arg(long, global = true)]
    pub cluster: Option<String>,
    /// User of the kubeconfig, instead of the context's
    #[arg(long, global = true)]
    pub user: Option<String>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,
    /// Group to impersonate with --as (may be repeated)
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub groups: Vec<String>,
}

impl Target {
    /// Namespace of the flags. An empty one is none, as with kubectl.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }

    /// Flags of the same cluster and user for a command to type next, each after a space.
    pub fn cluster_flags(&self) -> String {
        let kubeconfig = self.kubeconfig.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--context", self.context.as_ref()),
            ("--kubeconfig", kubeconfig.as_ref()),
            ("--cluster", self.cluster.as_ref()),
            ("--user", self.user.as_ref()),
            ("--as", self.impersonate.as_ref()),
        ];
        let groups = self.groups.iter().map(|group| ("--as-group", Some(group)));
        let words = flags.into_iter().chain(groups).filter_map(|(flag, value)| {
            let value = value.filter(|value| !value.is_empty())?;
            Some(format!(" {flag} {}", quoted(value)))
        });
        words.collect::<Vec<_>>().concat()
    }
}

/// A name that a namespace can have, or an empty text.
fn namespace(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    namespace_name(text)
}
