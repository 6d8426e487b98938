//! The commands of a page, as they stand there.

use std::fs;

use perfval_e2e::documentation;

use crate::Outcome;

/// A page of the documentation.
pub struct Page {
    path: String,
    text: String,
}

impl Page {
    /// Reads one, by its path from the repository's root.
    pub fn read(path: &str) -> Outcome<Self> {
        Ok(Self {
            path: path.to_owned(),
            text: fs::read_to_string(path)?,
        })
    }

    /// The commands of the first shell block with these words.
    pub fn block(&self, words: &str) -> Outcome<Vec<String>> {
        let block = self.find("sh", words)?;
        Ok(block.commands())
    }

    /// The first YAML block with these words.
    pub fn yaml(&self, words: &str) -> Outcome<String> {
        Ok(self.find("yaml", words)?.text)
    }

    /// The first command in a line of text or a table that has these words.
    pub fn command(&self, words: &str) -> Outcome<String> {
        let quoted = self.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let mut commands = quoted.filter(|quoted| quoted.starts_with("kubectl "));
        let found = commands.find(|command| command.contains(words));
        found.map(str::to_owned).ok_or_else(|| self.lacks(words))
    }

    fn find(&self, language: &str, words: &str) -> Outcome<documentation::Block> {
        let page = documentation::Page::new(&self.path, &self.text);
        let mut blocks = page.blocks().into_iter();
        let found = blocks.find(|block| block.language == language && block.text.contains(words));
        found.ok_or_else(|| self.lacks(words))
    }

    fn lacks(&self, words: &str) -> Box<dyn std::error::Error> {
        format!("{} says nothing of `{words}`", self.path).into()
    }
}

#[cfg(test)]
mod tests {
    use super::Page;

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
        let page = Page {
            path: "page.md".into(),
            text: text.into(),
        };
        assert_eq!(
            page.block("install b").unwrap(),
            ["helm install b    --wait", "kubectl get pods"]
        );
        assert_eq!(page.command("wait").unwrap(), "kubectl wait x");
        assert!(page.block("uninstall").is_err());
    }
}
