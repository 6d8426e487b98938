//! Values of the chart in the pages.

use std::fs;
use std::path::{Path, PathBuf};

use perfval_chart::render::{self, repository};

/// Markdown files below a folder, or a file itself.
fn pages(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        let is_page = path.extension().is_some_and(|ending| ending == "md");
        return is_page.then(|| path.to_owned()).into_iter().collect();
    }
    let entries = fs::read_dir(path)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path());
    entries.flat_map(|entry| pages(&entry)).collect()
}

/// First word of a command line, without its quotes.
fn word(rest: &str) -> &str {
    let quoted = rest.strip_prefix('\'').and_then(|rest| rest.split('\'').next());
    let plain = || {
        rest.split(|letter: char| letter.is_whitespace() || letter == '`')
            .next()
    };
    quoted.or_else(plain).unwrap_or_default()
}

/// The schema of the values refuses a name that the chart does not have.
#[test]
fn values_in_helm_commands_of_the_pages_render() {
    let (mut sets, mut files) = (0, 0);
    let folders = ["README.md", "docs", "config", "charts"];
    for page in folders.iter().flat_map(|folder| pages(&repository().join(folder))) {
        let text = fs::read_to_string(&page).expect("a page");
        let place = page.display();
        for rest in text.split("--set ").skip(1) {
            let value = word(rest);
            let objects = render::with_set(value).unwrap_or_else(|error| panic!("{place}: --set {value}: {error}"));
            assert!(!objects.is_empty(), "{place}: --set {value}");
            sets += 1;
        }
        for rest in text.split("--values ").skip(1) {
            // The page shows the file after the command.
            let (_, file) = rest.split_once("```yaml\n").expect("the values");
            let (file, _) = file.split_once("```").expect("their end");
            let values = serde_saphyr::from_str(file).unwrap_or_else(|error| panic!("{place}: {error}"));
            let objects = render::chart(&values).unwrap_or_else(|error| panic!("{place}: {file}: {error}"));
            assert!(!objects.is_empty(), "{place}: {file}");
            files += 1;
        }
    }
    assert!(sets >= 4 && files >= 1, "{sets} values, {files} files");
}

#[test]
fn a_misspelt_value_does_not_render() {
    assert_eq!(word("'runNamespaces={perf}'` (Helm 3.14)"), "runNamespaces={perf}");
    assert_eq!(word("dashboard.enabled=true\n```"), "dashboard.enabled=true");
    assert!(render::with_set("dashbord.enabled=true").is_err());
}
