//! Random worlds on a real cluster: what users, faults and the operator's end do to a few validations, and the laws that hold
//! all the same. The in-memory counterpart, a thousand times as fast, is `crates/operator/tests/worlds`.

mod happening;
mod history;
pub mod laws;
mod play;
mod stage;
mod tally;

pub use happening::{Happening, Step, World};
pub use history::{Change, History};
pub use play::{Played, play};
pub use stage::Stage;
pub use tally::Tally;
