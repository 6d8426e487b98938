//! The rights that the roles give, against those that the operator used: the API server's audit log knows both.

mod exceptions;
mod granted;
mod used;

use std::collections::BTreeSet;
use std::fmt;

pub use exceptions::{EXCEPTIONS, Exception};
pub use granted::{Grant, read_roles};
pub use used::{Request, read_log};

/// A verb on a resource, cluster-wide or in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with its subresource.
    pub resource: String,
    /// Verb.
    pub verb: String,
    /// Whether it was for the whole cluster.
    pub cluster_wide: bool,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(if self.cluster_wide {
            " (cluster)"
        } else {
            " (namespace)"
        })
    }
}

/// The comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Granted, and used.
    pub used: BTreeSet<Use>,
    /// Granted, and not used.
    pub unused: BTreeSet<Use>,
    /// Used, or tried, and not granted by any role.
    pub ungranted: BTreeSet<Use>,
    /// Refused with 403 by the authoriser.
    pub refused: BTreeSet<Use>,
}

impl Comparison {
    /// Compares what the roles grant with what was asked of the API server.
    pub fn of(grants: &[Grant], requests: &BTreeSet<Request>) -> Self {
        let mut comparison = Self::default();
        for grant in grants {
            // A right in the whole cluster needs a request that a right in a namespace would not cover.
            let needs_it =
                |request: &&Request| grant.covers(request) && (request.namespace.is_none() || !grant.cluster_only);
            let list = if requests.iter().any(|request| needs_it(&request)) {
                &mut comparison.used
            } else {
                &mut comparison.unused
            };
            list.insert(grant.what());
        }
        for request in requests {
            if request.refused {
                comparison.refused.insert(request.what());
            }
            if !grants.iter().any(|grant| grant.covers(request)) {
                comparison.ungranted.insert(request.what());
            }
        }
        comparison
    }

    /// The differences that no written reason explains.
    pub fn unexplained(&self) -> Vec<&Use> {
        let unused = self.unused.iter().filter(|use_| exceptions::why_unused(use_).is_none());
        let ungranted = self
            .ungranted
            .iter()
            .filter(|use_| exceptions::why_ungranted(use_).is_none());
        unused.chain(ungranted).chain(&self.refused).collect()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        type Why = fn(&Use) -> Option<&'static str>;
        let sections: [(&str, &BTreeSet<Use>, Why); 4] = [
            ("used and granted", &self.used, |_| None),
            ("granted, not used", &self.unused, exceptions::why_unused),
            (
                "used, not granted by these roles",
                &self.ungranted,
                exceptions::why_ungranted,
            ),
            ("refused (403)", &self.refused, |_| None),
        ];
        for (title, uses, why) in sections {
            writeln!(f, "{title}: {}", uses.len())?;
            for use_ in uses {
                match why(use_) {
                    Some(why) => writeln!(f, "  {use_}: {why}")?,
                    None => writeln!(f, "  {use_}")?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
