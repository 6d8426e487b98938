//! The Markdown pages of the repository: their code blocks, links and headings.

use std::fs;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use walkdir::{DirEntry, WalkDir};

/// A Markdown file.
pub struct Page {
    /// Its path from the repository's root.
    pub path: String,
    text: String,
}

/// A fenced block of code.
pub struct Block {
    /// Where it begins.
    pub line: usize,
    /// The word behind the fence.
    pub language: String,
    /// What it holds.
    pub text: String,
    /// What the HTML comment before it says about its commands.
    pub mark: Option<Mark>,
}

/// Where the commands of a block are run, if not where all others are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `<!-- needs GPUs -->`: nowhere here.
    NeedsGpus,
    /// `<!-- runs in: NAME -->`: by a test or a recipe of this name.
    RunsIn(String),
}

/// A link.
pub struct Link {
    /// Where it stands.
    pub line: usize,
    /// Where it leads.
    pub target: String,
}

/// Every page below `root`, by path.
///
/// # Panics
/// If a file cannot be read.
pub fn pages(root: &Path) -> Vec<Page> {
    let ours = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !(name.starts_with('.') || ["target", "dist"].contains(&name.as_ref()))
    };
    let files = WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(ours);
    files
        .map(|entry| entry.expect("the repository can be listed").into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| Page {
            text: fs::read_to_string(&path).expect("a page"),
            path: path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned(),
        })
        .collect()
}

impl Page {
    /// A page of these words.
    pub fn new(path: &str, text: &str) -> Self {
        let (path, text) = (path.to_owned(), text.to_owned());
        Self { path, text }
    }

    /// Whether users read it: the README, `docs/`, and the READMEs of manifests and the chart.
    pub fn is_for_users(&self) -> bool {
        self.path == "README.md"
            || ["docs/", "config/", "charts/"]
                .iter()
                .any(|folder| self.path.starts_with(folder))
    }

    /// What it says.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its fenced blocks.
    pub fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut mark, mut open) = (Vec::new(), None, false);
        for (event, range) in self.events() {
            match event {
                Event::Html(html) => mark = Mark::of(&html).or(mark),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    open = true;
                    let language = info.split_whitespace().next().unwrap_or_default().to_owned();
                    let (line, text) = (self.line(range.start), String::new());
                    blocks.push(Block {
                        line,
                        language,
                        text,
                        mark: mark.take(),
                    });
                }
                Event::Text(text) if open => blocks
                    .last_mut()
                    .into_iter()
                    .for_each(|block| block.text.push_str(&text)),
                Event::End(TagEnd::CodeBlock) => open = false,
                Event::Start(Tag::HtmlBlock) | Event::End(_) => {}
                _ => mark = None,
            }
        }
        blocks
    }

    /// Its links.
    pub fn links(&self) -> Vec<Link> {
        let links = self.events().filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let (line, target) = (self.line(range.start), dest_url.into_string());
                Some(Link { line, target })
            }
            _ => None,
        });
        links.collect()
    }

    /// The anchors of its headings, as GitHub and mdBook make them.
    pub fn anchors(&self) -> Vec<String> {
        let (mut anchors, mut heading) = (Vec::new(), None);
        for (event, _) in self.events() {
            match (event, &mut heading) {
                (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
                (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
                (Event::End(TagEnd::Heading(_)), _) => anchors.extend(heading.take().map(|text| anchor(&text))),
                _ => {}
            }
        }
        anchors
    }

    fn events(&self) -> impl Iterator<Item = (Event<'_>, std::ops::Range<usize>)> {
        Parser::new_ext(&self.text, Options::ENABLE_TABLES).into_offset_iter()
    }

    fn line(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

impl Mark {
    fn of(html: &str) -> Option<Self> {
        let comment = html.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
        match comment.strip_prefix("runs in:") {
            Some(name) => Some(Self::RunsIn(name.trim().to_owned())),
            None => (comment == "needs GPUs").then_some(Self::NeedsGpus),
        }
    }
}

impl Block {
    /// Its commands: one per line, continued lines joined, comments left out.
    pub fn commands(&self) -> Vec<String> {
        let joined = self.text.replace("\\\n", " ");
        let lines = joined
            .lines()
            .map(|line| line.split(" # ").next().unwrap_or_default().trim().to_owned());
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect()
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Why not 50,000 tokens/s

<!-- needs GPUs -->
```sh
kubectl get \\
  pods # all of them
# nothing
```

Words [there](other.md#here).

```yaml
a: 1
```

1. A step

   <!-- runs in: check -->
   ```sh
   just check
   ```
";

    #[test]
    fn blocks_have_their_marks_and_commands() {
        let blocks = Page::new("a.md", PAGE).blocks();
        let seen: Vec<_> = blocks
            .iter()
            .map(|block| (block.line, block.language.as_str(), block.mark.clone()))
            .collect();
        let runs = Mark::RunsIn("check".to_owned());
        assert_eq!(
            seen,
            [
                (4, "sh", Some(Mark::NeedsGpus)),
                (12, "yaml", None),
                (19, "sh", Some(runs))
            ]
        );
        assert_eq!(blocks[0].commands(), ["kubectl get    pods"]);
        assert_eq!(blocks[2].commands(), ["just check"]);
    }

    #[test]
    fn links_and_anchors_are_found() {
        let page = Page::new("a.md", PAGE);
        let links: Vec<_> = page.links().into_iter().map(|link| (link.line, link.target)).collect();
        assert_eq!(links, [(10, "other.md#here".to_owned())]);
        assert_eq!(page.anchors(), ["why-not-50000-tokenss"]);
    }

    #[test]
    fn a_mark_holds_for_the_next_block_only() {
        let text = "<!-- needs GPUs -->\n\nwords\n\n```sh\na\n```\n";
        assert_eq!(Page::new("a.md", text).blocks()[0].mark, None);
    }
}
