//! What can be changed from inside, and what cannot. Each refusal stands beside
//! the same act where it is allowed, so that a broken test cannot pass.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Stdio;

use support::{Place, as_each, text};

#[test]
fn roots_are_writable_and_nothing_else_is() {
    as_each(|place| {
        let output = place.sh("echo in > inside; echo out > $OUT/secret; echo new > $OUT/new");
        assert_eq!(fs::read_to_string(place.ws.join("inside")).unwrap(), "in\n");
        assert_eq!(place.secret(), "original");
        assert!(!place.out.join("new").exists());
        assert!(
            text(&output.stderr).contains("Read-only file system"),
            "{output:?}"
        );
    });
}

#[test]
fn links_lead_nowhere() {
    as_each(|place| {
        symlink(place.out.join("secret"), place.ws.join("file")).unwrap();
        symlink(&place.out, place.ws.join("dir")).unwrap();
        place.sh(
            "echo hacked > file; echo hacked > dir/new; ln $OUT/secret hard && echo hacked > hard;
             echo hacked > ../out/secret; mv inner $OUT/; chmod 777 $OUT/secret; touch done",
        );
        assert!(place.ws.join("done").exists(), "the control was written");
        assert_eq!(place.secret(), "original");
        assert_eq!(fs::read_dir(&place.out).unwrap().count(), 1);
        assert_eq!(
            fs::metadata(place.out.join("secret")).unwrap().mode() & 0o777,
            0o644
        );
    });
}

#[test]
fn fifos_outside_take_nothing() {
    as_each(|place| {
        for dir in [&place.ws, &place.out] {
            let pipe = dir.join("pipe");
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
            place.give(&pipe);
        }
        let script = |at: &str| format!("exec 3<>{at}/pipe && echo through >&3 && head -n1 <&3");
        assert_eq!(text(&place.sh(&script("$WS")).stdout), "through");
        let refused = place.sh(&script("$OUT"));
        assert!(
            text(&refused.stderr).contains("Permission denied"),
            "{refused:?}"
        );
    });
}

#[test]
fn a_descriptor_gains_no_rights_by_name() {
    as_each(|place| {
        let script = "echo hacked > /proc/self/fd/0; echo hacked > /dev/stdin; cat";
        let secret = File::open(place.out.join("secret")).unwrap();
        let output = place
            .command(&["--", "/bin/sh", "-c", script])
            .stdin(secret)
            .output()
            .unwrap();
        assert_eq!(text(&output.stdout), "original", "reading goes on");
        assert_eq!(place.secret(), "original");

        let output = place.sh("{ echo ok > /dev/stdout; } | cat");
        assert_eq!(
            text(&output.stdout).lines().last(),
            Some("ok"),
            "a pipe may be opened again"
        );
        let output = place.sh("echo gone > /dev/null; exec 2>/dev/null; echo gone > /dev/stderr");
        assert!(output.status.success(), "{output:?}");
    });
}

#[test]
fn inherited_descriptors_are_closed() {
    as_each(|place| {
        let inner = "ls /proc/self/fd; echo x > /proc/self/fd/8/new";
        let outer = format!("exec 8<$OUT; exec \"$0\" \"$@\" -- /bin/sh -c '{inner}'");
        let launcher = place.command(&[]);
        let mut shell = std::process::Command::new("/bin/sh");
        shell
            .arg("-c")
            .arg(outer)
            .arg(launcher.get_program())
            .args(launcher.get_args());
        shell.current_dir(&place.ws).env("OUT", &place.out);
        let output = shell.output().unwrap();
        let open = text(&output.stdout);
        assert!(
            open.starts_with("0\n1\n2\n") && !open.contains('8'),
            "{output:?}"
        );
        assert!(!place.out.join("new").exists());
    });
}

#[test]
fn protected_directories_are_held() {
    as_each(|place| {
        for name in [".git", ".codex", ".agents"] {
            place.mkdir(&place.ws.join(name));
            place.write(&place.ws.join(name).join("config"), "original");
        }
        place.sh(
            "for n in .git .codex .agents; do echo hacked > $n/config; rm -rf $n; mv $n gone; done;
             mkdir free && echo ok > free/config",
        );
        assert!(
            place.ws.join("free/config").exists(),
            "the control was written"
        );
        for name in [".git", ".codex", ".agents"] {
            let content = fs::read_to_string(place.ws.join(name).join("config")).unwrap();
            assert_eq!(content, "original", "{name}");
        }
    });
}

#[test]
fn git_pointers_are_held_with_their_targets() {
    as_each(|place| {
        let git = place.ws.join("meta/deep/git");
        for dir in ["meta", "meta/deep", "meta/deep/git", "common"] {
            place.mkdir(&place.ws.join(dir));
        }
        place.write(&place.ws.join(".git"), "gitdir: meta/deep/git\n");
        place.write(&git.join("config"), "original");
        place.write(&git.join("commondir"), "../../../common\n");
        place.write(&place.ws.join("common/config"), "original");
        place.sh(
            "echo 'gitdir: evil' > .git; rm -f .git; mv .git g; mv meta m; mv meta/deep m;
             echo hacked > meta/deep/git/config; echo hacked > common/config; mv common c;
             echo ok > meta/free",
        );
        assert!(
            place.ws.join("meta/free").exists(),
            "an ancestor stays writable"
        );
        assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "original");
        assert_eq!(
            fs::read_to_string(place.ws.join("common/config")).unwrap(),
            "original"
        );
        let pointer = fs::read_to_string(place.ws.join(".git")).unwrap();
        assert_eq!(pointer, "gitdir: meta/deep/git\n");
    });
}

#[test]
fn links_at_protected_names_are_held_as_links() {
    as_each(|place| {
        place.mkdir(&place.ws.join("store"));
        place.write(&place.ws.join("store/config"), "original");
        symlink("store", place.ws.join("hop")).unwrap();
        symlink("hop", place.ws.join(".git")).unwrap();
        symlink("nowhere", place.ws.join(".codex")).unwrap();
        let output = place.sh(
            "cat .git/config; echo hacked > .git/config; for n in .git hop .codex; do
             rm -f $n; mv $n x; ln -sfn evil $n; done; mv store s; touch done",
        );
        assert_eq!(text(&output.stdout), "original", "the link works");
        assert!(place.ws.join("done").exists(), "the control was written");
        let target = |name: &str| fs::read_link(place.ws.join(name)).unwrap();
        assert_eq!(target(".git"), Path::new("hop"));
        assert_eq!(target("hop"), Path::new("store"));
        assert_eq!(target(".codex"), Path::new("nowhere"));
        assert_eq!(
            fs::read_to_string(place.ws.join("store/config")).unwrap(),
            "original"
        );
    });
}

#[test]
fn a_root_below_tmp_is_the_real_one_in_a_private_tmp() {
    as_each(|outer| {
        let place = Place::below(outer.identity, Path::new("/tmp"));
        let output =
            place.sh("echo in > inside; ls /tmp; pwd; touch /tmp/private && ls /tmp/private");
        let shown = text(&output.stdout);
        assert_eq!(shown.lines().count(), 3, "{output:?}");
        assert!(shown.contains(place.ws.to_str().unwrap()) && shown.ends_with("/tmp/private"));
        assert!(place.ws.join("inside").exists());
        assert!(!Path::new("/tmp/private").exists());
    });
}

#[test]
fn a_root_behind_a_link_inside_a_root_is_refused() {
    as_each(|place| {
        symlink(&place.out, place.ws.join("link")).unwrap();
        let link = place.ws.join("link");
        let output = place
            .command(&["--writable", link.to_str().unwrap(), "--", "/bin/true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(
            text(&output.stderr).contains("symbolic link inside"),
            "{output:?}"
        );
        let honest = place.out.to_str().unwrap();
        let output = place.command(&[
            "--writable",
            honest,
            "--",
            "/bin/sh",
            "-c",
            "echo ok > $OUT/new",
        ]);
        let mut output = output;
        assert!(output.status().unwrap().success());
        assert!(place.out.join("new").exists());
    });
}

#[test]
fn the_kernel_cannot_be_tuned() {
    as_each(|place| {
        let output = place.sh(
            "echo x > /proc/sys/kernel/core_pattern; echo 1 > /proc/self/oom_score_adj;
             cat /proc/sys/kernel/ostype",
        );
        assert_eq!(text(&output.stdout), "Linux", "reading goes on");
        let refusals = text(&output.stderr);
        assert_eq!(refusals.matches("cannot create").count(), 2, "{refusals}");
    });
}

/// A second root inside the workspace is swapped for a link to the outside while
/// sandboxes start, as a program in another run could do.
#[test]
fn a_root_swapped_during_set_up_never_opens_another_place() {
    as_each(|place| {
        let (root, aside) = (place.ws.join("root"), place.ws.join("aside"));
        place.mkdir(&root);
        symlink(&place.out, &aside).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::Relaxed;
        let hits = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(order) {
                    nix::fcntl::renameat2(
                        nix::fcntl::AT_FDCWD,
                        &root,
                        nix::fcntl::AT_FDCWD,
                        &aside,
                        nix::fcntl::RenameFlags::RENAME_EXCHANGE,
                    )
                    .unwrap();
                }
            });
            let wanted = root.to_str().unwrap();
            let words = [
                "--writable",
                wanted,
                "--",
                "/bin/sh",
                "-c",
                "echo x > $OUT/new; echo y > y",
            ];
            let run = || {
                place
                    .command(&words)
                    .stderr(Stdio::null())
                    .status()
                    .unwrap()
                    .success()
            };
            let hits = (0..150).filter(|_| run()).count();
            stop.store(true, order);
            hits
        });
        assert!(hits > 0, "no run succeeded");
        assert!(
            !place.out.join("new").exists(),
            "a link inside a root was followed"
        );
    });
}
