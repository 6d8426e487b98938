//! Commands of README and of the pages on installation and the first run, as they stand there.

use std::fs;
use std::path::Path;

use perfval_e2e::documentation;

use crate::Outcome;

/// What the pages call their validation, and what the sample calls its own.
const NAMES: (&str, &str) = ("h100-baseline", "demo");

/// Everything that is typed. A page that lacks a part of it is an error before anything is installed.
#[derive(Debug)]
pub struct Pages {
    /// README: a release, without a clone.
    pub release: FirstPage,
    /// Install: the chart of a clone.
    pub install: Vec<String>,
    /// First run: wait for the verdict.
    pub wait: String,
    /// First run: see why.
    pub describe: String,
    /// First run: run again.
    pub rerun: String,
    /// First run: read the verdict and its message.
    pub wide: String,
    /// Install: the dashboard.
    pub dashboard: Vec<String>,
    /// Install: what Prometheus scrapes.
    pub scrape_configs: String,
    /// Install: everything goes.
    pub remove: Vec<String>,
    /// Install: a namespace in which runs are allowed.
    pub allow: Vec<String>,
    /// Upgrade: a folder of a clone, which also installs.
    pub apply: Vec<String>,
    /// Install: and that goes.
    pub remove_applied: Vec<String>,
}

/// README's blocks that need no clone, in their order.
#[derive(Debug)]
pub struct FirstPage {
    /// The chart.
    pub helm: Vec<String>,
    /// All manifests in one file.
    pub kubectl: Vec<String>,
    /// A namespace in which runs are allowed.
    pub allow: Vec<String>,
    /// The plug-in, and what it finds missing.
    pub plug_in: Vec<String>,
    /// The first run.
    pub run: Vec<String>,
}

impl Pages {
    /// Reads them, from the repository's root.
    pub fn read(root: &Path) -> Outcome<Self> {
        let readme = Page::read(root, "README.md")?;
        let install = Page::read(root, "docs/install.md")?;
        let upgrade = Page::read(root, "docs/upgrade.md")?;
        let first_run = Page::read(root, "docs/first-run.md")?;
        let free = install.block("delete perfvalidationpolicies")?;
        Ok(Self {
            release: FirstPage {
                helm: readme.block("helm upgrade --install")?,
                kubectl: readme.block("/install.yaml")?,
                allow: readme.block("create rolebinding")?,
                plug_in: readme.block("kubectl perfval doctor")?,
                run: readme.block("minimal.yaml")?,
            },
            install: install.block("helm install")?,
            wait: first_run.command("kubectl wait")?,
            describe: first_run.command("kubectl describe")?,
            rerun: first_run.command("perfvalidation.dev/rerun")?,
            wide: first_run.command("-o wide")?,
            dashboard: install.block("dashboard.enabled=true")?,
            scrape_configs: install.find("yaml", "scrape_configs")?.text,
            remove: [free.clone(), install.block("helm uninstall")?].concat(),
            allow: install.block("create rolebinding")?,
            apply: upgrade.block("apply --server-side -k config/default")?,
            remove_applied: [free, install.block("delete -k config/default")?].concat(),
        })
    }
}

struct Page(documentation::Page);

impl Page {
    fn read(root: &Path, path: &str) -> Outcome<Self> {
        let text = fs::read_to_string(root.join(path))?;
        Ok(Self(documentation::Page::new(path, &text)))
    }

    /// The commands of the first shell block with these words.
    fn block(&self, words: &str) -> Outcome<Vec<String>> {
        Ok(self.find("sh", words)?.commands())
    }

    /// The first command in a line of text or a table that has these words, for the sample.
    fn command(&self, words: &str) -> Outcome<String> {
        let quoted = self
            .0
            .text()
            .lines()
            .flat_map(|line| line.split('`').skip(1).step_by(2));
        let mut commands = quoted.filter(|quoted| quoted.starts_with("kubectl "));
        let found = commands.find(|command| command.contains(words));
        found
            .map(|command| command.replace(NAMES.0, NAMES.1))
            .ok_or_else(|| self.lacks(words))
    }

    fn find(&self, language: &str, words: &str) -> Outcome<documentation::Block> {
        let mut blocks = self.0.blocks().into_iter();
        let found = blocks.find(|block| block.language == language && block.text.contains(words));
        found.ok_or_else(|| self.lacks(words))
    }

    fn lacks(&self, words: &str) -> Box<dyn std::error::Error> {
        format!("{} has no `{words}`", self.0.path).into()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Page, Pages, documentation};

    #[test]
    fn the_pages_have_every_step() {
        let pages = Pages::read(Path::new("../..")).expect("every command");
        assert!(pages.rerun.contains(" demo "), "{}", pages.rerun);
        assert_eq!(pages.allow.len(), 2, "{:?}", pages.allow);
        assert_eq!(pages.allow, pages.release.allow);
    }

    #[test]
    fn commands_are_found_in_blocks_and_in_tables() {
        let text = "\
```sh
helm install a
```

```sh
helm install b \\
  --wait # until it is ready
kubectl get pods
```

| to | do |
|---|---|
| wait | `spec` and `kubectl wait x` |
";
        let page = Page(documentation::Page::new("page.md", text));
        let block = page.block("install b").expect("it is there");
        assert_eq!(block, ["helm install b    --wait", "kubectl get pods"]);
        assert_eq!(page.command("wait").expect("it is there"), "kubectl wait x");
        assert!(page.block("uninstall").is_err());
    }
}
