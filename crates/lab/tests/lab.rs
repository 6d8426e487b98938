//! The lab itself, on the real thing: needs root and runs in sequence.
