//! What `size --from` reads: YAML or JSON of a cluster, whatever it holds.

use std::path::Path;

use perfval_cli::size;
use perfval_sizing::explain;

pub fn run(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else {
        return false;
    };
    let object = size::defaults().expect("the CRD's defaults");
    let Ok(saved) = size::cluster_in(Path::new("-"), text, &object) else {
        return false;
    };
    let (reports, _) = explain(&saved.inventory, &object.spec, &saved.busy);
    for report in reports {
        let taken: i64 = report.taken.iter().map(|taken| taken.gpus).sum();
        assert!((0..=report.free).contains(&report.usable), "{report:?}");
        assert_eq!(report.free + taken, report.total, "{report:?}");
        assert!(!report.summary().is_empty());
    }
    true
}
