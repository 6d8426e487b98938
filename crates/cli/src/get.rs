//! `get`: the columns of the definition, without a second list of them.

use chrono::{DateTime, Utc};
use kube::ResourceExt as _;
use perfval_api::{PerfValidation, printer_cell};

use crate::args::{GetArgs, Output};
use crate::draw::age;
use crate::error::Error;
use crate::output;
use crate::screen::Screen;
use crate::session::Session;
use crate::table::Table;

/// Lists validations.
pub async fn run(screen: &mut Screen, session: &Session, args: &GetArgs) -> Result<u8, Error> {
    let (objects, code) = match &args.name {
        Some(name) => (vec![session.get(name).await?], 0),
        None => session.list(screen, args.all_namespaces).await?,
    };
    if let Some(text) = output::objects(&objects, args.name.is_none(), args.output)? {
        screen.print(&text)?;
    } else if !objects.is_empty() {
        let wide = args.output == Output::Wide;
        let table = table(&objects, wide, args.all_namespaces, screen.now())?;
        screen.print(&table.on(screen.columns()))?;
    } else if code == 0 {
        let of = if args.all_namespaces {
            "any namespace".to_owned()
        } else {
            format!("namespace {}", session.namespace)
        };
        screen.note(&format!("No PerfValidations in {of}."));
    }
    Ok(code)
}

/// One row for each object.
fn table(objects: &[PerfValidation], wide: bool, namespaces: bool, now: DateTime<Utc>) -> Result<Table, Error> {
    let crd = perfval_api::crd();
    let columns = crd
        .spec
        .versions
        .first()
        .and_then(|version| version.additional_printer_columns.as_ref());
    let shown: Vec<_> = columns
        .into_iter()
        .flatten()
        .filter(|column| wide || column.priority.unwrap_or_default() == 0)
        .collect();
    let own = |namespace: &str, name: &str| {
        let namespace = namespaces.then(|| namespace.to_owned());
        namespace.into_iter().chain([name.to_owned()]).collect::<Vec<_>>()
    };
    let head = shown.iter().map(|column| column.name.clone());
    let mut table = Table::new(own("NAMESPACE", "NAME").into_iter().chain(head));
    for object in objects {
        let value = serde_json::to_value(object).map_err(|error| Error::Render(error.to_string()))?;
        let cells = shown.iter().map(
            |column| match (printer_cell(&value, &column.json_path), &*column.type_) {
                (text, "date") => DateTime::parse_from_rfc3339(&text).map_or(text, |then| age(now - then.to_utc())),
                (text, _) => text,
            },
        );
        let own = own(&object.namespace().unwrap_or_default(), &object.name_any());
        table.row(own.into_iter().chain(cells));
    }
    Ok(table)
}
