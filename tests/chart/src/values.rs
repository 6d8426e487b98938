//! The chart's values and their comments: `# -- text` before a key describes it.

use std::fmt::Write as _;

use serde_json::Value;

/// A value that has a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its keys, outermost first.
    pub path: Vec<String>,
    /// Text of the comment.
    pub text: String,
}

/// Every value with a comment, in the order of the file.
pub fn described(values: &str) -> Vec<Described> {
    let mut found = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut comment = None;
    for line in values.lines() {
        let word = line.trim_start();
        if let Some(text) = word.strip_prefix("# -- ") {
            comment = Some(text.to_owned());
            continue;
        }
        let Some((key, _)) = word.split_once(':').filter(|_| !word.starts_with(['#', '-'])) else {
            comment = None;
            continue;
        };
        path.truncate((line.len() - word.len()) / 2);
        path.push(key.to_owned());
        if let Some(text) = comment.take() {
            found.push(Described {
                path: path.clone(),
                text,
            });
        }
    }
    found
}

/// Paths of all values that hold no others.
pub fn leaves(values: &Value) -> Vec<Vec<String>> {
    let Some(fields) = values.as_object().filter(|fields| !fields.is_empty()) else {
        return vec![Vec::new()];
    };
    let below = fields.iter().flat_map(|(key, value)| {
        leaves(value).into_iter().map(move |mut path| {
            path.insert(0, key.clone());
            path
        })
    });
    below.collect()
}

/// The value at a path.
pub fn at<'a>(values: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(values, |value, key| value.get(key))
}

/// The values as a Markdown table.
///
/// # Errors
/// If the file is no YAML, or a comment stands before something that is no value.
pub fn table(text: &str) -> Result<String, String> {
    let values: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let mut table = String::from("| value | default | |\n|---|---|---|\n");
    for Described { path, text } in described(text) {
        let name = path.join(".");
        let default = at(&values, &path).ok_or_else(|| format!("values.yaml has no {name}"))?;
        let _ = writeln!(table, "| `{name}` | `{default}` | {text} |");
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &str =
        "# about all\n\na:\n  # -- one\n  b: 1\n  # no description\n  c: {}\n# -- the list\nd:\n  - e: 2\n";

    #[test]
    fn a_comment_describes_the_key_below_it() {
        let found = described(VALUES);
        let paths: Vec<_> = found
            .iter()
            .map(|value| (value.path.join("."), value.text.as_str()))
            .collect();
        assert_eq!(paths, [("a.b".to_owned(), "one"), ("d".to_owned(), "the list")]);
    }

    #[test]
    fn empty_maps_and_lists_are_leaves() {
        let values: Value = serde_saphyr::from_str(VALUES).unwrap();
        assert_eq!(leaves(&values), [vec!["a", "b"], vec!["a", "c"], vec!["d"]]);
    }

    #[test]
    fn the_table_shows_defaults_as_json() {
        let table = table(VALUES).unwrap();
        assert!(
            table.ends_with("| `a.b` | `1` | one |\n| `d` | `[{\"e\":2}]` | the list |\n"),
            "{table}"
        );
    }
}
