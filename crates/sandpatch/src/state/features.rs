//! What earlier runs found out about the host's bubblewraps, so that none has to
//! be started only to be asked.

use std::cell::OnceCell;
use std::os::fd::OwnedFd;

use linux_sandbox::bubblewrap::FeatureCache;

use super::directory::{self, Missing};
use super::{Base, Root, small_file};

const DIRECTORY: &str = "bubblewrap";
const NAME: &str = "features";

/// What is read at most, in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// The file, in a state directory that no root may hold.
pub struct Features<'a> {
    base: Option<Base>,
    roots: &'a [Root],
    opened: OnceCell<Option<OwnedFd>>,
}

impl<'a> Features<'a> {
    /// Names the file; without a base nothing is kept.
    pub fn new(base: Option<Base>, roots: &'a [Root]) -> Self {
        Self {
            base,
            roots,
            opened: OnceCell::new(),
        }
    }

    fn open(&self, missing: Missing) -> Option<OwnedFd> {
        let uid = rustix::process::geteuid().as_raw();
        directory::open(self.base.as_ref()?, DIRECTORY, self.roots, missing, uid).ok()
    }
}

impl FeatureCache for Features<'_> {
    fn load(&self) -> Option<Vec<u8>> {
        let opened = self.opened.get_or_init(|| self.open(Missing::Report));
        small_file::read(opened.as_ref()?, NAME, MOST_BYTES)
    }

    fn store(&self, bytes: &[u8]) {
        // The next run asks again where nothing can be kept.
        if let Some(directory) = self.open(Missing::Make) {
            let _ = small_file::replace(&directory, NAME, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use sandbox_policy::facts::FileId;

    use super::*;

    fn base(path: &std::path::Path) -> Base {
        Base {
            path: path.to_path_buf(),
            floor: path.to_path_buf(),
        }
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let make = || Features::new(Some(base(place.path())), &[]);
        assert_eq!(make().load(), None);
        make().store(b"one");
        make().store(b"two");
        assert_eq!(make().load().as_deref(), Some(&b"two"[..]));
        let file = place.path().join("sandpatch/bubblewrap/features");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        std::fs::write(&file, vec![0; MOST_BYTES as usize + 1]).unwrap();
        assert_eq!(make().load(), None);
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert_eq!(make().load(), None);
    }

    #[test]
    fn nothing_is_believed_that_a_sandbox_could_write() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        Features::new(Some(base(place.path())), &[]).store(b"one");
        let meta = std::fs::metadata(place.path()).unwrap();
        let root = Root {
            real: place.path().to_path_buf(),
            id: FileId {
                dev: meta.dev(),
                ino: meta.ino(),
            },
        };
        let roots = [root];
        let features = Features::new(Some(base(place.path())), &roots);
        features.store(b"two");
        assert_eq!(features.load(), None);
        assert_eq!(Features::new(None, &[]).load(), None);
    }
}
