//! Each operation: what it does, what undo and finish leave, what it refuses.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use safe_fs::{
    Attributes, Entry, ErrorKind, Resolver, create, make_directories, remove, rename, replace,
    rewrite, stage,
};
use support::*;

const TREE: [&str; 3] = [".git", "dir", "file"];

both_resolvers! {
    fn create_makes_and_undo_removes(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("new");
        create(tree.stage(&at, "new"), &at).unwrap().undo().unwrap();
        assert_eq!(tree.names("root"), TREE);
        create(tree.stage(&at, "new"), &at).unwrap().finish().unwrap();
        assert_eq!(tree.content("root/new"), "new");
    }

    fn create_never_replaces(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/dangling", "../outside/new");
        for name in ["file", "dir", "dangling"] {
            let at = tree.at(name);
            let error = create(tree.stage(&at, "new"), &at).unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Exists, "{name}");
        }
        assert_eq!((tree.content("root/file"), tree.names("outside")), ("file".into(), vec!["secret".into()]));
        let at = tree.at("gone/new");
        let error = create(tree.stage(&at, "new"), &at).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::NotFound);
        assert_eq!(tree.names("root").len(), 4);
    }

    fn undo_of_create_leaves_another_file(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("new");
        let step = create(tree.stage(&at, "new"), &at).unwrap();
        fs::remove_file(tree.path("root/new")).unwrap();
        tree.write("root/new", "theirs");
        assert_eq!(step.undo().unwrap_err().kind(), &ErrorKind::Changed);
        assert_eq!(tree.content("root/new"), "theirs");
    }

    fn a_dropped_stage_leaves_nothing(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("new");
        drop(tree.stage(&at, "new"));
        assert_eq!(tree.names("root"), TREE);
    }

    fn replace_swaps_and_undo_swaps_back(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("file");
        let old = tree.file(&at);
        let step = replace(tree.stage(&at, "new"), &at, &old).unwrap();
        assert_eq!(tree.content("root/file"), "new");
        assert_eq!(tree.names("root").len(), TREE.len() + 1);
        step.undo().unwrap();
        assert_eq!((tree.content("root/file"), tree.names("root")), ("file".into(), TREE.map(String::from).to_vec()));
        assert_eq!(tree.file(&at).id(), old.id());
        let old = tree.file(&at);
        replace(tree.stage(&at, "new"), &at, &old).unwrap().finish().unwrap();
        assert_eq!((tree.content("root/file"), tree.names("root")), ("new".into(), TREE.map(String::from).to_vec()));
    }

    fn replace_refuses_what_changed(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("file");
        type Change = fn(&Tree);
        let changes: [(&str, Change); 5] = [
            ("written", |tree| tree.write("root/file", "longer")),
            ("same size", |tree| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                tree.write("root/file", "elif");
            }),
            ("mode", |tree| {
                fs::set_permissions(tree.path("root/file"), fs::Permissions::from_mode(0o600)).unwrap();
            }),
            ("other file", |tree| {
                tree.write("root/dir/file", "file");
                fs::rename(tree.path("root/dir/file"), tree.path("root/file")).unwrap();
            }),
            ("removed", |tree| fs::remove_file(tree.path("root/file")).unwrap()),
        ];
        for (what, change) in changes {
            tree.write("root/file", "file");
            let old = tree.file(&at);
            let staged = tree.stage(&at, "new");
            change(&tree);
            let error = replace(staged, &at, &old).unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Changed, "{what}");
            assert!(!tree.names("root").iter().any(|name| name.starts_with(".sandpatch")), "{what}");
        }
    }

    fn undo_of_replace_leaves_another_file(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("file");
        let step = replace(tree.stage(&at, "new"), &at, &tree.file(&at)).unwrap();
        tree.write("root/dir/theirs", "theirs");
        fs::rename(tree.path("root/dir/theirs"), tree.path("root/file")).unwrap();
        assert_eq!(step.undo().unwrap_err().kind(), &ErrorKind::Changed);
        assert_eq!(tree.content("root/file"), "theirs");
        let kept = tree.names("root").into_iter().find(|name| name.starts_with(".sandpatch"));
        assert_eq!(tree.content(&format!("root/{}", kept.unwrap())), "file");
    }

    fn replace_takes_a_link_as_a_name(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/link", "../outside/secret");
        let at = tree.at("link");
        let pin = || match tree.roots.entry(&at).unwrap() {
            Entry::Link { pinned, .. } => pinned,
            other => panic!("{other:?}"),
        };
        replace(tree.stage(&at, "new"), &at, &pin()).unwrap().undo().unwrap();
        assert_eq!(fs::read_link(tree.path("root/link")).unwrap().as_os_str(), "../outside/secret");
        replace(tree.stage(&at, "new"), &at, &pin()).unwrap().finish().unwrap();
        assert_eq!((tree.content("root/link"), tree.content("outside/secret")), ("new".into(), "secret".into()));
    }

    fn remove_takes_away_and_undo_puts_back(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/link", "../outside/secret");
        let at = tree.at("file");
        let old = tree.file(&at);
        let step = remove(&at, &old).unwrap();
        assert!(!tree.path("root/file").exists());
        step.undo().unwrap();
        assert_eq!(tree.content("root/file"), "file");
        remove(&at, &tree.file(&at)).unwrap().finish().unwrap();
        let link = tree.at("link");
        let Entry::Link { pinned, .. } = tree.roots.entry(&link).unwrap() else { panic!() };
        remove(&link, &pinned).unwrap().finish().unwrap();
        assert_eq!(tree.names("root"), [".git", "dir"]);
        assert_eq!(tree.content("outside/secret"), "secret");
    }

    fn remove_refuses_another_file(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("file");
        let old = tree.file(&at);
        tree.write("root/theirs", "file");
        fs::rename(tree.path("root/theirs"), tree.path("root/file")).unwrap();
        assert_eq!(remove(&at, &old).unwrap_err().kind(), &ErrorKind::Changed);
        assert_eq!(tree.names("root"), TREE);
    }

    fn undo_of_remove_leaves_a_new_file(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("file");
        let step = remove(&at, &tree.file(&at)).unwrap();
        tree.write("root/file", "theirs");
        assert_eq!(step.undo().unwrap_err().kind(), &ErrorKind::Exists);
        assert_eq!(tree.content("root/file"), "theirs");
    }

    fn rename_moves_to_free_places_only(resolver) {
        let tree = Tree::new(resolver);
        tree.write("root/taken", "taken");
        let from = tree.at("file");
        let old = tree.file(&from);
        let error = rename(&from, &tree.at("taken"), &old).unwrap_err();
        assert_eq!((error.kind(), error.path()), (&ErrorKind::Exists, &*tree.path("root/taken")));
        let to = tree.at("dir/moved");
        rename(&from, &to, &old).unwrap().undo().unwrap();
        assert_eq!(tree.content("root/file"), "file");
        rename(&from, &to, &old).unwrap().finish().unwrap();
        assert_eq!(tree.content("root/dir/moved"), "file");
        assert_eq!(tree.file(&to).id(), old.id());
        let error = rename(&from, &tree.at("other"), &old).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Changed);
    }

    fn two_files_swap_by_renames(resolver) {
        let tree = Tree::new(resolver);
        tree.write("root/b", "b");
        let (a, b, between) = (tree.at("file"), tree.at("b"), tree.at("between"));
        let (old_a, old_b) = (tree.file(&a), tree.file(&b));
        let steps = [
            rename(&a, &between, &old_a).unwrap(),
            rename(&b, &a, &old_b).unwrap(),
            rename(&between, &b, &old_a).unwrap(),
        ];
        assert_eq!((tree.content("root/file"), tree.content("root/b")), ("b".into(), "file".into()));
        for step in steps.into_iter().rev() {
            step.undo().unwrap();
        }
        assert_eq!((tree.content("root/file"), tree.content("root/b")), ("file".into(), "b".into()));
    }

    fn rename_over_mounts_is_cross_device(resolver) {
        let tree = Tree::new(resolver);
        if rustix::mount::mount_bind(tree.path("root/dir"), tree.path("root/dir")).is_err() {
            println!("skipped: no bind mount");
            return;
        }
        let from = tree.at("file");
        let moved = rename(&from, &tree.at("dir/moved"), &tree.file(&from));
        rustix::mount::unmount(tree.path("root/dir"), rustix::mount::UnmountFlags::DETACH).unwrap();
        assert_eq!(moved.unwrap_err().kind(), &ErrorKind::CrossDevice);
    }

    fn a_mount_point_is_busy_and_rewritten(resolver) {
        let tree = Tree::new(resolver);
        if rustix::mount::mount_bind(tree.path("root/file"), tree.path("root/file")).is_err() {
            println!("skipped: no bind mount");
            return;
        }
        let at = tree.at("file");
        let replaced = replace(tree.stage(&at, "new"), &at, &tree.file(&at)).map(drop);
        let removed = remove(&at, &tree.file(&at)).map(drop);
        let rewritten = rewrite(&at, &tree.file(&at), b"rewritten").map(drop);
        rustix::mount::unmount(tree.path("root/file"), rustix::mount::UnmountFlags::DETACH).unwrap();
        assert_eq!(replaced.unwrap_err().kind(), &ErrorKind::Busy);
        assert_eq!(removed.unwrap_err().kind(), &ErrorKind::Busy);
        rewritten.unwrap();
        assert_eq!((tree.content("root/file"), tree.names("root")), ("rewritten".into(), TREE.map(String::from).to_vec()));
    }

    fn rewrite_keeps_the_inode_and_undo_restores(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("file");
        for new in ["", "x", "same", "much longer than before"] {
            let old = tree.file(&at);
            let step = rewrite(&at, &old, new.as_bytes()).unwrap();
            assert_eq!(tree.content("root/file"), new);
            assert_eq!(tree.file(&at).id(), old.id());
            step.undo().unwrap();
            assert_eq!(tree.content("root/file"), "file");
            assert_eq!(tree.file(&at).mtime_ns(), old.mtime_ns());
        }
        rewrite(&at, &tree.file(&at), b"kept").unwrap().finish().unwrap();
        assert_eq!(tree.names("root"), TREE);
    }

    fn rewrite_refuses_links_changes_and_foreign_undo(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("file");
        let old = tree.file(&at);
        tree.write("root/file", "changed");
        assert_eq!(rewrite(&at, &old, b"x").unwrap_err().kind(), &ErrorKind::Changed);
        let step = rewrite(&at, &tree.file(&at), b"ours").unwrap();
        tree.write("root/file", "theirs, later");
        assert_eq!(step.undo().unwrap_err().kind(), &ErrorKind::Changed);
        fs::hard_link(tree.path("root/file"), tree.path("root/name")).unwrap();
        let error = rewrite(&at, &tree.file(&at), b"x").unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::HardLinked { links: 2 });
        assert_eq!(tree.content("root/file"), "theirs, later");
    }

    fn directories_are_made_and_unmade(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("a/b/c/new");
        let (ready, step) = make_directories(&at).unwrap();
        assert!(ready.missing().is_empty());
        assert_eq!(ready.path(), at.path());
        assert_eq!(current_path(&ready), tree.path("root/a/b/c"));
        step.undo().unwrap();
        assert_eq!(tree.names("root"), TREE);
        let (ready, step) = make_directories(&at).unwrap();
        let (_, second) = make_directories(&tree.at("a/b/d/new")).unwrap();
        create(tree.stage(&ready, "new"), &ready).unwrap().finish().unwrap();
        second.undo().unwrap();
        step.undo().unwrap();
        assert_eq!((tree.names("root/a"), tree.names("root/a/b")), (vec!["b".into()], vec!["c".into()]));
    }

    fn directories_are_not_made_through_planted_links(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("a/b/new");
        tree.link("root/a", "../outside");
        let error = make_directories(&at).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::NotADirectory);
        assert_eq!(error.path(), tree.path("root/a"));
        assert_eq!(tree.names("outside"), ["secret"]);
        fs::remove_file(tree.path("root/a")).unwrap();
        fs::create_dir(tree.path("root/a")).unwrap();
        tree.link("root/a/b", "../../outside");
        make_directories(&at).unwrap_err();
        assert_eq!(tree.names("root/a"), ["b"], "what others made stays");
    }

    fn reading_holds_the_inode(resolver) {
        let tree = Tree::new(resolver);
        let pinned = tree.file(&tree.at("file"));
        fs::remove_file(tree.path("root/file")).unwrap();
        tree.write("root/file", "another");
        assert_eq!(pinned.read().unwrap(), b"file");
    }

    fn the_lock_excludes(resolver) {
        let tree = Tree::new(resolver);
        let held = tree.roots.lock(0).unwrap();
        assert!(held.is_some());
        let start = std::time::Instant::now();
        assert!(tree.roots.lock(50).unwrap().is_none());
        assert!(start.elapsed().as_millis() >= 50);
        drop(held);
        assert!(tree.roots.lock(0).unwrap().is_some());
    }
}

#[test]
fn a_new_file_gets_the_umask() {
    let tree = Tree::new(Resolver::detect());
    let at = tree.at("new");
    fs::write(tree.path("root/model"), "").unwrap();
    create(tree.stage(&at, "x"), &at).unwrap().finish().unwrap();
    let mode = |name: &str| fs::metadata(tree.path(name)).unwrap().mode();
    assert_eq!(mode("root/new"), mode("root/model"));
}

#[test]
fn mode_and_attributes_are_kept() {
    let tree = Tree::new(Resolver::detect());
    for mode in [0o644, 0o755, 0o444, 0o600, 0o4755, 0o2750, 0o000] {
        let path = tree.path("root/file");
        let has_xattrs = set_xattr(&path, "user.note", b"kept");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let at = tree.at("file");
        let old = tree.file(&at);
        let staged = stage(at.dir(), b"new", Attributes::Like(&old)).unwrap();
        if is_root() {
            assert!(staged.lost().is_empty(), "{:?}", staged.lost());
        }
        replace(staged, &at, &old).unwrap().finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        if has_xattrs && is_root() {
            assert_eq!(xattr(&path, "user.note").unwrap(), b"kept");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
}

/// An ACL as the kernel stores it: version 2, then tag, permissions, id.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn acls_are_kept_and_not_inherited() {
    const NONE: u32 = u32::MAX;
    const ACCESS: &str = "system.posix_acl_access";
    let list = acl(&[
        (1, 6, NONE),
        (2, 6, 12345),
        (4, 4, NONE),
        (16, 6, NONE),
        (32, 0, NONE),
    ]);
    let tree = Tree::new(Resolver::detect());
    tree.write("root/dir/with", "old");
    tree.write("root/dir/without", "old");
    let default = "system.posix_acl_default";
    if !set_xattr(&tree.path("root/dir/with"), ACCESS, &list)
        || !set_xattr(&tree.path("root/dir"), default, &list)
    {
        println!("skipped: the file system has no ACLs");
        return;
    }
    for name in ["with", "without"] {
        let at = tree.at(format!("dir/{name}"));
        let before = fs::metadata(at.path()).unwrap().mode();
        let acl_before = xattr(at.path(), ACCESS);
        let old = tree.file(&at);
        let staged = stage(at.dir(), b"new", Attributes::Like(&old)).unwrap();
        assert!(staged.lost().is_empty());
        replace(staged, &at, &old).unwrap().finish().unwrap();
        assert_eq!(xattr(at.path(), ACCESS), acl_before, "{name}");
        assert_eq!(fs::metadata(at.path()).unwrap().mode(), before, "{name}");
    }
}

#[test]
fn the_owner_is_kept() {
    if !is_root() {
        println!("skipped: only root gives files away");
        return;
    }
    let tree = Tree::new(Resolver::detect());
    let path = tree.path("root/file");
    std::os::unix::fs::chown(&path, Some(12345), Some(23456)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    let at = tree.at("file");
    let old = tree.file(&at);
    let staged = stage(at.dir(), b"new", Attributes::Like(&old)).unwrap();
    assert!(staged.lost().is_empty());
    replace(staged, &at, &old).unwrap().finish().unwrap();
    let now = fs::metadata(&path).unwrap();
    assert_eq!(
        (now.uid(), now.gid(), now.mode() & 0o7777),
        (12345, 23456, 0o6755)
    );
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let tree = Tree::new(Resolver::detect());
    let options = c"size=64k,mode=0755";
    let mounted = rustix::mount::mount(
        "none",
        tree.path("root/dir"),
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        options,
    );
    if mounted.is_err() {
        println!("skipped: no tmpfs may be mounted");
        return;
    }
    let at = tree.at("dir/big");
    let big = vec![b'x'; 1 << 20];
    let staged = stage(at.dir(), &big, Attributes::New { mode: 0o644 }).map(drop);
    tree.write("root/dir/small", "small");
    let small = tree.at("dir/small");
    let rewritten = rewrite(&small, &tree.file(&small), &big).map(drop);
    let kept = tree.content("root/dir/small");
    let names = tree.names("root/dir");
    drop((at, small));
    rustix::mount::unmount(tree.path("root/dir"), rustix::mount::UnmountFlags::DETACH).unwrap();
    let error = staged.unwrap_err();
    assert_eq!(
        (error.kind(), error.errno()),
        (&ErrorKind::NoSpace, Some(28))
    );
    assert_eq!(rewritten.unwrap_err().kind(), &ErrorKind::NoSpace);
    assert_eq!((kept, names), ("small".into(), vec!["small".to_string()]));
}
