//! Text of the cause of an error, without secrets.

use kube::client::AuthError;
use kube::config::KubeconfigError;
use serde_saphyr::SnippetMode;

/// Text for a token that the HTTP library refuses.
pub const WRONG_TOKEN: &str = "the user's token has a line break or another control character: log in again";
/// Text for a proxy. Its URL may have a password.
const NO_PROXY: &str =
    "this program cannot use a proxy: unset HTTPS_PROXY and https_proxy, and remove proxy-url from the kubeconfig";

/// The last cause explains most: "connection refused" rather than "client error (Connect)".
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let last = || causes(error).last().map_or_else(String::new, ToString::to_string);
    without_secrets(error).unwrap_or_else(last)
}

/// Text for an error whose own text may have secrets (lines of a kubeconfig, the output of a credential plugin, the URL of a proxy), or
/// no remedy. `None` for other errors.
pub fn without_secrets(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    causes(error).find_map(|cause| {
        if let Some(KubeconfigError::Parse(error)) = cause.downcast_ref() {
            return Some(format!("the kubeconfig cannot be read: {}", fault(error)));
        }
        if let Some(kube::Error::ProxyProtocolDisabled { .. } | kube::Error::ProxyProtocolUnsupported { .. }) =
            cause.downcast_ref()
        {
            return Some(NO_PROXY.to_owned());
        }
        match cause.downcast_ref()? {
            AuthError::AuthExecParse(error) => Some(format!(
                "the output of the credential plugin cannot be read: {}",
                fault(error)
            )),
            AuthError::AuthExecRun { out, .. } => Some(format!(
                "the credential plugin failed ({}): {}",
                out.status,
                String::from_utf8_lossy(&out.stderr).trim()
            )),
            AuthError::InvalidBearerToken(_) => Some(WRONG_TOKEN.to_owned()),
            _ => None,
        }
    })
}

/// Line, column and reason of an error in YAML. The text around it may have secrets.
pub fn fault(error: &serde_saphyr::Error) -> String {
    let text = error.render_with_options(serde_saphyr::render_options! { snippets: SnippetMode::Off });
    text.replace(", set DuplicateKeyPolicy in Options if acceptable", "")
}

/// Joins an error with its sources: hyper's text is "client error (Connect)", and "connection refused" is in a source.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}
