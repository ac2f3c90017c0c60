//! Taking back, or finishing, what a killed transaction left.
//!
//! The journal may be forged, copied or old. So every place is resolved
//! beneath the roots like any path of a patch, guards included, and nothing is
//! touched but the very inodes that the journal names: by device, number and
//! time of birth. What is not as a killed transaction would have left it stays.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, SFlag};

use super::record::{Header, NamedPlace, Record, parse_header, parse_records};
use super::{JOURNAL_NAME, named};
use crate::dir::Dir;
use crate::entry::Entry;
use crate::error::{Context, Error, ErrorKind, Operation};
use crate::id::{Stamp, Time};
use crate::location::Location;
use crate::ops::restore_if_mixed;
use crate::roots::Roots;
use crate::step::{self, Undone};
use crate::sys;
use crate::temporary;

/// How long to wait between two looks at a journal whose writer is alive.
const PAUSE: Duration = Duration::from_millis(2);

/// Says which way a recovery went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Everything had been done; what was kept for the way back went.
    Completed,
    /// What had been done was taken back.
    RolledBack,
}

/// Names a change that a recovery left alone, because somebody else had been there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The place.
    pub path: PathBuf,
    /// Where the old file is kept, if it is.
    pub kept: Option<PathBuf>,
}

/// What a recovery did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Which way it went.
    pub direction: Direction,
    /// What it left alone.
    pub conflicts: Vec<Conflict>,
}

impl Roots {
    /// Recovers what killed transactions left: takes each back, or finishes it when
    /// all of it had been done. Their journals are looked for in the roots.
    ///
    /// A transaction that is alive is waited for, at most `timeout_ms`; then
    /// the error is [`ErrorKind::Busy`]. A file of the journal's name that is
    /// none is [`ErrorKind::NotAJournal`], another user's journal
    /// [`ErrorKind::ForeignOwner`]: what it says is what that user may do. A place
    /// outside the roots ([`ErrorKind::Outside`]), or one whose directory is not
    /// where it was ([`ErrorKind::Unreachable`]), keeps the journal and everything
    /// as it is.
    pub fn recover(&self, timeout_ms: u64) -> Result<Vec<Recovered>, Error> {
        let mut recovered = Vec::new();
        for root in self.distinct() {
            let path = root.path.join(JOURNAL_NAME);
            recovered.extend(self.recover_in(&root.dir, &path, timeout_ms)?);
        }
        Ok(recovered)
    }

    /// Recovers as [`Roots::recover`] does from journals that lie beside what was
    /// changed, because the workspace directory takes none from us; nothing where it does.
    pub fn recover_beside(&self, timeout_ms: u64) -> Result<Vec<Recovered>, Error> {
        if !self.is_closed() {
            return Ok(Vec::new());
        }
        let mut recovered = Vec::new();
        for at in self.find_journals()? {
            recovered.extend(self.recover_in(at.dir(), at.path(), timeout_ms)?);
        }
        Ok(recovered)
    }

    /// Tells whether a killed transaction left a journal where one is looked for.
    pub fn is_interrupted(&self) -> Result<bool, Error> {
        let in_roots = self.distinct();
        let mut places: Vec<(Dir, PathBuf)> = in_roots
            .map(|root| (root.dir.clone(), root.path.join(JOURNAL_NAME)))
            .collect();
        if self.is_closed() {
            let beside = self.find_journals()?.into_iter();
            places.extend(beside.map(|at| (at.dir, at.path)));
        }
        for (dir, path) in places {
            if let Some(Found::Dead(_)) = open(&dir).during(Operation::Recover, &path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells whether the workspace directory takes no names from us.
    fn is_closed(&self) -> bool {
        self.workspace()
            .is_some_and(|root| sys::may_write(root.dir.as_fd()).is_err())
    }

    fn recover_in(
        &self,
        dir: &Dir,
        path: &Path,
        timeout_ms: u64,
    ) -> Result<Option<Recovered>, Error> {
        const OP: Operation = Operation::Recover;
        let Some(journal) = wait(dir, timeout_ms).during(OP, path)? else {
            return Ok(None);
        };
        let fault = |kind| Error::new(OP, path, kind);
        let stamp = sys::stamp_fd(journal.as_fd()).during(OP, path)?;
        let stat = sys::stat_fd(journal.as_fd()).during(OP, path)?;
        let own_uid = nix::unistd::Uid::effective().as_raw();
        if is_plain(&stat) && stat.st_uid != own_uid {
            return Err(fault(ErrorKind::ForeignOwner { uid: stat.st_uid }));
        }
        let contents = match is_plain(&stat) {
            true => {
                let size = usize::try_from(stat.st_size).unwrap_or(0);
                sys::read_to_end(journal.as_fd(), size).during(OP, path)?
            }
            false => return Err(fault(ErrorKind::NotAJournal)),
        };
        let done = match parse_header(&contents) {
            Header::Begun => None,
            Header::Named { own, rest } if (own.id, own.birth) == (stamp.id, stamp.birth) => {
                let records = parse_records(rest).ok_or_else(|| fault(ErrorKind::NotAJournal))?;
                Some(self.carry_out(dir, own, &records)?)
            }
            Header::Named { .. } | Header::Foreign => return Err(fault(ErrorKind::NotAJournal)),
        };
        sys::unlink_at(named(dir).0, named(dir).1).during(OP, path)?;
        Ok(done)
    }

    fn carry_out(&self, dir: &Dir, own: Stamp, records: &[Record]) -> Result<Recovered, Error> {
        let made = records.iter().filter_map(|record| match record {
            Record::MakeDirectory { at } | Record::RemoveDirectory { at, .. } => Some(at.path()),
            _ => None,
        });
        let mut recovery = Recovery {
            roots: self,
            dir,
            base: sys::current_path(dir.as_fd()).map_or_else(|_| PathBuf::new(), PathBuf::from),
            made: made.collect(),
            own,
            conflicts: Vec::new(),
        };
        // All of it, or nothing is touched yet.
        for record in records {
            record
                .places()
                .try_for_each(|at| recovery.locate(at).map(drop))?;
        }
        let direction = match records.last() {
            Some(Record::Done) => Direction::Completed,
            _ => Direction::RolledBack,
        };
        match direction {
            Direction::Completed => records.iter().try_for_each(|it| recovery.finish(it))?,
            Direction::RolledBack => records.iter().rev().try_for_each(|it| recovery.undo(it))?,
        }
        Ok(Recovered {
            direction,
            conflicts: recovery.conflicts,
        })
    }
}

/// A journal that is there.
enum Found {
    /// Its writer is gone, and we hold it.
    Dead(OwnedFd),
    Alive,
}

/// Opens the journal, without waiting for a FIFO and without following a link.
fn open(dir: &Dir) -> io::Result<Option<Found>> {
    let (at, name) = named(dir);
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | sys::NO_SIDE_EFFECTS;
    loop {
        let fd = match sys::open_at(at, name, flags) {
            Err(error) if sys::is(&error, libc::ENOENT) => return Ok(None),
            result => result?,
        };
        let own = sys::stamp_fd(fd.as_fd())?.id;
        if !sys::try_lock(fd.as_fd())? {
            return Ok(Some(Found::Alive));
        }
        // Its writer may have removed it between our opening and our lock.
        if sys::stamp_at(at, name)?.is_some_and(|now| now.id == own) {
            return Ok(Some(Found::Dead(fd)));
        }
    }
}

fn wait(dir: &Dir, timeout_ms: u64) -> io::Result<Option<OwnedFd>> {
    let start = Instant::now();
    loop {
        match open(dir)? {
            None => return Ok(None),
            Some(Found::Dead(journal)) => return Ok(Some(journal)),
            Some(Found::Alive) if start.elapsed() < Duration::from_millis(timeout_ms) => {
                sleep(PAUSE);
            }
            Some(Found::Alive) => return Err(io::Error::from_raw_os_error(libc::EBUSY)),
        }
    }
}

/// Tells whether it is a regular file of one name.
fn is_plain(stat: &FileStat) -> bool {
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    kind == SFlag::S_IFREG && stat.st_nlink == 1
}

struct Recovery<'r> {
    roots: &'r Roots,
    /// The journal's directory, and its path now.
    dir: &'r Dir,
    base: PathBuf,
    /// Directories that the transaction made, or removes: they may be gone.
    made: Vec<PathBuf>,
    own: Stamp,
    conflicts: Vec<Conflict>,
}

impl Recovery<'_> {
    /// Takes one change back, from wherever it was interrupted.
    fn undo(&mut self, record: &Record) -> Result<(), Error> {
        match record {
            Record::Stage { temporary } => self.undo_stage(temporary),
            Record::Create { new, .. } | Record::Replace { new, .. } if !self.is_own(new) => Ok(()),
            Record::Create { at, new } => {
                self.settle(at, at, |place, _| step::undo_create(place, *new))
            }
            Record::Replace {
                at,
                temporary,
                new,
                old,
            } => {
                let undo = |place: step::Place<'_>, aside: step::Place<'_>| {
                    step::undo_replace(place, aside, *new, *old)
                };
                // Where there is no exchange the old file has a name of its own.
                let linked = at.beside(temporary::aside_of(temporary));
                if self.locate(&linked)?.is_some_and(|place| exists(&place)) {
                    self.settle(at, &linked, undo)?;
                }
                self.settle(at, &at.beside(temporary.clone()), undo)
            }
            Record::Remove { at, temporary, old } => {
                let aside = at.beside(temporary.clone());
                self.settle(at, &aside, |place, aside| {
                    step::undo_move(aside, place, *old)
                })
            }
            Record::Rename { from, to, moved } => {
                self.settle(from, to, |from, to| step::undo_move(to, from, *moved))
            }
            Record::MakeDirectory { at } => self.undo_directory(at),
            Record::Rewrite {
                at,
                file,
                accessed,
                old,
                new,
            } => {
                let times = (*accessed, file.modified);
                self.undo_rewrite(at, file, times, (old, new))
            }
            Record::RemoveDirectory { .. } | Record::Done => Ok(()),
        }
    }

    /// Drops what one change kept for the way back.
    fn finish(&mut self, record: &Record) -> Result<(), Error> {
        let (at, temporary, old) = match record {
            Record::Replace {
                at, temporary, old, ..
            }
            | Record::Remove { at, temporary, old } => (at, temporary, old),
            Record::RemoveDirectory { at, directory } => {
                return self.remove_directory(at, |found| found.id == *directory);
            }
            _ => return Ok(()),
        };
        for name in [temporary::aside_of(temporary), temporary.clone()] {
            self.remove_temporary(&at.beside(name), |found| found.is_same_inode(old))?;
        }
        Ok(())
    }

    /// Undoes a change of two places, and notes it when something foreign
    /// stands in the way.
    fn settle(
        &mut self,
        at: &NamedPlace,
        other: &NamedPlace,
        undo: impl Fn(step::Place<'_>, step::Place<'_>) -> io::Result<Undone>,
    ) -> Result<(), Error> {
        let (Some(one), Some(two)) = (self.locate(at)?, self.locate(other)?) else {
            return Ok(());
        };
        match undo(
            sys::pair(&one.dir, &one.name),
            sys::pair(&two.dir, &two.name),
        ) {
            Ok(Undone::Yes) => Ok(()),
            Ok(Undone::Foreign) => self.conflict(at, other),
            Err(error) if sys::is(&error, libc::EEXIST) => self.conflict(at, other),
            Err(error) => Err(error).during(Operation::Recover, one.path()),
        }
    }

    fn conflict(&mut self, at: &NamedPlace, kept: &NamedPlace) -> Result<(), Error> {
        let kept = match is_temporary(&kept.name) {
            true => self
                .locate(kept)?
                .filter(exists)
                .map(|_| self.base.join(kept.path())),
            false => None,
        };
        let told = |it: &Conflict| kept.is_some() && it.kept == kept;
        if !self.conflicts.iter().any(told) {
            let path = self.base.join(at.path());
            self.conflicts.push(Conflict { path, kept });
        }
        Ok(())
    }

    /// Finds a place again; nothing where it is gone, or was never ours to touch.
    fn locate(&self, at: &NamedPlace) -> Result<Option<Location>, Error> {
        if at.name.as_bytes().contains(&b'/') {
            return Ok(None);
        }
        match self.roots.resolve(&self.base.join(at.path())) {
            Ok(location) if location.missing().is_empty() => {
                match location.dir().id() == at.directory_id {
                    true => Ok(Some(location)),
                    false => self.unreachable(at, location.path()),
                }
            }
            Ok(location) => self.unreachable(at, location.path()),
            Err(error) => match error.kind() {
                ErrorKind::Outside { .. } | ErrorKind::Os | ErrorKind::PermissionDenied => {
                    Err(error)
                }
                // No transaction was ever there.
                ErrorKind::Guarded { .. } => Ok(None),
                _ => self.unreachable(at, error.path()),
            },
        }
    }

    /// What lay in a directory that was made may be gone with it; otherwise it is
    /// somewhere else now, and nobody knows where.
    fn unreachable(&self, at: &NamedPlace, shown: &Path) -> Result<Option<Location>, Error> {
        match self.made.iter().any(|made| at.path().starts_with(made)) {
            true => Ok(None),
            false => Err(Error::new(
                Operation::Recover,
                shown,
                ErrorKind::Unreachable,
            )),
        }
    }

    /// Tells whether an inode can be one that the transaction made. On another
    /// file system the clock may be another.
    fn is_own(&self, new: &Stamp) -> bool {
        new.id.dev != self.own.id.dev || is_younger(new, &self.own)
    }

    fn undo_stage(&mut self, temporary: &NamedPlace) -> Result<(), Error> {
        let own = self.own;
        self.remove_temporary(temporary, |found| is_younger(found, &own))
    }

    /// Removes a name that only we could have given, when its inode is the one.
    fn remove_temporary(
        &mut self,
        temporary: &NamedPlace,
        is_ours: impl Fn(&Stamp) -> bool,
    ) -> Result<(), Error> {
        if !is_temporary(&temporary.name) {
            return Ok(());
        }
        let Some(place) = self.locate(temporary)? else {
            return Ok(());
        };
        let (dir, name) = sys::pair(&place.dir, &place.name);
        let found = sys::stamp_at(dir, name).during(Operation::Recover, place.path())?;
        match found {
            None => Ok(()),
            Some(found) if is_ours(&found) => {
                sys::unlink_at(dir, name).during(Operation::Recover, place.path())
            }
            Some(_) => self.conflict(temporary, temporary),
        }
    }

    /// Removes a directory that was made since the journal, and is empty.
    fn undo_directory(&mut self, at: &NamedPlace) -> Result<(), Error> {
        let own = self.own;
        self.remove_directory(at, |found| is_younger(found, &own))
    }

    fn remove_directory(
        &mut self,
        at: &NamedPlace,
        is_ours: impl Fn(&Stamp) -> bool,
    ) -> Result<(), Error> {
        let Some(place) = self.locate(at)? else {
            return Ok(());
        };
        let (dir, name) = sys::pair(&place.dir, &place.name);
        let found = sys::stamp_at(dir, name).during(Operation::Recover, place.path())?;
        if !found.is_some_and(|found| is_ours(&found)) {
            return Ok(());
        }
        step::remove_if_empty((dir, name)).during(Operation::Recover, place.path())
    }

    /// Puts old bytes back into a file that holds nothing but old and new ones.
    fn undo_rewrite(
        &mut self,
        at: &NamedPlace,
        file: &Stamp,
        times: (Time, Time),
        (old, new): (&[u8], &[u8]),
    ) -> Result<(), Error> {
        let Some(place) = self.locate(at)? else {
            return Ok(());
        };
        let restored = match self.roots.entry(&place)? {
            Entry::File(pinned) if pinned.stamp()?.is_rewritten(file) => {
                restore_if_mixed(&pinned, (old, new), times)?
            }
            _ => false,
        };
        match restored {
            true => Ok(()),
            false => self.keep_old(at, old),
        }
    }

    /// Puts the old bytes of a file that has others by now beside the journal.
    fn keep_old(&mut self, at: &NamedPlace, old: &[u8]) -> Result<(), Error> {
        const OP: Operation = Operation::Recover;
        let shown = self.base.join(at.path());
        let name = temporary::name("-old").during(OP, &shown)?;
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW;
        let file = sys::make_at(self.dir.as_fd(), &name, flags, 0o600).during(OP, &shown)?;
        sys::write_all_at(file.as_fd(), old, 0).during(OP, &shown)?;
        let kept = Some(self.base.join(name));
        self.conflicts.push(Conflict { path: shown, kept });
        Ok(())
    }
}

fn exists(place: &Location) -> bool {
    let (dir, name) = sys::pair(&place.dir, &place.name);
    matches!(sys::stamp_at(dir, name), Ok(Some(_)))
}

/// Tells whether an inode was made after the journal was.
fn is_younger(found: &Stamp, journal: &Stamp) -> bool {
    let made = |stamp: &Stamp| stamp.birth.unwrap_or(stamp.modified);
    made(found) >= made(journal)
}

/// Tells whether a name has the shape of a temporary one.
fn is_temporary(name: &OsString) -> bool {
    temporary::is_temporary(name.as_bytes())
}
