//! What parsers promise of any input: never a panic, never a number that cannot be, never more work than the input is worth.
//!
//! Each target is one function over bytes. `just fuzz-coverage` lets libFuzzer make up the bytes; what reached something
//! new is kept under `corpus/`, and `just check` replays it.

mod export;
mod exposition;
mod frame;
mod log;
mod quantity;
mod saved;
mod trial;

/// A parser and its promises.
pub struct Target {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// Feeds it one input; whether anything of it was understood.
    ///
    /// Panics if a promise is broken.
    pub run: fn(&[u8]) -> bool,
}

/// Every target.
pub const TARGETS: [Target; 7] = [
    Target {
        name: "export",
        run: export::run,
    },
    Target {
        name: "frame",
        run: frame::run,
    },
    Target {
        name: "exposition",
        run: exposition::run,
    },
    Target {
        name: "quantity",
        run: quantity::run,
    },
    Target {
        name: "saved",
        run: saved::run,
    },
    Target {
        name: "log",
        run: log::run,
    },
    Target {
        name: "trial",
        run: trial::run,
    },
];
