//! Workers with several GPUs each.

use crate::play;
use crate::scenario::tensor_parallel;

#[test]
fn a_worker_that_needs_two_gpus_gets_both_and_passes() {
    play(&tensor_parallel(), |_| {}).expect("it passes");
}
