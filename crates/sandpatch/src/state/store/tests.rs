use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use sandbox_policy::facts::FileId;

use apply_patch::report::ChangeKind;

use super::super::{Change, Place};
use super::*;

/// A base below `/var/tmp`, and a store in it.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("sandpatch-state.")
            .tempdir_in("/var/tmp")
            .unwrap();
        Self { dir }
    }

    fn base(&self) -> Base {
        Base {
            path: self.dir.path().join("home/.local/state"),
            floor: self.dir.path().to_path_buf(),
        }
    }

    fn open(&self, roots: &[Root]) -> Result<Store, NoState> {
        Store::open(&self.base(), roots, Missing::Make)
    }

    fn state(&self) -> PathBuf {
        self.base().path.join("sandpatch")
    }

    fn undo(&self) -> PathBuf {
        self.state().join("undo")
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.undo()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn root(path: &Path) -> Root {
    let stat = rustix::fs::stat(path).unwrap();
    Root {
        real: path.canonicalize().unwrap(),
        id: FileId {
            dev: stat.st_dev,
            ino: stat.st_ino,
        },
    }
}

fn change() -> Change {
    Change {
        kind: ChangeKind::Modified,
        path: "a".into(),
    }
}

fn header(workspace: &str) -> Header {
    let place = Place {
        path: workspace.into(),
        dev: 1,
        ino: 2,
    };
    Header::now(place, Vec::new(), "safe".into(), vec![change()])
}

fn keep(store: &Store, workspace: &str, body: &[u8]) -> Id {
    let pending = store.begin().unwrap();
    let mut stage = File::from(pending.descriptor().try_clone().unwrap());
    stage.write_all(body).unwrap();
    pending.keep(|| header(workspace)).unwrap().unwrap()
}

fn body(record: Record) -> Vec<u8> {
    use std::io::Read;
    let mut body = Vec::new();
    record
        .file
        .take(record.body_bytes)
        .read_to_end(&mut body)
        .unwrap();
    body
}

#[test]
fn what_is_kept_can_be_listed_read_and_removed() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    let ids = [keep(&store, "/w", b"one"), keep(&store, "/w", b"two")];
    let other = keep(&store, "/other", b"three");

    // Another process sees the same.
    let store = home.open(&[]).unwrap();
    let listing = store.list(Path::new("/w")).unwrap();
    let listed: Vec<Id> = listing.entries.iter().map(|entry| entry.id).collect();
    assert_eq!(listed, [ids[1], ids[0]], "newest first");
    assert!(listing.unreadable.is_empty());
    assert_eq!(listing.entries[0].header.changes, [change()]);

    assert_eq!(body(store.read(ids[0]).unwrap()), b"one");
    assert_eq!(body(store.read(ids[1]).unwrap()), b"two");
    store.remove(ids[0]).unwrap();
    assert!(matches!(store.read(ids[0]), Err(ReadError::Unknown(id)) if id == ids[0]));
    assert!(matches!(store.remove(ids[0]), Err(ReadError::Unknown(_))));
    assert_eq!(body(store.read(other).unwrap()), b"three");
}

#[test]
fn a_stage_that_recorded_nothing_leaves_no_record() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    for pending in [store.begin().unwrap(), store.begin_named().unwrap()] {
        assert_eq!(pending.keep(|| header("/w")).unwrap(), None);
    }
    assert!(home.files().is_empty());
}

#[test]
fn what_is_not_kept_leaves_nothing() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    let unnamed = store.begin().unwrap();
    let named = store.begin_named().unwrap();
    assert_eq!(home.files().len(), 1, "the named one");
    drop((unnamed, named));
    assert!(home.files().is_empty());
}

#[test]
fn without_unnamed_files_a_temporary_name_does() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    let pending = store.begin_named().unwrap();
    File::from(pending.descriptor().try_clone().unwrap())
        .write_all(b"body")
        .unwrap();
    assert!(store.list(Path::new("/w")).unwrap().entries.is_empty());
    let id = pending.keep(|| header("/w")).unwrap().unwrap();
    assert_eq!(home.files().len(), 1);
    assert_eq!(body(store.read(id).unwrap()), b"body");
}

#[test]
fn directories_are_made_for_their_owner_alone() {
    let home = Home::new();
    home.open(&[]).unwrap();
    let mut path = home.undo();
    while path != home.dir.path() {
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{}", path.display());
        path.pop();
    }
    assert!(matches!(
        Store::open(&Home::new().base(), &[], Missing::Report),
        Err(NoState::Missing { .. })
    ));
}

#[test]
fn a_home_that_does_not_exist_is_not_made() {
    let home = Home::new();
    let missing = home.dir.path().join("nobody");
    let base = Base {
        path: missing.join(".local/state"),
        floor: missing.clone(),
    };
    let refused = Store::open(&base, &[], Missing::Make);
    assert!(matches!(refused, Err(NoState::Missing { path }) if path == missing));
    assert!(!missing.exists());
}

#[test]
fn directories_of_others_are_refused() {
    let home = Home::new();
    home.open(&[]).unwrap();
    for (path, mode) in [(home.state(), 0o750), (home.undo(), 0o701)] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let refused = home.open(&[]).unwrap_err();
        assert!(
            matches!(&refused, NoState::OpenToOthers { path: it, mode: found } if *it == path && *found == mode),
            "{refused}"
        );
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::os::unix::fs::chown(home.undo(), Some(12345), None).unwrap();
    let refused = home.open(&[]).unwrap_err();
    assert!(
        matches!(
            refused,
            NoState::ForeignOwner {
                owner: 12345,
                uid: 0,
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn links_are_followed_to_the_base_and_not_below() {
    let home = Home::new();
    home.open(&[]).unwrap();
    for path in [home.undo(), home.state()] {
        let moved = path.with_file_name("moved");
        std::fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        let refused = home.open(&[]).unwrap_err();
        assert!(matches!(refused, NoState::Os { .. }), "{refused}");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&moved, &path).unwrap();
    }
    let linked = home.dir.path().join("linked");
    symlink(home.base().path, &linked).unwrap();
    let base = Base {
        path: linked,
        floor: "/".into(),
    };
    Store::open(&base, &[], Missing::Make).unwrap();
}

/// As everybody's first patch does, in a directory of the home.
#[test]
fn a_home_that_holds_a_root_gets_its_first_directories() {
    let home = Home::new();
    let workspace = home.dir.path().join("home/project");
    std::fs::create_dir_all(&workspace).unwrap();
    let store = home.open(&[root(&workspace)]).unwrap();
    keep(&store, "/w", b"body");
    assert_eq!(home.files().len(), 1);
}

#[test]
fn no_root_may_hold_it_or_lie_in_it() {
    let home = Home::new();
    let top = root(home.dir.path());
    let refused = home.open(std::slice::from_ref(&top)).unwrap_err();
    assert!(matches!(refused, NoState::Writable { .. }), "{refused}");
    assert!(!home.base().path.exists(), "nothing was made in the root");

    home.open(&[]).unwrap();
    std::fs::create_dir(home.undo().join("ws")).unwrap();
    for path in [
        home.dir.path(),
        &home.state(),
        &home.undo(),
        &home.undo().join("ws"),
    ] {
        let refused = home.open(&[root(path)]).unwrap_err();
        assert!(matches!(refused, NoState::Writable { .. }), "{refused}");
    }
    let beside = home.dir.path().join("beside");
    std::fs::create_dir(&beside).unwrap();
    home.open(&[root(&beside)]).unwrap();
    // Under another path, as a bind mount would show it.
    let elsewhere = Root {
        real: "/proc".into(),
        ..top
    };
    let refused = home.open(&[elsewhere]).unwrap_err();
    assert!(matches!(refused, NoState::Writable { .. }), "{refused}");
}

#[test]
fn records_that_were_exchanged_are_refused() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    let id = keep(&store, "/w", b"body");
    let path = home.files().pop().unwrap();
    let aside = home.dir.path().join("aside");
    let refused = |why: &str| {
        assert!(matches!(store.read(id), Err(ReadError::NotOurs)), "{why}");
        let listing = store.list(Path::new("/w")).unwrap();
        assert_eq!(
            (listing.entries.len(), listing.unreadable.len()),
            (0, 1),
            "{why}"
        );
    };

    std::fs::hard_link(&path, &aside).unwrap();
    refused("a second name");
    std::fs::remove_file(&path).unwrap();
    symlink(&aside, &path).unwrap();
    refused("a link");
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    assert_eq!(body(store.read(id).unwrap()), b"body", "control");

    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    refused("open to others");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"x")
        .unwrap();
    refused("another size");
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(CWD, &path, Mode::RUSR).unwrap();
    refused("a FIFO");
}

#[test]
fn the_sandboxed_stage_cannot_forge_a_header() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    let pending = store.begin().unwrap();
    let stage = File::from(pending.descriptor().try_clone().unwrap());
    let forged = header("/forged").encode().unwrap();
    // It writes one of its own, and tries to have the real one written before it.
    rustix::fs::fcntl_setfl(&stage, OFlags::empty()).unwrap();
    (&stage).write_all(&forged).unwrap();
    seek(&stage, rustix::fs::SeekFrom::Start(0)).unwrap();
    drop(stage);
    let id = pending.keep(|| header("/w")).unwrap().unwrap();
    let record = store.read(id).unwrap();
    assert_eq!(record.header.workspace.path, Path::new("/w"));
    assert_eq!(body(record), forged);
}

#[test]
fn a_record_that_others_could_open_is_not_kept() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    let pending = store.begin().unwrap();
    let stage = pending.descriptor();
    rustix::fs::fchmod(&stage, Mode::from_raw_mode(0o4755)).unwrap();
    assert!(matches!(
        pending.keep(|| header("/w")),
        Err(NotKept::Tampered)
    ));

    let pending = store.begin().unwrap();
    let stage = pending.descriptor();
    rustix::fs::ftruncate(&stage, MOST_BYTES + 1).unwrap();
    assert!(matches!(
        pending.keep(|| header("/w")),
        Err(NotKept::TooLarge(_))
    ));
    assert!(home.files().is_empty());
}

#[test]
fn keeping_sweeps_what_is_superfluous() {
    let home = Home::new();
    let store = home.open(&[]).unwrap();
    let first = keep(&store, "/w", b"first");
    let stale = home.undo().join(name::temporary(1, 1));
    let live = home.undo().join(name::temporary(now(), 1));
    let foreign = home.undo().join("README");
    for path in [&stale, &live, &foreign] {
        std::fs::write(path, "").unwrap();
    }
    for _ in 0..retention::MOST_PER_WORKSPACE {
        keep(&store, "/w", b"x");
    }
    let listing = store.list(Path::new("/w")).unwrap();
    assert_eq!(listing.entries.len(), retention::MOST_PER_WORKSPACE);
    assert!(matches!(store.read(first), Err(ReadError::Unknown(_))));
    assert!(!stale.exists() && live.exists() && foreign.exists());
}

#[test]
fn processes_share_the_store() {
    let home = Home::new();
    home.open(&[]).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let home = &home;
            scope.spawn(move || {
                let store = home.open(&[]).unwrap();
                for round in 0..30_u8 {
                    keep(&store, &format!("/w{}", worker % 2), &[round; 100]);
                }
            });
        }
    });
    let store = home.open(&[]).unwrap();
    for workspace in ["/w0", "/w1"] {
        let listing = store.list(Path::new(workspace)).unwrap();
        assert!(listing.unreadable.is_empty(), "{listing:?}");
        // A sweep that lost a race leaves a little more, never less.
        assert!(listing.entries.len() >= retention::MOST_PER_WORKSPACE);
        let mut ids: Vec<String> = listing.entries.iter().map(|it| it.id.to_string()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), listing.entries.len());
    }
}
