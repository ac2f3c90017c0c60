//! A hard link that stands in the workspace before the patch comes.
//!
//! The name inside gets the new bytes in a new file; the other name keeps the
//! old ones. The positive control is the edit itself.

use std::fs;

use crate::door::{applies, has_bytes, update};

#[test]
fn update_leaves_the_outside_name_alone() {
    applies(
        &|place| {
            fs::hard_link(place.out().join("secret"), place.ws().join("link")).expect("link");
        },
        &update("link"),
        &|place, context| {
            has_bytes(place, "out/secret", "original\n", context);
            has_bytes(place, "ws/link", "hacked\n", context);
        },
    );
}
