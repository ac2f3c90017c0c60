//! Where paths lead, and that none leads out; each test on both resolvers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::{fs, thread, time::Duration};

use safe_fs::{Entry, ErrorKind, LinkHop, Resolver, SpecialKind};
use support::*;

both_resolvers! {
    fn plain_paths(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("dir/./new");
        assert_eq!((at.name(), at.missing().len()), ("new".as_ref(), 0));
        assert_eq!(at.path(), tree.path("root/dir/new"));
        assert!(matches!(tree.roots.entry(&at).unwrap(), Entry::Missing));
        let file = tree.file(&tree.at("file"));
        assert_eq!(file.read().unwrap(), b"file");
        assert!(matches!(tree.roots.entry(&tree.at("dir")).unwrap(), Entry::Directory(_)));
    }

    fn aliases_have_one_key(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/alias", "dir");
        tree.link("root/absolute", tree.path("root/dir"));
        let key = tree.at("dir/x").key();
        for alias in ["./dir/x", "alias/x", "absolute/x", "dir/../dir/x", "dir/../alias/x"] {
            assert_eq!(tree.at(alias).key(), key, "{alias}");
        }
        assert_eq!(tree.at(tree.path("root/dir/x")).key(), key);
        assert_eq!(tree.at("gone/x").key(), tree.at("gone/y/../x").key());
        assert_ne!(tree.at("gone/x").key(), tree.at("gone/y").key());
    }

    fn what_names_no_file_is_refused(resolver) {
        let tree = Tree::new(resolver);
        for (path, kind) in [
            ("", ErrorKind::IsADirectory),
            (".", ErrorKind::IsADirectory),
            ("dir/..", ErrorKind::IsADirectory),
            ("/", ErrorKind::IsADirectory),
            ("file/", ErrorKind::TrailingSlash),
            ("new/", ErrorKind::TrailingSlash),
            ("a\0b", ErrorKind::InvalidName),
            ("file/x", ErrorKind::NotADirectory),
        ] {
            assert_eq!(tree.kind(path), kind, "{path:?}");
        }
        let long = "x".repeat(300);
        assert_eq!(tree.kind(format!("{long}/x")), ErrorKind::NameTooLong);
        let error = tree.roots.entry(&tree.at(&long)).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::NameTooLong);
        let bytes = tree.at(name_of(b"dir/\xff\xfe"));
        assert!(matches!(tree.roots.entry(&bytes).unwrap(), Entry::Missing));
    }

    fn outside_is_refused(resolver) {
        let tree = Tree::new(resolver);
        for path in ["../outside/secret", "../new", "../../../../etc/passwd", "/etc/passwd", "/new"] {
            assert_eq!(tree.kind(path), ErrorKind::Outside { via: None }, "{path}");
        }
        assert!(is_outside(&tree.kind(tree.path("outside/new"))));
        assert!(is_outside(&tree.kind(tree.path("outside/gone/new"))));
        assert!(is_outside(&tree.kind("../rootless/new")));
    }

    fn detours_that_end_inside_are_fine(resolver) {
        let tree = Tree::new(resolver);
        tree.at("../root/dir/x");
        tree.at("../other/x");
        tree.at("../outside/../root/x");
        tree.at(tree.path("other/gone/x"));
        tree.at("../gone/../root/x");
    }

    fn dot_dot_is_by_name_where_no_link_is(resolver) {
        let tree = Tree::new(resolver);
        for path in ["gone/../f", "gone/deep/../../f", "file/../f", "dir/gone/../../f"] {
            let at = tree.at(path);
            assert_eq!(at.key(), tree.at("f").key(), "{path}");
            assert_eq!(at.path(), tree.path("root/f"));
        }
        assert!(is_outside(&tree.kind("gone/../../outside/x")));
    }

    fn dot_dot_after_a_link_is_the_kernels(resolver) {
        let tree = Tree::new(resolver);
        fs::create_dir(tree.path("root/dir/deep")).unwrap();
        fs::create_dir(tree.path("outside/deep")).unwrap();
        tree.link("root/in", "dir/deep");
        tree.link("root/out", "../outside/deep");
        assert_eq!(tree.at("in/../x").key(), tree.at("dir/x").key());
        assert!(is_outside(&tree.kind("out/../x")));
        tree.link("root/dangling", "nowhere");
        assert_eq!(tree.kind("dangling/../x"), ErrorKind::NotFound);
    }

    fn missing_parents_are_listed(resolver) {
        let tree = Tree::new(resolver);
        let at = tree.at("dir/a/b/c");
        assert_eq!(at.missing(), ["a", "b"]);
        assert_eq!(at.dir().id(), tree.at("dir/x").dir().id());
        assert_eq!(at.path(), tree.path("root/dir/a/b/c"));
    }

    fn parent_links_that_lead_out_are_refused_and_named(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/relative", "../outside");
        tree.link("root/absolute", tree.path("outside"));
        tree.link("root/chain", "relative");
        tree.link("root/up", "..");
        for link in ["relative", "absolute", "chain"] {
            for path in [format!("{link}/new"), format!("{link}/secret"), format!("{link}/a/b")] {
                let ErrorKind::Outside { via: Some(hop) } = tree.kind(&path) else {
                    panic!("{path} has no hop");
                };
                assert!(hop.link.starts_with(tree.path("root")), "{hop:?}");
                assert!(hop.target == "../outside" || hop.target == tree.path("outside"));
            }
        }
        assert!(is_outside(&tree.kind("up/outside/new")));
    }

    fn links_inside_and_between_roots_work(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/there", tree.path("other"));
        tree.link("root/there-too", "../other");
        assert_eq!(tree.at("there/x").key(), tree.at("there-too/x").key());
        assert_eq!(tree.at("there/gone/x").missing(), ["gone"]);
    }

    fn dangling_parents_are_named(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/dangling", "nowhere/at/all");
        let error = tree.resolve("dangling/x").unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::NotFound);
        assert_eq!(error.path(), tree.path("root/dangling"));
    }

    fn loops_end(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/a", "b");
        tree.link("root/b", "a");
        assert_eq!(tree.kind("a/x"), ErrorKind::Loop);
        let error = tree.roots.follow(&tree.at("a")).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Loop);
    }

    fn magic_links_are_refused(resolver) {
        let tree = Tree::new(resolver);
        let inside = fs::File::open(tree.path("root/dir")).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&inside);
        tree.link("root/cwd", "/proc/self/cwd");
        for path in [format!("/proc/self/fd/{fd}/x"), "cwd/x".into(), "/proc/self/root/x".into()] {
            assert!(is_outside(&tree.kind(&path)), "{path}");
        }
    }

    fn final_links_are_left_alone_until_followed(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/link", "dir/target");
        tree.link("root/chain", tree.path("root/link"));
        tree.link("root/dir/back", "../file");
        let Entry::Link { target, pinned } = tree.roots.entry(&tree.at("link")).unwrap() else {
            panic!("no link");
        };
        assert_eq!((target.as_os_str(), pinned.size_bytes()), ("dir/target".as_ref(), 10));
        assert_eq!(pinned.read().unwrap_err().kind(), &ErrorKind::Loop);
        for name in ["link", "chain"] {
            let at = tree.roots.follow(&tree.at(name)).unwrap();
            assert_eq!(at.key(), tree.at("dir/target").key(), "{name}");
            assert_eq!(at.path(), tree.path("root/dir/target"));
        }
        let back = tree.roots.follow(&tree.at("dir/back")).unwrap();
        assert_eq!(tree.file(&back).read().unwrap(), b"file");
        let same = tree.roots.follow(&tree.at("file")).unwrap();
        assert_eq!(same.key(), tree.at("file").key());
    }

    fn following_out_is_refused_and_named(resolver) {
        let tree = Tree::new(resolver);
        tree.link("root/out", "../outside/secret");
        tree.link("root/chain", "out");
        tree.link("root/absolute", "/etc/passwd");
        tree.link("root/dangling", "../outside/new");
        tree.link("root/lost", "gone/new");
        tree.link("root/slash", "dir/");
        for name in ["out", "chain", "absolute", "dangling"] {
            let error = tree.roots.follow(&tree.at(name)).unwrap_err();
            assert!(is_outside(error.kind()), "{name}: {error}");
        }
        let error = tree.roots.follow(&tree.at("chain")).unwrap_err();
        let hop = LinkHop { link: tree.path("root/out"), target: "../outside/secret".into() };
        assert_eq!(error.kind(), &ErrorKind::Outside { via: Some(hop) });
        let error = tree.roots.follow(&tree.at("lost")).unwrap_err();
        assert_eq!((error.kind(), error.path()), (&ErrorKind::NotFound, &*tree.path("root/lost")));
        let error = tree.roots.follow(&tree.at("slash")).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::TrailingSlash);
    }

    fn special_files_are_told_without_being_opened(resolver) {
        let tree = Tree::new(resolver);
        make_fifo(&tree.path("root/fifo"));
        let listener = std::os::unix::net::UnixListener::bind(tree.path("root/socket")).unwrap();
        for (name, kind) in [("fifo", SpecialKind::Fifo), ("socket", SpecialKind::Socket)] {
            let (sender, receiver) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| sender.send(tree.roots.entry(&tree.at(name)).unwrap()).ok());
                match receiver.recv_timeout(Duration::from_secs(10)).expect("no hang") {
                    Entry::Special { kind: found, .. } => assert_eq!(found, kind),
                    other => panic!("{other:?}"),
                }
            });
        }
        assert_eq!(tree.kind("fifo/x"), ErrorKind::NotADirectory);
        assert!(fs::metadata(tree.path("root/fifo")).unwrap().file_type().is_fifo());
        drop(listener);
    }

    fn a_base_outside_the_roots_works(resolver) {
        let mut tree = Tree::new(resolver);
        tree.reopen(resolver, &["root"], "");
        assert_eq!(tree.roots.resolve(Path::new("root/new")).unwrap().missing().len(), 0);
        assert!(tree.roots.resolve(Path::new("outside/new")).is_err());
        assert!(tree.roots.resolve(Path::new("new")).is_err());
    }

    fn a_base_below_a_root_may_go_up(resolver) {
        let mut tree = Tree::new(resolver);
        tree.reopen(resolver, &["root"], "root/dir");
        let at = tree.roots.resolve(Path::new("../new")).unwrap();
        assert_eq!(current_path(&at), tree.path("root"));
        assert!(tree.roots.resolve(Path::new("../../new")).is_err());
        assert!(tree.roots.resolve(Path::new("new")).is_ok());
    }

    fn a_root_is_held_when_its_name_is_swapped(resolver) {
        let tree = Tree::new(resolver);
        fs::rename(tree.path("root"), tree.path("moved")).unwrap();
        tree.link("root", "outside");
        let at = tree.roots.resolve(Path::new("dir/new")).unwrap();
        assert_eq!(current_path(&at), tree.path("moved/dir"));
        let absolute = tree.roots.resolve(&tree.path("root/new")).unwrap_err();
        assert!(is_outside(absolute.kind()));
    }

    fn a_bind_mount_below_a_root_is_inside(resolver) {
        let tree = Tree::new(resolver);
        let mount = rustix::mount::mount_bind(tree.path("outside"), tree.path("root/dir"));
        if let Err(error) = mount {
            println!("skipped: no bind mount ({error})");
            return;
        }
        let plain = tree.roots.resolve(Path::new("dir/secret"));
        tree.link("root/alias", "dir");
        let alias = tree.roots.resolve(Path::new("alias/secret"));
        rustix::mount::unmount(tree.path("root/dir"), rustix::mount::UnmountFlags::DETACH).unwrap();
        assert_eq!(plain.unwrap().key(), alias.unwrap().key());
    }
}

#[test]
fn roots_must_exist() {
    let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let gone = temp.path().join("gone");
    for (base, root) in [(temp.path(), &*gone), (&*gone, temp.path())] {
        let opened = safe_fs::Roots::open(base, &[root.into()], &[], Resolver::detect());
        let error = opened.err().unwrap();
        assert_eq!((error.kind(), error.path()), (&ErrorKind::NotFound, &*gone));
        assert!(error.to_string().starts_with("open "), "{error}");
    }
}
