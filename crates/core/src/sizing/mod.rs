//! Which node, and which of its GPUs, are free for a run.
