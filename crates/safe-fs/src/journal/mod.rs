//! What lets the next run finish or take back a transaction that was killed.
//!
//! Each change is written down before it is made, so that whatever instant a
//! process dies at, the journal and the file system together say how far it
//! came. It lies in the workspace, where anybody may have put it: it is
//! evidence, never an order. See [`Roots::recover`](crate::Roots::recover).

mod record;
mod recover;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use crate::dir::Dir;
use crate::error::{Context, Error, ErrorKind, Operation};
use crate::id::FileId;
use crate::location::Location;
use crate::roots::Roots;
use crate::sys;
pub(crate) use record::{NamedPlace, Record};
pub use recover::{Conflict, Direction, Recovered};

/// The journal's name in a workspace; nobody but its writer may touch it.
pub const JOURNAL_NAME: &str = ".sandpatch-journal";

/// Says what has to have reached the disk before a transaction counts as made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: a killed process loses nothing, a power failure may.
    #[default]
    Process,
    /// Files, directories and the journal (`fsync(2)`): a power failure loses nothing either.
    Disk,
}

/// Writes down what is about to be done.
pub(crate) struct Journal<'r> {
    roots: &'r Roots,
    durability: Durability,
    state: State,
    /// Where the journal is: places below are named from there, so that they are
    /// found again when all of it was moved.
    base: Option<PathBuf>,
    /// Where the kernel says that a directory is, asked once for each.
    paths: HashMap<FileId, PathBuf>,
}

enum State {
    /// There is none yet.
    New,
    Open(Open),
    /// No directory takes a journal from us so far: what it would say by now.
    Nowhere(Vec<u8>),
}

/// A journal that has its name; the lock tells others that its writer is alive.
struct Open {
    file: OwnedFd,
    dir: Dir,
    end_bytes: u64,
}

impl<'r> Journal<'r> {
    /// Prepares a journal; nothing is written before the first intent.
    pub(crate) fn new(roots: &'r Roots, durability: Durability) -> Self {
        Self {
            roots,
            durability,
            state: State::New,
            base: None,
            paths: HashMap::new(),
        }
    }

    /// Makes the journal, if there is none yet: in the workspace directory, or
    /// `beside` what is changed when that takes no names from us.
    ///
    /// It is there before anything is staged, so that no inode that was there
    /// before it can be one of the transaction's own.
    pub(crate) fn begin(&mut self, beside: &Dir) -> Result<(), Error> {
        let begun = match &mut self.state {
            State::Open(_) => return Ok(()),
            State::Nowhere(before) => begin_in([beside], std::mem::take(before)),
            State::New => match self.roots.workspace() {
                Some(root) => match begin_in([&root.dir], Vec::new()) {
                    Ok(State::Nowhere(nothing)) => self.begin_beside(beside, nothing),
                    begun => begun,
                },
                None => begin_in([beside], Vec::new()),
            },
        };
        self.state = begun.map_err(|error| self.failed(error))?;
        if let State::Open(open) = &self.state
            && let Ok(path) = sys::current_path(open.dir.as_fd())
        {
            let path = PathBuf::from(path);
            self.paths.insert(open.dir.id(), path.clone());
            self.base = Some(path);
        }
        Ok(())
    }

    /// A journal of somebody else may lie beside another file: look again, then.
    fn begin_beside(&self, beside: &Dir, records: Vec<u8>) -> io::Result<State> {
        match self.roots.find_journals() {
            Ok(found) if found.is_empty() => begin_in([beside], records),
            _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        }
    }

    /// Writes an intent.
    pub(crate) fn intend(&mut self, record: &Record) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let written = record
            .encode(&mut bytes)
            .and_then(|()| match &mut self.state {
                State::Open(open) => open.append(&bytes),
                State::Nowhere(before) => {
                    before.append(&mut bytes);
                    Ok(())
                }
                State::New => Err(io::ErrorKind::NotFound.into()),
            });
        written.map_err(|error| self.failed(error))?;
        self.sync()
    }

    /// Tells whether changes are made without a journal, since no directory takes one.
    pub(crate) fn is_nowhere(&self) -> bool {
        matches!(self.state, State::Nowhere(_))
    }

    /// Writes that everything is done: from here on the changes stay. After an
    /// error they do not.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        let State::Open(open) = &mut self.state else {
            return Ok(());
        };
        let end = open.end_bytes;
        let mut bytes = Vec::new();
        let written = (Record::Done.encode(&mut bytes)).and_then(|()| open.append(&bytes));
        let settled = written
            .map_err(|error| self.failed(error))
            .and_then(|()| self.sync());
        if let (Err(_), State::Open(open)) = (&settled, &self.state) {
            sys::truncate(open.file.as_fd(), end).during(Operation::Journal, &self.path())?;
        }
        settled
    }

    /// Removes the journal, once there is nothing left to recover.
    pub(crate) fn remove(self) -> Result<(), Error> {
        let path = self.path();
        let State::Open(open) = self.state else {
            return Ok(());
        };
        sys::unlink_at(open.dir.as_fd(), OsStr::new(JOURNAL_NAME))
            .during(Operation::Journal, &path)?;
        match self.durability {
            Durability::Process => Ok(()),
            Durability::Disk => {
                sys::sync_directory(open.dir.as_fd()).during(Operation::Sync, &path)
            }
        }
    }

    /// Returns how a later run finds a place: by the kernel's own path of its directory.
    pub(crate) fn place(&mut self, at: &Location) -> NamedPlace {
        NamedPlace {
            directory: self.directory(&at.dir, at.path()),
            directory_id: at.dir.id(),
            name: at.name.clone(),
        }
    }

    /// Returns the kernel's path of a directory that holds a temporary name.
    pub(crate) fn temporary(&mut self, dir: &Dir, name: &OsStr) -> NamedPlace {
        NamedPlace {
            directory: self.directory(dir, Path::new("/")),
            directory_id: dir.id(),
            name: name.to_os_string(),
        }
    }

    fn directory(&mut self, dir: &Dir, shown: &Path) -> OsString {
        let known = self.paths.entry(dir.id()).or_insert_with(|| {
            match sys::current_path(dir.as_fd()) {
                Ok(path) => PathBuf::from(path),
                // Without /proc there is only what was asked for.
                Err(_) => shown.parent().unwrap_or(shown).to_path_buf(),
            }
        });
        match &self.base {
            Some(base) => known.strip_prefix(base).unwrap_or(known).into(),
            None => known.clone().into(),
        }
    }

    fn sync(&self) -> Result<(), Error> {
        match (&self.state, self.durability) {
            (State::Open(open), Durability::Disk) => {
                open.sync().during(Operation::Sync, &self.path())
            }
            _ => Ok(()),
        }
    }

    fn path(&self) -> PathBuf {
        let root = self.roots.workspace();
        root.map_or_else(PathBuf::new, |root| root.path.join(JOURNAL_NAME))
    }

    /// A journal that is there already is another transaction's: look again.
    fn failed(&self, error: io::Error) -> Error {
        match error.raw_os_error() {
            Some(libc::EEXIST) => Error::new(Operation::Journal, &self.path(), ErrorKind::Changed),
            _ => Error::io(Operation::Journal, &self.path(), error),
        }
    }
}

/// Begins a journal in the first directory that takes one.
fn begin_in<'d>(dirs: impl IntoIterator<Item = &'d Dir>, records: Vec<u8>) -> io::Result<State> {
    for dir in dirs {
        match Open::create(dir, &records) {
            Err(error) if is_closed_to_us(&error) => {}
            result => return result.map(State::Open),
        }
    }
    Ok(State::Nowhere(records))
}

impl Open {
    /// Makes a journal that is locked, and names itself in its header, before anybody sees it.
    fn create(dir: &Dir, record: &[u8]) -> io::Result<Self> {
        match Self::create_unnamed(dir, record) {
            Err(error) if sys::lacks_unnamed(&error) => Self::create_named(dir, record),
            result => result,
        }
    }

    fn create_unnamed(dir: &Dir, record: &[u8]) -> io::Result<Self> {
        let flags = OFlag::O_TMPFILE | OFlag::O_RDWR;
        let fd = sys::make_at(dir.as_fd(), OsStr::new("."), flags, 0o600)?;
        let open = Self::begin(dir, fd, record)?;
        sys::link_unnamed(open.file.as_fd(), sys::pair(dir, OsStr::new(JOURNAL_NAME)))?;
        Ok(open)
    }

    /// For file systems without unnamed files: whoever finds it unlocked in the
    /// instant before the lock takes it for a dead one's and removes it.
    fn create_named(dir: &Dir, record: &[u8]) -> io::Result<Self> {
        let name = OsStr::new(JOURNAL_NAME);
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_RDWR | OFlag::O_NOFOLLOW;
        let fd = sys::make_at(dir.as_fd(), name, flags, 0o600)?;
        Self::begin_named(dir, fd, record).inspect_err(|error| {
            if !sys::is(error, libc::EEXIST) {
                let _ = sys::unlink_at(dir.as_fd(), name);
            }
        })
    }

    /// Begins a journal that others see already; it may be gone by then (`EEXIST`).
    fn begin_named(dir: &Dir, fd: OwnedFd, record: &[u8]) -> io::Result<Self> {
        let own = sys::stamp_fd(fd.as_fd())?.id;
        let open = Self::begin(dir, fd, record)?;
        match sys::stamp_at(dir.as_fd(), OsStr::new(JOURNAL_NAME))? {
            Some(found) if found.id == own => Ok(open),
            _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        }
    }

    fn begin(dir: &Dir, fd: OwnedFd, record: &[u8]) -> io::Result<Self> {
        match sys::try_lock(fd.as_fd()) {
            Ok(true) => {}
            Ok(false) => return Err(io::Error::from_raw_os_error(libc::EEXIST)),
            // Then nobody can tell that we live, and nobody takes anything back by himself.
            Err(error) if sys::lacks_locks(&error) => {}
            Err(error) => return Err(error),
        }
        let mut bytes = record::header(sys::stamp_fd(fd.as_fd())?)?;
        bytes.extend_from_slice(record);
        let mut open = Self {
            file: fd,
            dir: dir.clone(),
            end_bytes: 0,
        };
        open.append(&bytes)?;
        Ok(open)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        sys::write_all_at(self.file.as_fd(), bytes, self.end_bytes)?;
        self.end_bytes += bytes.len() as u64;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        sys::sync(self.file.as_fd())?;
        sys::sync_directory(self.dir.as_fd())
    }
}

/// The directory takes no new names from us.
fn is_closed_to_us(error: &io::Error) -> bool {
    [libc::EACCES, libc::EPERM, libc::EROFS]
        .iter()
        .any(|errno| sys::is(error, *errno))
}

/// Returns a journal's directory and name for a call.
fn named(dir: &Dir) -> (BorrowedFd<'_>, &OsStr) {
    (dir.as_fd(), OsStr::new(JOURNAL_NAME))
}
