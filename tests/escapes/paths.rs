//! Paths that say outright that they lead out.

use sandpatch_tests::Place;

use crate::door::{Escape, add, delete, moved, update};

fn inside(place: &Place) {
    place.write("ws/sub/file", "original\n");
    place.write("ws/file", "original\n");
}

#[test]
fn update_by_dotdot() {
    Escape {
        setup: &inside,
        bad: &update("../out/secret"),
        path: "../out/secret",
        good: &update("sub/../file"),
    }
    .is_refused();
}

#[test]
fn add_by_dotdot_behind_a_directory() {
    Escape {
        setup: &inside,
        bad: &add("sub/../../out/planted"),
        path: "out/planted",
        good: &add("sub/../planted"),
    }
    .is_refused();
}

#[test]
fn delete_by_dotdot() {
    Escape {
        setup: &inside,
        bad: &delete("../out/secret"),
        path: "../out/secret",
        good: &delete("sub/file"),
    }
    .is_refused();
}

#[test]
fn move_by_dotdot() {
    Escape {
        setup: &inside,
        bad: &moved("file", "../out/stolen"),
        path: "../out/stolen",
        good: &moved("file", "sub/renamed"),
    }
    .is_refused();
}

#[test]
fn update_by_an_absolute_path() {
    Escape {
        setup: &inside,
        bad: &update("@TOP@/out/secret"),
        path: "/out/secret",
        good: &update("@TOP@/ws/file"),
    }
    .is_refused();
}

#[test]
fn add_by_an_absolute_path() {
    Escape {
        setup: &inside,
        bad: &add("@TOP@/out/planted"),
        path: "/out/planted",
        good: &add("@TOP@/ws/planted"),
    }
    .is_refused();
}

#[test]
fn add_to_a_sibling_whose_name_begins_like_the_workspace() {
    Escape {
        setup: &|place| place.mkdir("ws-evil"),
        bad: &add("@TOP@/ws-evil/planted"),
        path: "ws-evil/planted",
        good: &add("@TOP@/ws/planted"),
    }
    .is_refused();
}

#[test]
fn a_good_operation_does_not_happen_beside_a_bad_one() {
    let bad = [update("file"), update("../out/secret")].concat();
    let good = [update("file"), update("sub/file")].concat();
    Escape {
        setup: &inside,
        bad: &bad,
        path: "../out/secret",
        good: &good,
    }
    .is_refused();
}
