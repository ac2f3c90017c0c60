//! Fresh directories for one test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{Identity, exe};

/// A directory below `/var/tmp` with `ws` (the workspace), `out` (which must
/// not change), `home` and `bin` (the executable, usable by every user).
pub struct Place {
    dir: TempDir,
    identity: Identity,
    exe: PathBuf,
    alias: PathBuf,
}

impl Place {
    /// Makes the place for `identity`, which owns `ws`, `out` and `home`.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        let dir = top();
        for name in ["ws", "out", "home", "bin"] {
            let path = dir.path().join(name);
            fs::create_dir(&path).expect("create");
            // Set, not inherited: the umask of the caller must not matter.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
            if name != "bin" {
                identity.own(&path);
            }
        }
        let exe = exe::install(&dir.path().join("bin"));
        let alias = exe.with_file_name("apply_patch");
        Self {
            dir,
            identity,
            exe,
            alias,
        }
    }

    /// The directory that holds all others.
    #[must_use]
    pub fn top(&self) -> &Path {
        self.dir.path()
    }

    /// The workspace.
    #[must_use]
    pub fn ws(&self) -> PathBuf {
        self.top().join("ws")
    }

    /// The directory beside the workspace that must not change.
    #[must_use]
    pub fn out(&self) -> PathBuf {
        self.top().join("out")
    }

    /// This place's copy of the executable.
    #[must_use]
    pub fn exe(&self) -> &Path {
        &self.exe
    }

    /// The `apply_patch` name of this place's executable.
    #[must_use]
    pub fn alias(&self) -> &Path {
        &self.alias
    }

    /// Writes a file that belongs to the place's identity.
    pub fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.top().join(relative);
        self.mkdir(&parent_of(relative));
        fs::write(&path, bytes).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
        self.identity.own(&path);
    }

    /// Makes a symbolic link that belongs to the place's identity.
    pub fn link(&self, relative: &str, target: impl AsRef<Path>) {
        let path = self.top().join(relative);
        self.mkdir(&parent_of(relative));
        std::os::unix::fs::symlink(target, &path).expect("symlink");
        self.identity.own(&path);
    }

    /// Makes a directory and its parents, all owned by the place's identity.
    pub fn mkdir(&self, relative: &str) {
        let mut path = self.top().to_owned();
        for part in Path::new(relative) {
            path.push(part);
            if !path.exists() {
                fs::create_dir(&path).expect("mkdir");
                self.identity.own(&path);
            }
        }
    }

    /// A command that starts `program` in the workspace as the place's
    /// identity, with the place's own home.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.identity.apply(&mut command);
        command
            .current_dir(self.ws())
            .env("HOME", self.top().join("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("XDG_STATE_HOME", self.top().join("home/state"));
        command
    }
}

/// A directory below `/var/tmp` that every user may enter.
#[must_use]
pub fn top() -> TempDir {
    let dir = tempfile::Builder::new()
        .prefix("sandpatch-test.")
        .tempdir_in("/var/tmp")
        .expect("a directory below /var/tmp");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    dir
}

/// Makes a tree removable again that a case has locked (mode 0555 and such).
pub fn unlock(dir: &Path) {
    // Best effort by an ordinary user; what stays is only litter of the test.
    let _ = Command::new("chmod")
        .args(["-R", "u+rwX"])
        .arg(dir)
        .output();
}

impl Drop for Place {
    fn drop(&mut self) {
        unlock(self.dir.path());
    }
}

fn parent_of(relative: &str) -> String {
    relative
        .rsplit_once('/')
        .map_or_else(String::new, |(parent, _)| parent.to_owned())
}
