//! The objects a run creates, one file a kind.
