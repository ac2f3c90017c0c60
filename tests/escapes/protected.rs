//! Names that a patch must not touch although they lie in the workspace: what
//! is written there is later executed or believed by programs outside.

use sandpatch_tests::Place;

use crate::door::{Escape, add, delete, moved, update};

fn project(place: &Place) {
    for dir in [".git", "sub/.git", ".GIT", ".codex", ".agents", "plain"] {
        place.write(&format!("ws/{dir}/config"), "original\n");
    }
    place.mkdir("ws/.git/hooks");
    place.write("ws/file", "original\n");
}

fn refused(bad: &str, path: &str, good: &str) {
    Escape {
        setup: &project,
        bad,
        path,
        good,
    }
    .is_refused();
}

#[test]
fn update_git_config() {
    refused(
        &update(".git/config"),
        ".git/config",
        &update("plain/config"),
    );
}

#[test]
fn add_a_git_hook() {
    refused(&add(".git/hooks/x"), ".git/hooks/x", &add("plain/hooks/x"));
}

#[test]
fn delete_git_config() {
    refused(
        &delete(".git/config"),
        ".git/config",
        &delete("plain/config"),
    );
}

#[test]
fn move_into_git_hooks() {
    let bad = moved("file", ".git/hooks/post-commit");
    refused(&bad, ".git/hooks/post-commit", &moved("file", "plain/file"));
}

#[test]
fn add_to_codex() {
    refused(&add(".codex/x"), ".codex/x", &add("plain/x"));
}

#[test]
fn add_to_agents() {
    refused(&add(".agents/x"), ".agents/x", &add("plain/x"));
}

#[test]
fn update_the_config_of_a_nested_repository() {
    refused(
        &update("sub/.git/config"),
        "sub/.git/config",
        &update("plain/config"),
    );
}

#[test]
fn update_a_case_variant() {
    refused(
        &update(".GIT/config"),
        ".GIT/config",
        &update("plain/config"),
    );
}

#[test]
fn update_by_a_detour() {
    refused(
        &update("plain/../.git/config"),
        ".git/config",
        &update("plain/../file"),
    );
}

#[test]
fn add_a_repository_that_is_not_there_yet() {
    Escape {
        setup: &|place| place.mkdir("ws"),
        bad: &add(".git/config"),
        path: ".git/config",
        good: &add("git/config"),
    }
    .is_refused();
}

#[test]
fn what_a_git_file_leads_to_is_guarded() {
    Escape {
        setup: &|place| {
            place.write("ws/real/config", "original\n");
            place.write("ws/.git", "gitdir: real\n");
        },
        bad: &update("real/config"),
        path: "real/config",
        good: &add("really"),
    }
    .is_refused();
}
