//! What the pages say holds: links lead somewhere, manifests are admitted, commands are run by a test, names are right.

mod docs {
    mod commands;
    mod manifests;
    pub mod tree;
}

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use docs::tree::{files, functions, repository};
use perfval_e2e::documentation::{Page, pages};

fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    let root = repository();
    let pages = pages(&root);
    let mut broken = Vec::new();
    for page in &pages {
        let folder = root.join(&page.path).parent().expect("a folder").to_owned();
        for link in page.links() {
            if link.target.contains("://") || link.target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let target = if path.is_empty() {
                Ok(root.join(&page.path))
            } else {
                fs::canonicalize(folder.join(path))
            };
            let reached = target.is_ok_and(|target| anchor.is_empty() || has_anchor(&pages, &root, &target, anchor));
            if !reached {
                broken.push(format!("{}:{}: {}", page.path, link.line, link.target));
            }
        }
    }
    assert_none("links that lead nowhere", &broken);
}

fn has_anchor(pages: &[Page], root: &Path, target: &Path, anchor: &str) -> bool {
    let page = pages.iter().find(|page| root.join(&page.path) == target);
    page.is_some_and(|page| page.anchors().iter().any(|known| known == anchor))
}

#[test]
fn every_page_is_in_the_book_and_in_the_first_page_of_its_folder() {
    let pages = pages(&repository());
    let links = |path: &str| -> BTreeSet<String> {
        let page = pages.iter().find(|page| page.path == path).expect("the page");
        page.links().into_iter().map(|link| link.target).collect()
    };
    let book: BTreeSet<_> = pages
        .iter()
        .filter_map(|page| page.path.strip_prefix("docs/"))
        .filter(|name| *name != "SUMMARY.md")
        .map(str::to_owned)
        .collect();
    assert_eq!(links("docs/SUMMARY.md"), book, "docs/SUMMARY.md");
    for page in &book {
        let (folder, name) = page.rsplit_once('/').unwrap_or(("", page));
        let first = format!("docs/{folder}/index.md").replace("//", "/");
        let linked: BTreeSet<_> = links(&first)
            .into_iter()
            .filter_map(|target| target.split('#').next().map(str::to_owned))
            .collect();
        assert!(
            name == "index.md" || linked.contains(name),
            "{first} has no link to {page}"
        );
    }
}

/// Most words of all pages of a class together, so that a new page replaces an old one.
const MOST_WORDS: [(&str, usize); 4] = [
    ("for users and contributors", 13_998),
    ("evidence", 3_279),
    ("generated reference", 7_647),
    ("generated evidence", 3_280),
];

#[test]
fn the_pages_of_each_class_stay_short() {
    let pages = pages(&repository());
    for (class, most) in MOST_WORDS {
        let mut words: Vec<(usize, &str)> = pages
            .iter()
            .filter(|page| class_of(page) == class)
            .map(|page| (count_words(page.text()), page.path.as_str()))
            .collect();
        words.sort_unstable();
        let all: usize = words.iter().map(|(words, _)| words).sum();
        println!("{class}: {all} words");
        assert!(
            all <= most,
            "pages {class} have {all} words, at most {most} are allowed; shorten one of {words:#?}"
        );
    }
}

fn class_of(page: &Page) -> &'static str {
    let is_evidence = page.path.starts_with("docs/evidence/");
    match (page.text().starts_with("<!-- Generated"), is_evidence) {
        (true, true) => "generated evidence",
        (true, false) => "generated reference",
        (false, true) => "evidence",
        (false, false) => "for users and contributors",
    }
}

/// Words with a letter or a digit, so that the lines of a table do not count.
fn count_words(text: &str) -> usize {
    let words = text.split_whitespace();
    words.filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn lines_of_a_table_are_no_words() {
    assert_eq!(count_words("| a | 95 % of `b` |\n|---|---|\n* one–two …"), 5);
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let root = repository();
    let tests = functions(&root);
    let mut missing = Vec::new();
    for page in pages(&root) {
        // A name of four words and more: nothing else in a page looks so, but a metric.
        let quoted = page.text().split('`').skip(1).step_by(2);
        let names = quoted.filter(|word| {
            word.matches('_').count() >= 3 && is_snake_case(word) && !word.starts_with("perfvalidation_")
        });
        missing.extend(
            names
                .filter(|name| !tests.contains(*name))
                .map(|name| format!("{}: {name}", page.path)),
        );
    }
    assert_none("tests that do not exist", &missing);
}

fn is_snake_case(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Every name of an image of ours, in pages, manifests and recipes of images.
#[test]
fn our_images_are_named_alike_everywhere() {
    let root = repository();
    let version = env!("CARGO_PKG_VERSION");
    let of_manifests = [
        format!("perfvalidation-operator:v{version}"),
        "aiperf:0.13.0".to_owned(),
    ];
    // Pages name the release to which a version in development leads.
    let release = format!("perfvalidation-operator:v{}", version.trim_end_matches("-dev"));
    let known: BTreeSet<_> = of_manifests.iter().cloned().chain([release]).collect();
    let mut found = BTreeSet::new();
    for file in files(&root, &["md", "yaml", "Dockerfile"]) {
        let text = fs::read_to_string(&file).expect("a text");
        for rest in text.split("ghcr.io/perfvalidation/").skip(1) {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || ":.-_".contains(c)))
                .unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('.');
            assert!(
                !name.contains(':') || known.contains(name),
                "{}: {name}",
                file.display()
            );
            found.extend(known.get(name).cloned());
        }
    }
    assert_eq!(found, known);
    let list = fs::read_to_string(root.join("deploy/images/aiperf-0.13.0.txt")).expect("AIPerf's packages");
    assert!(
        list.lines().any(|line| line.starts_with("aiperf==0.13.0 ")),
        "the list is of another version"
    );
    let kustomization = fs::read_to_string(root.join("config/default/kustomization.yaml")).expect("config/default");
    for name in &of_manifests {
        let (name, tag) = name.split_once(':').expect("a tag");
        assert!(
            kustomization.contains(&format!("newName: ghcr.io/perfvalidation/{name}\n    newTag: {tag}\n")),
            "{name}"
        );
    }
}

/// What is tested is what is shipped: the compiler of the checks, the Python that the lab measures with.
#[test]
fn images_are_built_with_the_versions_that_the_tests_use() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).expect("a text");
    let quoted = |path: &str, before: &str| {
        let text = read(path);
        let (_, rest) = text.split_once(before).expect("the version");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let rust = quoted("rust-toolchain.toml", "channel = \"");
    let dockerfile = read("deploy/images/operator.Dockerfile");
    assert!(dockerfile.contains(&format!("FROM rust:{rust}-")), "{rust}");
    assert!(dockerfile.contains(&format!("RUSTUP_TOOLCHAIN={rust} ")), "{rust}");
    let python = quoted("tests/lab/src/images/dynamo.rs", "const PYTHON: &str = \"");
    let bases = read("deploy/images/aiperf.Dockerfile");
    let bases: Vec<_> = bases.lines().filter(|line| line.starts_with("FROM ")).collect();
    assert_eq!(bases.len(), 2);
    for base in bases {
        assert!(
            base.starts_with(&format!("FROM python:{python}.")) && base.contains("@sha256:"),
            "{base}"
        );
    }
}

/// People copy a sample and a line of a page into one file. Evidence has the versions that it was measured with.
#[test]
fn samples_and_pages_name_one_version_of_dynamos_image() {
    let root = repository();
    let mut found = BTreeSet::new();
    for file in files(&root, &["md", "yaml"]) {
        let path = file.strip_prefix(&root).expect("a file of the repository");
        let of_users = ["docs", "config", "charts", "README.md"]
            .iter()
            .any(|folder| path.starts_with(folder));
        let recorded = path.starts_with("docs/evidence") || path == Path::new("docs/first-run.md");
        if !of_users || recorded {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a text");
        let named = text.split("ai-dynamo/vllm-runtime:").skip(1);
        found.extend(named.map(|rest| {
            let end = rest
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .unwrap_or(rest.len());
            rest[..end].trim_end_matches('.').to_owned()
        }));
    }
    assert_eq!(found.len(), 1, "{found:?}");
}

/// pip refuses to install a package that its constraints want in another version.
#[test]
fn a_package_of_both_lists_of_the_aiperf_image_has_one_version() {
    let pinned = |path: &str| -> BTreeMap<String, String> {
        let text = fs::read_to_string(repository().join(path)).expect("a list");
        let pins = text
            .lines()
            .filter(|line| !line.starts_with(['#', ' ']))
            .filter_map(|line| line.trim_end_matches([' ', '\\']).split_once("=="));
        pins.map(|(name, version)| (name.to_lowercase(), version.to_owned()))
            .collect()
    };
    let (installed, builders) = (
        pinned("deploy/images/aiperf-0.13.0.txt"),
        pinned("deploy/images/crick-build.txt"),
    );
    assert!(installed.len() > 50 && builders.len() > 4, "{builders:?}");
    for (name, version) in builders {
        if let Some(other) = installed.get(&name) {
            assert_eq!(&version, other, "{name}");
        }
    }
}
