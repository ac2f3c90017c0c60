//! What bubblewrap is told.

use super::*;
use crate::bubblewrap::render::{joined, render};

/// Returns one line for each option.
fn rendered(plan: &Plan, features: &Features, links: &[&str]) -> Vec<String> {
    let words = render(plan, features, &table(plan, features, links));
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let word = word.into_string().unwrap();
        match lines.last_mut() {
            Some(line) if !word.starts_with("--") => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines
}

#[test]
fn the_usual_plan_of_a_user() {
    let plan = plan(usual(), user(), Network::None);
    let common = [
        "--die-with-parent",
        "--as-pid-1",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-net",
        "--ro-bind / /",
        "--dev /dev",
    ];
    let newest = [
        "--perms 1777",
        "--tmpfs /dev/shm",
        "--proc /proc",
        "--perms 1777",
        "--tmpfs /tmp",
        "--bind-fd 27 /w",
        "--bind-fd 28 /w/sub",
        "--ro-bind-fd 29 /w/sub/.git",
        "--remount-ro /dev",
        "--remount-ro /proc",
        "--chdir /",
        "--argv0 sandpatch",
    ];
    let debians = [
        "--perms 1777",
        "--tmpfs /dev/shm",
        "--proc /proc",
        "--perms 1777",
        "--tmpfs /tmp",
        "--bind /proc/self/fd/27 /w",
        "--bind /proc/self/fd/28 /w/sub",
        "--ro-bind /proc/self/fd/29 /w/sub/.git",
        "--remount-ro /dev",
        "--remount-ro /proc",
        "--chdir /",
    ];
    let oldest = [
        "--tmpfs /dev/shm",
        "--proc /proc",
        "--tmpfs /tmp",
        "--bind /proc/self/fd/27 /w",
        "--bind /proc/self/fd/28 /w/sub",
        "--ro-bind /proc/self/fd/29 /w/sub/.git",
        "--remount-ro /dev",
        "--remount-ro /proc",
        "--chdir /",
    ];
    assert_eq!(
        rendered(&plan, &new(), &[]),
        [&common[..], &newest].concat()
    );
    assert_eq!(
        rendered(&plan, &debian(), &[]),
        [&common[..], &debians].concat()
    );
    assert_eq!(
        rendered(&plan, &old(), &[]),
        [&common[..], &oldest].concat()
    );
}

#[test]
fn root_keeps_its_ids_and_what_the_stage_inside_needs() {
    let mounts = vec![
        MountOp::View(ViewMode::ReadOnly),
        attach(0),
        protect("/w/.git", 12),
    ];
    let kept = vec![Capability::DacOverride, Capability::Fowner];
    let plan = plan(mounts, Identity::Privileged { kept }, Network::Host);
    let first = [
        "--die-with-parent",
        "--as-pid-1",
        "--unshare-pid",
        "--unshare-ipc",
        "--cap-drop ALL",
        "--cap-add CAP_DAC_OVERRIDE",
        "--cap-add CAP_FOWNER",
        "--cap-add CAP_SETPCAP",
        "--cap-add CAP_DAC_READ_SEARCH",
    ];
    let last = ["--chdir /", "--argv0 sandpatch"];
    let view = ["--ro-bind / /", "--bind-fd 21 /w"];
    assert_eq!(
        rendered(&plan, &new(), &[]),
        [&first[..], &view, &["--ro-bind-fd 22 /w/.git"], &last].concat()
    );
    // A link is held by the stage inside, which mounts it itself.
    assert_eq!(
        rendered(&plan, &new(), &["/w/.git"]),
        [&first[..], &["--cap-add CAP_SYS_ADMIN"], &view, &last].concat()
    );
}

fn mounted(mounts: Vec<MountOp>, features: &Features, links: &[&str]) -> Vec<String> {
    let plan = plan(mounts, user(), Network::Host);
    let lines = rendered(&plan, features, links);
    let last = if features.argv0 { 2 } else { 1 };
    lines[5..lines.len() - last].to_vec()
}

#[test]
fn what_is_denied_is_covered() {
    let mounts = vec![
        MountOp::View(ViewMode::Writable),
        mask("/w/a", 1, MaskForm::Directory),
        mask("/w/b", 2, MaskForm::File),
        mask("/w/c", 3, MaskForm::Passage),
        attach(1),
        MountOp::SealPassage(path("/w/c")),
        missing("/w/gone", Access::Read),
        missing("/w/m", Access::Read),
        missing("/w/n", Access::Deny),
    ];
    let newest = [
        "--bind / /",
        "--perms 000",
        "--tmpfs /w/a",
        "--remount-ro /w/a",
        "--perms 000",
        "--ro-bind-data 92 /w/b",
        "--perms 111",
        "--tmpfs /w/c",
        "--ro-bind-fd 24 /usr",
        "--remount-ro /w/c",
        "--perms 755",
        "--tmpfs /w/m",
        "--remount-ro /w/m",
        "--perms 000",
        "--tmpfs /w/n",
        "--remount-ro /w/n",
    ];
    assert_eq!(mounted(mounts.clone(), &new(), &[]), newest);
    // Without permission bits the closed ones are left to the stage inside.
    let oldest = [
        "--bind / /",
        "--tmpfs /w/c",
        "--ro-bind /proc/self/fd/24 /usr",
        "--remount-ro /w/c",
        "--tmpfs /w/m",
        "--remount-ro /w/m",
    ];
    assert_eq!(mounted(mounts.clone(), &old(), &[]), oldest);
    let linked = mounted(mounts, &new(), &["/w/a", "/w/b", "/w/m"]);
    for held in ["/w/a", "/w/b", "/w/m"] {
        assert!(
            linked.iter().all(|line| !line.ends_with(held)),
            "{linked:?}"
        );
    }
}

fn empty(has_proc: bool) -> Vec<MountOp> {
    let view = MountOp::EmptyView {
        directories: vec![path("/proc"), path("/dev")],
        links: vec![(path("/bin"), OsString::from("usr/bin"))],
    };
    let mut mounts = vec![
        MountOp::View(ViewMode::ReadOnly),
        view,
        attach(1),
        attach(0),
    ];
    mounts.extend(has_proc.then_some(MountOp::FreshProc));
    mounts.push(MountOp::LeaveHostView);
    mounts
}

#[test]
fn an_empty_view_shows_what_is_named() {
    let shown = [
        "--tmpfs /",
        "--dir /proc",
        "--dir /dev",
        "--symlink usr/bin /bin",
        "--ro-bind-fd 22 /usr",
        "--bind-fd 23 /w",
    ];
    assert_eq!(
        mounted(empty(true), &new(), &[]),
        [
            &shown[..],
            &["--proc /proc", "--remount-ro /", "--remount-ro /proc"]
        ]
        .concat()
    );
    // The stage inside is started through /proc.
    let host = ["--remount-ro /", "--ro-bind /proc /proc"];
    assert_eq!(
        mounted(empty(false), &new(), &[]),
        [&shown[..], &host].concat()
    );
}

#[test]
fn a_proc_that_cannot_be_mounted_is_the_hosts() {
    let features = Features {
        fresh_proc: false,
        ..new()
    };
    let view = vec![MountOp::View(ViewMode::ReadOnly), MountOp::FreshProc];
    assert_eq!(mounted(view, &features, &[]), ["--ro-bind / /"]);
    let lines = mounted(empty(true), &features, &[]);
    let proc: Vec<&String> = lines.iter().filter(|line| line.contains("proc")).collect();
    assert_eq!(proc, ["--dir /proc", "--ro-bind /proc /proc"]);
}

#[test]
fn a_place_without_a_descriptor_is_named_by_its_path() {
    let plan = plan(vec![attach(0)], user(), Network::Host);
    let mut table = table(&plan, &new(), &[]);
    table.places[0].as_mut().unwrap().fd = None;
    let words = render(&plan, &new(), &table);
    let at = words.iter().position(|word| word == "--bind").unwrap();
    assert_eq!(words[at..at + 3], ["--bind", "/w", "/w"]);
}

#[test]
fn options_are_joined_by_nul() {
    let words = [OsString::from("--bind"), OsString::from("/a b\n")];
    assert_eq!(joined(&words), b"--bind\0/a b\n\0");
}
