//! The boundary around the pass of one object: a panic in it does not end the process, in which the passes of all others run.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use crate::blocked::redacted;

/// Message of a panic, without what looks like a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panicked(pub(crate) String);

/// Runs something to its end or to its panic. Locks that it held are taken over by the next as they are.
pub(crate) async fn catch<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|said| Panicked(redacted(&words(&*said), None)))
}

fn words(said: &(dyn Any + Send)) -> String {
    let text = said.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| said.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        assert_eq!(catch(async { 7 }).await, Ok(7));
        let number = 8;
        for (said, work) in [
            ("fixed", catch(async { panic!("fixed") }).await),
            ("8 of them", catch(async { panic!("{number} of them") }).await),
        ] {
            let answer: Result<(), Panicked> = work;
            assert_eq!(answer, Err(Panicked(said.to_owned())));
        }
    }
}
