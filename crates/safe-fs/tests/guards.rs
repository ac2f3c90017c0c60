//! Guarded names, in every spelling and by every way; on both resolvers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::fs;
use std::path::Path;

use safe_fs::{ErrorKind, Guard, GuardDepth, Resolver, Roots};
use support::*;

both_resolvers! {
    fn names_are_guarded_in_any_case(resolver) {
        let tree = Tree::new(resolver);
        fs::create_dir(tree.path("root/.GIT")).unwrap();
        for path in [
            ".git", ".GIT", ".gIt/hooks/new", ".git/config", ".GIT/config", "dir/.git",
            "dir/.git/x", "gone/.Git/x", "gone/.git", "../other/.git/x", "./dir/../.git/x",
        ] {
            assert_eq!(tree.kind(path), guarded(".git"), "{path}");
        }
        for path in [".gitignore", ".github/x", "git/x", "dir/.codex", "gone/.codex/x"] {
            tree.at(path);
        }
        for path in [".codex", ".CODEX/x", "../other/.codex/x"] {
            assert_eq!(tree.kind(path), guarded(".codex"), "{path}");
        }
        assert!(tree.resolve(tree.path("root/.git/config")).is_err());
    }

    fn leaving_a_guarded_name_is_fine(resolver) {
        let tree = Tree::new(resolver);
        assert_eq!(tree.at(".git/../file").key(), tree.at("file").key());
    }

    fn aliases_of_guarded_names_are_guarded(resolver) {
        let tree = Tree::new(resolver);
        fs::create_dir(tree.path("root/.git/hooks")).unwrap();
        fs::create_dir(tree.path("root/.GIT")).unwrap();
        tree.link("root/alias", ".git");
        tree.link("root/hooks", tree.path("root/.git/hooks"));
        tree.link("root/dir/chain", "../alias/hooks");
        tree.link("root/upper", ".GIT");
        for path in ["alias/x", "alias/gone/x", "hooks/x", "dir/chain/x", "upper/x"] {
            assert_eq!(tree.kind(path), guarded(".git"), "{path}");
        }
        tree.link("root/config", ".git/config");
        tree.link("root/name", ".git");
        for name in ["config", "name"] {
            let error = tree.roots.follow(&tree.at(name)).unwrap_err();
            assert_eq!(error.kind(), &guarded(".git"), "{name}");
        }
    }

    fn a_guarded_name_that_is_a_link_guards_its_target(resolver) {
        let tree = Tree::new(resolver);
        fs::create_dir(tree.path("root/real")).unwrap();
        tree.link("root/.codex", "real");
        tree.link("root/alias", "real");
        tree.write("other/pointer", "");
        tree.link("other/.git", "pointer");
        let mut tree = tree;
        tree.reopen(resolver, &["root", "other"], "root");
        for path in ["real/x", "alias/x", "real/gone/x", "real"] {
            assert_eq!(tree.kind(path), guarded(".codex"), "{path}");
        }
        assert_eq!(tree.kind("../other/pointer"), guarded(".git"));
        tree.at("../other/x");
        tree.at("dir/x");
        assert_eq!(tree.kind(".codex"), guarded(".codex"));
        assert_eq!(tree.kind(".codex/x"), guarded(".codex"));
    }

    fn a_bind_mount_of_a_guarded_directory_is_guarded(resolver) {
        let tree = Tree::new(resolver);
        let mount = rustix::mount::mount_bind(tree.path("root/.git"), tree.path("root/dir"));
        if let Err(error) = mount {
            println!("skipped: no bind mount ({error})");
            return;
        }
        tree.link("root/alias", "dir");
        let plain = tree.roots.resolve(Path::new("dir/x")).map(drop);
        let alias = tree.roots.resolve(Path::new("alias/x")).map(drop);
        rustix::mount::unmount(tree.path("root/dir"), rustix::mount::UnmountFlags::DETACH).unwrap();
        assert_eq!(alias.unwrap_err().kind(), &guarded(".git"));
        assert_eq!(plain.unwrap_err().kind(), &guarded(".git"));
    }

    fn a_root_inside_a_guarded_name_is_open(resolver) {
        let mut tree = Tree::new(resolver);
        tree.reopen(resolver, &["root", "root/.git"], "root");
        tree.at(".git/config");
        assert_eq!(tree.kind(".git"), guarded(".git"));
        assert_eq!(tree.kind(".git/.codex"), guarded(".codex"));
        tree.reopen(resolver, &["root", "root/dir"], "root");
        assert_eq!(tree.kind("dir/.codex"), guarded(".codex"));
    }

    fn a_base_inside_a_guarded_name_is_guarded(resolver) {
        let mut tree = Tree::new(resolver);
        tree.reopen(resolver, &["root"], "root/.git");
        let error = tree.roots.resolve(Path::new("config")).unwrap_err();
        assert_eq!(error.kind(), &guarded(".git"));
        assert!(tree.roots.resolve(Path::new("../file")).is_ok());
    }

    fn guards_are_looked_for_at_every_depth(resolver) {
        let tree = Tree::new(resolver);
        let deep = tree.path("root/a/b/.git/c/d");
        fs::create_dir_all(&deep).unwrap();
        tree.link("root/deep", &deep);
        assert_eq!(tree.kind("deep/x"), guarded(".git"));
        assert_eq!(tree.kind("a/b/.git/c/d/x"), guarded(".git"));
        tree.at("a/b/x");
    }

    fn several_guards_name_the_right_one(resolver) {
        let tree = Tree::new(resolver);
        let guard = |name: &str, depth| Guard { name: name.into(), depth };
        let guards = [guard("One", GuardDepth::Top), guard("two", GuardDepth::Any)];
        let root = tree.path("root");
        let roots = Roots::open(&root, std::slice::from_ref(&root), &guards, resolver).unwrap();
        let kind = |path: &str| roots.resolve(Path::new(path)).unwrap_err().kind().clone();
        assert_eq!(kind("one/x"), guarded("One"));
        assert_eq!(kind("dir/TWO"), guarded("two"));
        assert!(!matches!(roots.resolve(Path::new("dir/one")), Err(error)
            if matches!(error.kind(), ErrorKind::Guarded { .. })));
    }
}
