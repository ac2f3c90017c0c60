//! A tree with a root, another root and an outside, and an oracle: whatever
//! resolves is compared with what the kernel makes of the same path.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(missing_docs, reason = "the names say it")]

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use safe_fs::{
    Attributes, Entry, Error, ErrorKind, Guard, GuardDepth, Location, Pinned, Resolver, Roots,
    Staged,
};

/// Makes one test for each resolver.
#[macro_export]
macro_rules! both_resolvers {
    ($(fn $name:ident($resolver:ident) $body:block)*) => {$(
        mod $name {
            use super::*;
            fn check($resolver: Resolver) $body
            #[test]
            fn openat2() {
                if Resolver::detect() == Resolver::Walk {
                    println!("skipped: the kernel has no openat2 (Linux 5.6)");
                    return;
                }
                check(Resolver::Openat2);
            }
            #[test]
            fn walk() {
                check(Resolver::Walk);
            }
        }
    )*};
}

pub struct Tree {
    temp: tempfile::TempDir,
    pub roots: Roots,
}

impl Tree {
    /// `root/` is base and root, `other/` a second root, `outside/` neither.
    pub fn new(resolver: Resolver) -> Self {
        Self::with(resolver, &["root", "other"], "root")
    }

    pub fn with(resolver: Resolver, roots: &[&str], base: &str) -> Self {
        let temp = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        for name in ["root", "root/dir", "root/.git", "other", "outside"] {
            fs::create_dir(temp.path().join(name)).unwrap();
        }
        fs::write(temp.path().join("outside/secret"), "secret").unwrap();
        fs::write(temp.path().join("root/file"), "file").unwrap();
        let opened = Self::open(temp.path(), resolver, roots, base);
        Self {
            temp,
            roots: opened,
        }
    }

    fn open(top: &Path, resolver: Resolver, roots: &[&str], base: &str) -> Roots {
        let roots: Vec<_> = roots.iter().map(|name| top.join(name)).collect();
        Roots::open(&top.join(base), &roots, &guards(), resolver).unwrap()
    }

    /// Opens other roots over the same files.
    pub fn reopen(&mut self, resolver: Resolver, roots: &[&str], base: &str) {
        self.roots = Self::open(self.temp.path(), resolver, roots, base);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(name)).unwrap();
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Resolves from `root/` and asks the oracle.
    pub fn resolve(&self, path: impl AsRef<Path>) -> Result<Location, Error> {
        let found = self.roots.resolve(path.as_ref());
        if let Ok(at) = &found {
            let full = self.path("root").join(path.as_ref());
            if let (true, Some(Ok(parent))) =
                (at.missing().is_empty(), full.parent().map(fs::canonicalize))
            {
                assert_eq!(current_path(at), parent, "{} differs", full.display());
            }
        }
        found
    }

    pub fn at(&self, path: impl AsRef<Path>) -> Location {
        self.resolve(path).unwrap()
    }

    pub fn kind(&self, path: impl AsRef<Path>) -> ErrorKind {
        self.resolve(path).unwrap_err().kind().clone()
    }

    pub fn file(&self, at: &Location) -> Pinned {
        match self.roots.entry(at).unwrap() {
            Entry::File(pinned) => pinned,
            other => panic!("no file but {other:?}"),
        }
    }

    pub fn stage(&self, at: &Location, content: &str) -> Staged {
        safe_fs::stage(
            at.dir(),
            content.as_bytes(),
            Attributes::New { mode: 0o666 },
        )
        .unwrap()
    }

    /// All names in a directory, sorted: litter shows up here.
    pub fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub fn guards() -> Vec<Guard> {
    vec![
        Guard {
            name: ".git".into(),
            depth: GuardDepth::Any,
        },
        Guard {
            name: ".codex".into(),
            depth: GuardDepth::Top,
        },
    ]
}

pub fn guarded(name: &str) -> ErrorKind {
    ErrorKind::Guarded { name: name.into() }
}

pub fn is_outside(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Outside { .. })
}

/// Where the kernel says a location's directory is.
pub fn current_path(at: &Location) -> PathBuf {
    let fd = at.dir().as_fd().as_raw_fd();
    fs::read_link(format!("/proc/self/fd/{fd}")).unwrap()
}

pub fn make_fifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// `fsetxattr` by path; false where the file system has none.
pub fn set_xattr(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).is_ok()
}

pub fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

pub fn name_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
