//! The records of applied patches, one file each.
//!
//! A record begins without a name, as an inode that the sandboxed stage can
//! write by descriptor and by nothing else. It gets its name when the stage has
//! ended well; so a process that is killed leaves nothing. Processes share the
//! directory without locks: names are unique, they appear whole, and of two
//! that sweep the same name one finds it gone.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, RenameFlags, Stat, fstat, linkat, openat,
    renameat_with, seek, unlinkat,
};
use rustix::io::Errno;

use super::header::{END_BYTES, Header, HeaderError, header_bytes};
use super::name::{self, Id, Name, workspace_key};
use super::retention::{self, MOST_BYTES};
use super::{Base, Missing, NoState, Root};

/// The directory of the records.
const NAME: &str = "undo";

const RECORD: Mode = Mode::RUSR.union(Mode::WUSR);

/// Mode bits that no record has: others' rights, and what changes ids.
const UNWANTED: u32 = 0o7077;

/// All records of a user.
#[derive(Debug)]
pub struct Store {
    dir: OwnedFd,
    /// The effective user, whose all records are.
    uid: u32,
    /// Whether the directory was read before, and must be rewound.
    was_read: Cell<bool>,
}

/// What one workspace has.
#[derive(Debug, Default)]
pub struct Listing {
    /// The transactions, newest first.
    pub entries: Vec<Entry>,
    /// What could not be read, and why.
    pub unreadable: Vec<(Id, ReadError)>,
}

/// A transaction of the list.
#[derive(Debug)]
pub struct Entry {
    /// Its short name.
    pub id: Id,
    /// What is known about it.
    pub header: Header,
}

/// A record that was opened and checked.
#[derive(Debug)]
pub struct Record {
    /// What the outer stage wrote.
    pub header: Header,
    /// The file, for reading, at its beginning.
    pub file: File,
    /// The size of what the sandboxed stage wrote: untrusted bytes, from the
    /// beginning of the file.
    pub body_bytes: u64,
}

/// A record by its id, if it can be read.
pub type Opened = (Id, Result<Record, ReadError>);

/// Says why a record was not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// A call failed.
    #[error("failed to {step} the undo record: {source}")]
    Os {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The sandboxed stage wrote more than all records together may have.
    #[error("the undo record has {0} bytes, at most {MOST_BYTES} are kept")]
    TooLarge(u64),
    /// The file is not what was begun.
    #[error("the undo record was tampered with")]
    Tampered,
    /// The header cannot be written.
    #[error("{0}")]
    Header(#[from] HeaderError),
}

/// Says why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none with this id.
    #[error("there is no transaction {0}")]
    Unknown(Id),
    /// A call failed.
    #[error("failed to {step} the undo record: {source}")]
    Os {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// It is not what was kept: no regular file of the user's own with one
    /// name, or of another size.
    #[error("the undo record is not the file that was kept")]
    NotOurs,
    /// Its header cannot be read.
    #[error("{0}")]
    Header(#[from] HeaderError),
}

fn kept_os(step: &'static str) -> impl FnOnce(Errno) -> NotKept {
    move |errno| NotKept::Os {
        step,
        source: errno.into(),
    }
}

fn read_os<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> ReadError {
    move |error| ReadError::Os {
        step,
        source: error.into(),
    }
}

impl Store {
    /// Opens the records, which must lie outside of every root.
    pub fn open(base: &Base, roots: &[Root], missing: Missing) -> Result<Self, NoState> {
        let uid = rustix::process::geteuid().as_raw();
        let dir = super::directory::open(base, NAME, roots, missing, uid)?;
        Ok(Self {
            dir,
            uid,
            was_read: Cell::new(false),
        })
    }

    /// Begins a record without a name; where the file system has no such
    /// files, one with a temporary name that dropping takes away.
    pub fn begin(&self) -> Result<Pending<'_>, NoState> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        match openat(&self.dir, ".", flags, RECORD) {
            Ok(file) => Ok(Pending {
                store: self,
                file: Arc::new(file),
                temporary: None,
            }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => self.begin_named(),
            Err(errno) => Err(NoState::os("begin a record in", NAME, errno)),
        }
    }

    fn begin_named(&self) -> Result<Pending<'_>, NoState> {
        let time = now();
        let name = name::temporary(time, time ^ u64::from(std::process::id()) << 40);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.dir, &name, flags, RECORD)
            .map_err(|errno| NoState::os("begin a record in", NAME, errno))?;
        Ok(Pending {
            store: self,
            file: Arc::new(file),
            temporary: Some(name),
        })
    }

    /// Lists the transactions of a workspace, newest first.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read; records that cannot are part of the list.
    pub fn list(&self, workspace: &Path) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for (id, record) in self.records(workspace)? {
            match record {
                Ok(Record { header, .. }) => listing.entries.push(Entry { id, header }),
                Err(error) => listing.unreadable.push((id, error)),
            }
        }
        Ok(listing)
    }

    /// Opens the newest record of a workspace: an error when it cannot be read, and
    /// not the one before it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub fn newest(&self, workspace: &Path) -> io::Result<Option<Opened>> {
        Ok(self.records(workspace)?.next())
    }

    /// Opens one record of a workspace after the other, newest first.
    fn records(&self, workspace: &Path) -> io::Result<impl Iterator<Item = Opened>> {
        let mut names = self.names()?.kept;
        names.retain(|name| name.workspace == workspace_key(workspace));
        names.sort_by_key(|name| std::cmp::Reverse(name.time));
        let opened = names
            .into_iter()
            .map(|name| (name.id, self.open_record(&name)));
        Ok(opened.filter(move |(_, record)| match record {
            Ok(Record { header, .. }) => header.workspace.path == workspace,
            // Another process swept it meanwhile.
            Err(error) => !matches!(error, ReadError::Unknown(_)),
        }))
    }

    /// Opens the record of a transaction.
    ///
    /// # Errors
    ///
    /// When there is none, or it is not one that was kept.
    pub fn read(&self, id: Id) -> Result<Record, ReadError> {
        self.open_record(&self.find(id)?)
    }

    /// Removes the record of a transaction.
    ///
    /// # Errors
    ///
    /// When there is none, or the directory cannot be written.
    pub fn remove(&self, id: Id) -> Result<(), ReadError> {
        let name = self.find(id)?;
        match unlinkat(&self.dir, name.to_string(), AtFlags::empty()) {
            Err(Errno::NOENT) => Err(ReadError::Unknown(id)),
            other => other.map_err(read_os("remove")),
        }
    }

    fn find(&self, id: Id) -> Result<Name, ReadError> {
        let names = self.names().map_err(read_os("find"))?;
        let found = names.kept.into_iter().find(|name| name.id == id);
        found.ok_or(ReadError::Unknown(id))
    }

    fn open_record(&self, name: &Name) -> Result<Record, ReadError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = openat(
            &self.dir,
            name.to_string(),
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let file = match opened {
            Err(Errno::NOENT) => return Err(ReadError::Unknown(name.id)),
            Err(Errno::LOOP) => return Err(ReadError::NotOurs),
            other => File::from(other.map_err(read_os("open"))?),
        };
        let stat = fstat(&file).map_err(read_os("look at"))?;
        let bytes = size(&stat);
        if !self.is_plain(&stat)
            || stat.st_nlink != 1
            || bytes != name.bytes
            || bytes > MOST_RECORD_BYTES
        {
            return Err(ReadError::NotOurs);
        }
        let (header, body_bytes) = read_header(&file, bytes)?;
        Ok(Record {
            header,
            file,
            body_bytes,
        })
    }

    fn is_plain(&self, stat: &Stat) -> bool {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == self.uid
            && stat.st_mode & UNWANTED == 0
    }

    fn names(&self) -> io::Result<Names> {
        if self.was_read.replace(true) {
            seek(&self.dir, rustix::fs::SeekFrom::Start(0))?;
        }
        let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let mut entries = RawDir::new(self.dir.as_fd(), &mut buffer);
        let mut names = Names::default();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(text) = entry.file_name().to_str() else {
                continue;
            };
            if let Some(name) = Name::parse(text) {
                names.kept.push(name);
            } else if let Some(begun) = name::begun(text) {
                names.temporary.push((begun, text.to_owned()));
            }
        }
        Ok(names)
    }

    /// Removes what is no longer kept. What cannot be removed, or is gone
    /// already, is the next one's business.
    fn sweep(&self, names: &Names, newest: &Name, now: u64) {
        let superfluous = retention::superfluous(&names.kept, newest);
        let stale = names.temporary.iter();
        let stale = stale.filter(|(begun, _)| retention::is_stale(*begun, now));
        let texts = superfluous.iter().map(ToString::to_string);
        for text in texts.chain(stale.map(|(_, text)| text.clone())) {
            let _ = unlinkat(&self.dir, text, AtFlags::empty());
        }
    }
}

/// The largest record: its body, and a header that comes on top.
const MOST_RECORD_BYTES: u64 = MOST_BYTES + 2 * super::header::MOST_HEADER_BYTES as u64;

/// The names in the directory that are ours.
#[derive(Debug, Default)]
struct Names {
    kept: Vec<Name>,
    temporary: Vec<(u64, String)>,
}

/// A record in the making.
#[derive(Debug)]
pub struct Pending<'a> {
    store: &'a Store,
    file: Arc<OwnedFd>,
    temporary: Option<String>,
}

impl Pending<'_> {
    /// Returns a descriptor for the stage that writes the body: it appends, and
    /// cannot read. Whoever has it can change this record and nothing else.
    pub fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    /// Tells whether a stage has written anything.
    pub fn is_written(&self) -> bool {
        fstat(&self.file).is_ok_and(|stat| size(&stat) > 0)
    }

    /// Gives the record its header and its name, and sweeps what is superfluous;
    /// nothing when the stage has recorded nothing.
    ///
    /// Every process that had the descriptor must have ended.
    ///
    /// # Errors
    ///
    /// When the record cannot be kept; then nothing of it is left.
    pub fn keep(mut self, header: impl FnOnce() -> Header) -> Result<Option<Id>, NotKept> {
        let stat = fstat(&self.file).map_err(kept_os("look at"))?;
        let names_now = u64::from(self.temporary.is_some());
        if !self.store.is_plain(&stat) || stat.st_nlink as u64 != names_now {
            return Err(NotKept::Tampered);
        }
        if size(&stat) == 0 {
            return Ok(None);
        }
        let header = header();
        let end = header.encode()?;
        let body = size(&stat);
        if body > MOST_BYTES {
            return Err(NotKept::TooLarge(body));
        }
        self.write_end(body, &end)?;
        let names = self.store.names().map_err(|source| NotKept::Os {
            step: "list what is beside",
            source,
        })?;
        let now = now();
        let bytes = body + end.len() as u64;
        let workspace = &header.workspace.path;
        let name = next_name(&names.kept, now, stat.st_ino, workspace, bytes);
        self.publish(&name.to_string()).map_err(kept_os("name"))?;
        self.store.sweep(&names, &name, now);
        Ok(Some(name.id))
    }

    /// Writes the end at a place of its own: the stage could have moved the
    /// offset, or taken the append mode away, on the description that it shares.
    fn write_end(&self, at: u64, mut end: &[u8]) -> Result<(), NotKept> {
        let mut at = at;
        while !end.is_empty() {
            match rustix::io::pwrite(&self.file, end, at) {
                Ok(0) => return Err(kept_os("write")(Errno::IO)),
                Ok(written) => {
                    at += written as u64;
                    end = end.get(written..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(kept_os("write")(errno)),
            }
        }
        Ok(())
    }

    fn publish(&mut self, name: &str) -> Result<(), Errno> {
        let dir = &self.store.dir;
        match &self.temporary {
            None => {
                let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, path, dir, name, AtFlags::SYMLINK_FOLLOW)?;
            }
            Some(temporary) => {
                match renameat_with(dir, temporary, dir, name, RenameFlags::NOREPLACE) {
                    // No such flag on this file system; the name is unique all the same.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        rustix::fs::renameat(dir, temporary, dir, name)?
                    }
                    other => other?,
                }
            }
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            // What cannot be removed now is swept when it is stale.
            let _ = unlinkat(&self.store.dir, name, AtFlags::empty());
        }
    }
}

/// Chooses a name that sorts behind all others, also when the clock was put back.
/// Records that are kept at one time differ in their inode.
fn next_name(names: &[Name], now: u64, inode: u64, workspace: &Path, bytes: u64) -> Name {
    let newest = names.iter().map(|name| name.time).max();
    let time = newest.map_or(now, |newest| now.max(newest.saturating_add(1)));
    Name {
        time,
        id: Id::fresh(now ^ inode << 40, names),
        workspace: workspace_key(workspace),
        bytes,
    }
}

fn read_header(file: &File, bytes: u64) -> Result<(Header, u64), ReadError> {
    let mut end = [0; END_BYTES];
    let end_at = bytes.checked_sub(END_BYTES as u64);
    let end_at = end_at.ok_or(HeaderError::NoHeader)?;
    file.read_exact_at(&mut end, end_at)
        .map_err(read_os("read"))?;
    let length = header_bytes(end)?;
    let body_bytes = end_at.checked_sub(length as u64);
    let body_bytes = body_bytes.ok_or(HeaderError::NoHeader)?;
    let mut text = vec![0; length];
    file.read_exact_at(&mut text, body_bytes)
        .map_err(read_os("read"))?;
    Ok((Header::decode(&text)?, body_bytes))
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(u64::MAX)
}

/// Returns the nanoseconds since 1970; enough for five centuries.
fn now() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
