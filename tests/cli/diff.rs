//! `sandpatch apply --diff`: what `git apply` makes of it must be what `apply` makes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sandpatch_tests::{Identity, Place};

use crate::sandpatch;

/// What git knows of a file: its kind, its bytes.
type Tree = BTreeMap<PathBuf, (&'static str, Vec<u8>)>;

fn tree(top: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut todo = vec![top.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(top).unwrap().to_owned();
            if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                tree.insert(name, ("link", target.as_os_str().as_bytes().to_vec()));
            } else if kind.is_dir() {
                todo.push(path);
            } else {
                let executable = kind.permissions().mode() & 0o100 != 0;
                let kind = if executable { "executable" } else { "file" };
                tree.insert(name, (kind, fs::read(&path).unwrap()));
            }
        }
    }
    tree
}

/// Every kind of file that the cases need.
fn place() -> Place {
    place_of(Identity::Caller)
}

fn place_of(identity: Identity) -> Place {
    let place = Place::new(identity);
    let numbers: String = (1..=40).map(|n| format!("{n}\n")).collect();
    place.write("ws/f", &numbers);
    place.write("ws/g", "one\ntwo\n");
    place.write("ws/crlf", "a\r\nb\r\nc\r\n");
    place.write("ws/open", "a\nb");
    place.write("ws/empty", "");
    place.write("ws/tool", "#!/bin/sh\necho 1\n");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.ws().join("tool"), executable).unwrap();
    place.write("ws/with space", "a\nb\n");
    place.write("ws/d\u{e9}j\u{e0}/v\u{fc}", "a\nb\n");
    place.write("ws/quote\"back\\slash", "a\n");
    place.write("ws/latin", b"caf\xe9\nb\n");
    place.write("ws/binary", b"a\0b\nc");
    place.link("ws/link", "f");
    place.link("ws/dangling", "no where");
    place.write("ws/real/h", "h\n");
    place.link("ws/way", "real");
    place
}

fn git_apply(dir: &Path, diff: &[u8]) -> std::process::Output {
    use std::io::Write;
    let mut git = Command::new("git")
        .args(["apply", "-"])
        .current_dir(dir)
        .env("GIT_CEILING_DIRECTORIES", "/")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(diff).unwrap();
    git.wait_with_output().unwrap()
}

fn shown(place: &Place, switches: &[&str], patch: &str) -> std::process::Output {
    let mut arguments = vec!["apply"];
    arguments.extend(switches);
    let mut command = sandpatch(place, &arguments);
    command.write_stdin(patch.to_owned());
    command.output().unwrap()
}

/// Applies the diff in a copy and the patch in the place; both must be the same tree.
fn agrees(name: &str, switches: &[&str], operations: &str) {
    let place = place();
    let patch = format!("*** Begin Patch\n{operations}*** End Patch\n");
    let before = tree(&place.ws());
    let mut with_diff = switches.to_vec();
    with_diff.push("--diff");
    let preview = shown(&place, &with_diff, &patch);
    let stderr = String::from_utf8_lossy(&preview.stderr).into_owned();
    assert_eq!(preview.status.code(), Some(0), "{name}: {stderr}");
    assert_eq!(tree(&place.ws()), before, "{name}: a preview changed files");
    let copy = place.top().join("copy");
    let mut copying = Command::new("cp");
    let copied = copying.arg("-a").arg(place.ws()).arg(&copy).status();
    assert!(copied.unwrap().success());
    let git = git_apply(&copy, &preview.stdout);
    let diff = String::from_utf8_lossy(&preview.stdout);
    let said = String::from_utf8_lossy(&git.stderr);
    assert!(git.status.success(), "{name}: {said}\n{diff}");
    let applied = shown(&place, switches, &patch);
    assert_eq!(applied.status.code(), Some(0), "{name}");
    assert_ne!(tree(&place.ws()), before, "{name}: nothing was tested");
    assert_eq!(tree(&copy), tree(&place.ws()), "{name}:\n{diff}");
}

#[test]
fn git_makes_of_the_diff_what_apply_makes() {
    let cases = [
        (
            "edit",
            "*** Update File: f\n@@\n 3\n-4\n+four\n@@\n-38\n+x\n+y\n",
        ),
        ("CRLF", "*** Update File: crlf\n@@\n a\n-b\n+B\n"),
        (
            "no final newline",
            "*** Update File: open\n@@\n a\n-b\n+c\n",
        ),
        (
            "a final newline goes",
            "*** Update File: g\n@@\n-two\n+2\n\\ No newline at end of file\n",
        ),
        ("add", "*** Add File: new/dir/x\n+1\n+2\n"),
        ("add empty", "*** Add File: nothing\n"),
        ("fill empty", "*** Update File: empty\n@@\n+1\n"),
        ("make empty", "*** Update File: g\n@@\n-one\n-two\n"),
        (
            "delete",
            "*** Delete File: g\n*** Delete File: empty\n*** Delete File: open\n",
        ),
        ("delete binary", "*** Delete File: binary\n"),
        (
            "move and edit",
            "*** Update File: g\n*** Move to: sub/g2\n@@\n-two\n+2\n",
        ),
        ("rename", "*** Update File: f\n*** Move to: sub/f2\n"),
        (
            "rename binary",
            "*** Update File: binary\n*** Move to: b2\n",
        ),
        ("rename empty", "*** Update File: empty\n*** Move to: e2\n"),
        (
            "executable",
            "*** Update File: tool\n@@\n-echo 1\n+echo 2\n",
        ),
        (
            "move executable",
            "*** Update File: tool\n*** Move to: t2\n@@\n-echo 1\n+echo 2\n",
        ),
        ("delete executable", "*** Delete File: tool\n"),
        (
            "space",
            "*** Update File: with space\n@@\n-b\n+c\n*** Add File: more space here\n+1\n",
        ),
        (
            "move space",
            "*** Update File: with space\n*** Move to: o ther\n@@\n-b\n+c\n",
        ),
        (
            "unicode",
            "*** Update File: d\u{e9}j\u{e0}/v\u{fc}\n@@\n-b\n+\u{1f980}\n*** Add File: \u{65e5}\u{672c}\n+1\n",
        ),
        (
            "quotes",
            "*** Update File: quote\"back\\slash\n*** Move to: q\"\\2\n@@\n-a\n+b\n",
        ),
        ("not UTF-8", "*** Update File: latin\n@@\n-b\n+c\n"),
        ("through a link", "*** Update File: link\n@@\n-1\n+one\n"),
        (
            "through a directory",
            "*** Update File: way/h\n@@\n-h\n+H\n*** Add File: way/new/x\n+1\n",
        ),
        (
            "delete links",
            "*** Delete File: link\n*** Delete File: dangling\n*** Delete File: way\n",
        ),
        (
            "rename link",
            "*** Update File: dangling\n*** Move to: sub/l2\n",
        ),
        (
            "link becomes file",
            "*** Update File: link\n*** Move to: l2\n@@\n-1\n+one\n",
        ),
        (
            "swap",
            "*** Update File: f\n*** Move to: g\n*** Update File: g\n*** Move to: f\n",
        ),
        (
            "renamed and made anew",
            "*** Update File: f\n*** Move to: f2\n*** Add File: f\n+new\n",
        ),
        (
            "moved and made anew",
            "*** Update File: g\n*** Move to: g2\n@@\n-one\n+1\n*** Add File: g\n+new\n",
        ),
        (
            "deleted and made anew",
            "*** Delete File: tool\n*** Add File: tool\n+new\n",
        ),
        (
            "chain",
            "*** Update File: g\n*** Move to: g2\n*** Update File: g2\n*** Move to: g3\n@@\n-one\n+1\n",
        ),
    ];
    for (name, operations) in cases {
        agrees(name, &[], operations);
    }
}

#[test]
fn an_ordinary_user_sees_the_same_diff() {
    let patch = "*** Begin Patch\n*** Update File: way/h\n@@\n-h\n+H\n*** Delete File: link\n*** End Patch\n";
    for identity in Identity::all() {
        let place = place_of(identity);
        let preview = shown(&place, &["--diff"], patch);
        let said = String::from_utf8_lossy(&preview.stderr).into_owned();
        assert_eq!(preview.status.code(), Some(0), "{said}");
        let diff = String::from_utf8(preview.stdout).unwrap();
        assert!(
            diff.contains("--- a/real/h\n"),
            "{}: {diff}",
            identity.label()
        );
        assert!(
            diff.contains("deleted file mode 120000\n"),
            "{}: {diff}",
            identity.label()
        );
    }
}

#[test]
fn what_is_replaced_is_in_the_diff() {
    let replace = ["--on-existing", "replace"];
    let cases = [
        ("add onto a file", "*** Add File: g\n+new\n"),
        (
            "move onto a file",
            "*** Update File: tool\n*** Move to: g\n",
        ),
        (
            "edit onto a file",
            "*** Update File: g\n*** Move to: tool\n@@\n-one\n+1\n",
        ),
        (
            "move onto a link",
            "*** Update File: g\n*** Move to: link\n@@\n-one\n+1\n",
        ),
        (
            "link onto a file",
            "*** Update File: dangling\n*** Move to: g\n",
        ),
    ];
    for (name, operations) in cases {
        agrees(name, &replace, operations);
    }
}

#[test]
fn other_names_of_a_file_are_in_the_diff() {
    let place = place();
    fs::hard_link(place.ws().join("g"), place.ws().join("other")).unwrap();
    let patch = "*** Begin Patch\n*** Update File: g\n@@\n-one\n+1\n*** End Patch\n";
    let preview = shown(&place, &["--diff"], patch);
    let diff = String::from_utf8(preview.stdout).unwrap();
    assert!(
        diff.contains("+++ b/g\n") && diff.contains("+++ b/other\n"),
        "{diff}"
    );
}

#[test]
fn a_binary_change_is_said_and_never_half_applied() {
    let place = place();
    let patch = "*** Begin Patch\n*** Update File: binary\n@@\n-c\n+d\n*** Update File: g\n@@\n-one\n+1\n*** End Patch\n";
    let preview = shown(&place, &["--diff"], patch);
    assert_eq!(preview.status.code(), Some(0));
    let diff = String::from_utf8(preview.stdout).unwrap();
    assert!(
        diff.contains("Binary files a/binary and b/binary differ\n"),
        "{diff}"
    );
    let said = String::from_utf8(preview.stderr).unwrap();
    assert!(said.contains("warning: binary: it is binary"), "{said}");
    let before = tree(&place.ws());
    assert!(!git_apply(&place.ws(), diff.as_bytes()).status.success());
    assert_eq!(tree(&place.ws()), before);
}

#[test]
fn a_path_elsewhere_is_said() {
    let place = place();
    place.write("out/x", "1\n");
    let out = place.out();
    let patch = format!(
        "*** Begin Patch\n*** Update File: {}/x\n@@\n-1\n+2\n*** End Patch\n",
        out.display()
    );
    let preview = shown(
        &place,
        &["--diff", "--writable", out.to_str().unwrap()],
        &patch,
    );
    let said = String::from_utf8(preview.stderr).unwrap();
    assert_eq!(preview.status.code(), Some(0), "{said}");
    assert!(said.contains("outside the current directory"), "{said}");
    assert_eq!(fs::read(out.join("x")).unwrap(), b"1\n");
}

#[test]
fn a_long_file_with_few_changes_is_compared_in_time() {
    const LINES: usize = 200_000;
    let place = place();
    let text: String = (0..LINES).map(|n| format!("line {n}\n")).collect();
    place.write("ws/long", text);
    let middle = LINES / 2;
    let patch = format!(
        "*** Begin Patch\n*** Update File: long\n@@\n-line 7\n+seven\n@@\n-line {middle}\n*** End Patch\n"
    );
    let begun = std::time::Instant::now();
    let preview = shown(&place, &["--diff"], &patch);
    let diff = String::from_utf8(preview.stdout).unwrap();
    assert_eq!(diff.matches("\n@@ -").count(), 2, "{diff}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
}
