//! Symbolic links that lead out: to files and directories, relative, absolute,
//! dangling and chained. Links that stay inside must go on working.

use sandpatch_tests::Place;

use crate::door::{Escape, add, applies, delete, has_bytes, moved, update};

/// A file, a link to it and a linked directory, all inside.
fn inside(place: &Place) {
    place.write("ws/real/file", "original\n");
    place.link("ws/good", "real/file");
    place.link("ws/gooddir", "real");
}

#[test]
fn update_through_a_relative_link() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/link", "../out/secret");
        },
        bad: &update("link"),
        path: "link",
        good: &update("good"),
    }
    .is_refused();
}

#[test]
fn update_through_an_absolute_link() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/link", place.out().join("secret"));
            place.link("ws/absolute", place.ws().join("real/file"));
        },
        bad: &update("link"),
        path: "link",
        good: &update("absolute"),
    }
    .is_refused();
}

#[test]
fn update_through_a_chain_of_links() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/a", "b");
            place.link("ws/b", "c");
            place.link("ws/c", "../out/secret");
            place.link("ws/x", "good");
        },
        bad: &update("a"),
        path: "a",
        good: &update("x"),
    }
    .is_refused();
}

#[test]
fn add_through_a_dangling_link() {
    Escape {
        setup: &|place| place.link("ws/link", "../out/planted"),
        bad: &add("link"),
        path: "link",
        good: &add("plain"),
    }
    .is_refused();
}

#[test]
fn update_below_a_linked_directory() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/dir", "../out");
        },
        bad: &update("dir/secret"),
        path: "dir/secret",
        good: &update("gooddir/file"),
    }
    .is_refused();
}

#[test]
fn add_below_a_directory_linked_absolutely() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/dir", place.out());
        },
        bad: &add("dir/planted"),
        path: "dir/planted",
        good: &add("gooddir/new"),
    }
    .is_refused();
}

#[test]
fn add_below_a_dangling_directory_link() {
    Escape {
        setup: &|place| place.link("ws/dir", "../out/missing"),
        bad: &add("dir/planted"),
        path: "dir",
        good: &add("newdir/new"),
    }
    .does_not_apply();
}

#[test]
fn delete_below_a_chain_of_linked_directories() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/one", "two");
            place.link("ws/two", "../out");
        },
        bad: &delete("one/secret"),
        path: "one/secret",
        good: &delete("gooddir/file"),
    }
    .is_refused();
}

#[test]
fn move_below_a_linked_directory() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/dir", "../out");
        },
        bad: &moved("real/file", "dir/stolen"),
        path: "dir/stolen",
        good: &moved("real/file", "real/renamed"),
    }
    .is_refused();
}

#[test]
fn move_from_below_a_linked_directory() {
    Escape {
        setup: &|place| {
            inside(place);
            place.link("ws/dir", "../out");
        },
        bad: &moved("dir/secret", "taken"),
        path: "dir/secret",
        good: &moved("gooddir/file", "taken"),
    }
    .is_refused();
}

#[test]
fn dotdot_behind_a_link_means_what_the_kernel_means() {
    Escape {
        setup: &|place| {
            place.mkdir("out/deep");
            place.link("ws/dir", "../out/deep");
            place.write("ws/sub/file", "original\n");
        },
        bad: &update("dir/../secret"),
        path: "dir/../secret",
        good: &update("sub/../sub/file"),
    }
    .is_refused();
}

#[test]
fn delete_acts_on_the_link_itself() {
    applies(
        &|place| place.link("ws/link", "../out/secret"),
        &delete("link"),
        &|place, context| {
            assert!(!place.ws().join("link").is_symlink(), "{context}: the link");
            has_bytes(place, "out/secret", "original\n", context);
        },
    );
}
