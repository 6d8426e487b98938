//! Lists of objects. An object that this program cannot parse does not hide the others.

use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use perfval_api::text::bounded;
use perfval_run::secret::Redactor;

use crate::error::Error;
use crate::exit::UNREADABLE;
use crate::screen::Screen;
use crate::shell::with_flags;

/// Error about an object that cannot be parsed. `call` listed it.
pub fn unreadable(call: &str, invalid: &InvalidObject) -> Error {
    let name = invalid.metadata.name.as_deref().unwrap_or_default();
    let name = match &invalid.metadata.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    // A parser quotes what it does not expect.
    let why = bounded(&Redactor::default().redact(&invalid.error));
    Error::Undecodable {
        call: call.to_owned(),
        why: format!("{name}: {why}"),
    }
}

/// Notes each object that cannot be parsed. Returns the others, and the exit code. `flags` are those of the session.
pub fn keep_readable<K>(
    screen: &mut Screen,
    call: &str,
    flags: &str,
    listed: Vec<DeserializeGuard<K>>,
) -> (Vec<K>, u8) {
    let (mut objects, mut code) = (Vec::new(), 0);
    for DeserializeGuard(object) in listed {
        match object {
            Ok(object) => objects.push(object),
            Err(invalid) => {
                screen.note(&with_flags(&unreadable(call, &invalid).to_string(), flags));
                code = UNREADABLE;
            }
        }
    }
    (objects, code)
}
