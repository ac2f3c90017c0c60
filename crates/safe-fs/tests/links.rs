//! Hard links: finding the other names, and moving them to the new inode.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;

use safe_fs::{Complete, LocationKey, Resolver, relink, replace};
use support::*;

const BUDGET: usize = 10_000;

fn link(tree: &Tree, from: &str, to: &str) {
    fs::hard_link(tree.path(from), tree.path(to)).unwrap();
}

both_resolvers! {
    fn all_names_inside_are_found(resolver) {
        let tree = Tree::new(resolver);
        fs::create_dir_all(tree.path("root/dir/deep")).unwrap();
        for name in ["root/dir/deep/one", "other/two", "root/.git/three", "outside/four"] {
            link(&tree, "root/file", name);
        }
        tree.link("root/loop", ".");
        let file = tree.file(&tree.at("file"));
        assert_eq!(file.nlink(), 5);
        let search = tree.roots.find_links(file.id(), file.nlink(), BUDGET).unwrap();
        assert_eq!(search.complete, Complete::Yes);
        let keys = |mut keys: Vec<LocationKey>| {
            keys.sort();
            keys
        };
        let found = keys(search.found.iter().map(safe_fs::Location::key).collect());
        let wanted = ["file", "dir/deep/one", "../other/two"].map(|path| tree.at(path).key());
        assert_eq!(found, keys(wanted.to_vec()));
        assert!(search.found.iter().any(|at| at.path() == tree.path("root/dir/deep/one")));
    }

    fn the_search_stops_when_it_has_enough_or_may_not_go_on(resolver) {
        let tree = Tree::new(resolver);
        link(&tree, "root/file", "root/dir/name");
        for index in 0..50 {
            tree.write(&format!("root/dir/{index}"), "");
        }
        let id = tree.file(&tree.at("file")).id();
        let search = |wanted, budget| tree.roots.find_links(id, wanted, budget).unwrap();
        assert_eq!(search(1, BUDGET).found.len(), 1);
        assert_eq!(search(2, BUDGET).found.len(), 2);
        assert_eq!(search(3, 20).complete, Complete::BudgetHit);
        assert_eq!(search(3, BUDGET).complete, Complete::Yes);
    }

    fn nested_roots_are_searched_once(resolver) {
        let mut tree = Tree::new(resolver);
        link(&tree, "root/file", "root/dir/name");
        tree.reopen(resolver, &["root", "root/dir"], "root");
        let id = tree.file(&tree.at("file")).id();
        assert_eq!(tree.roots.find_links(id, 9, BUDGET).unwrap().found.len(), 2);
    }

    fn relinked_names_stay_together(resolver) {
        let tree = Tree::new(resolver);
        link(&tree, "root/file", "root/dir/name");
        link(&tree, "root/file", "other/name");
        let (at, name, far) = (tree.at("file"), tree.at("dir/name"), tree.at("../other/name"));
        let pins = || (tree.file(&at), tree.file(&name), tree.file(&far));
        let change = || {
            let (old, old_name, old_far) = pins();
            [
                replace(tree.stage(&at, "new"), &at, &old).unwrap(),
                relink(&at, &name, &old_name).unwrap(),
                relink(&at, &far, &old_far).unwrap(),
            ]
        };
        let before = fs::metadata(tree.path("root/file")).unwrap().ino();
        for step in change().into_iter().rev() {
            step.undo().unwrap();
        }
        let undone = fs::metadata(tree.path("root/dir/name")).unwrap();
        assert_eq!((undone.ino(), undone.nlink()), (before, 3));
        for step in change() {
            step.finish().unwrap();
        }
        let done = fs::metadata(tree.path("other/name")).unwrap();
        assert_eq!((tree.content("root/dir/name"), done.nlink()), ("new".into(), 3));
        assert_eq!(tree.names("root"), [".git", "dir", "file"]);
        assert_eq!((tree.names("root/dir"), tree.names("other")), (vec!["name".into()], vec!["name".into()]));
    }

    fn relink_refuses_a_name_that_changed(resolver) {
        let tree = Tree::new(resolver);
        link(&tree, "root/file", "root/name");
        let (at, name) = (tree.at("file"), tree.at("name"));
        let (old, old_name) = (tree.file(&at), tree.file(&name));
        let step = replace(tree.stage(&at, "new"), &at, &old).unwrap();
        fs::remove_file(tree.path("root/name")).unwrap();
        tree.write("root/name", "theirs");
        let error = relink(&at, &name, &old_name).unwrap_err();
        assert_eq!(error.kind(), &safe_fs::ErrorKind::Changed);
        step.finish().unwrap();
        assert_eq!(tree.content("root/name"), "theirs");
        assert_eq!(tree.names("root"), [".git", "dir", "file", "name"]);
    }
}
