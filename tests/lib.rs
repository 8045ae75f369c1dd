//! Tests of the whole: see `house.rs` for the rules of the tree.
