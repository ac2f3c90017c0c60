//! Changes of which all happen, or none: each is written into the journal
//! before it is made, and kept until all of them are there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::dir::Dir;
use crate::error::{Context, Error, Operation};
use crate::id::FileId;
use crate::journal::{Durability, Journal, Record};
use crate::location::Location;
use crate::ops::{self, Attributes, Staged};
use crate::pinned::Pinned;
use crate::roots::Roots;
use crate::step::{Change, Step};
use crate::sys;
use crate::temporary;

/// Makes changes beneath roots, to be settled or rolled back together.
///
/// One that is dropped does neither: its journal stays for whoever recovers.
#[must_use = "a transaction has to be settled or rolled back"]
pub struct Transaction<'r> {
    journal: Journal<'r>,
    durability: Durability,
    steps: Vec<Step>,
    /// The directories that have to reach the disk.
    touched: BTreeMap<FileId, Dir>,
    /// A change that failed and could not take itself back.
    damaged: Option<Error>,
}

/// Says why changes could not be made to stay, and what became of them.
#[derive(Debug)]
pub struct Unsettled {
    /// Why.
    pub source: Error,
    /// Whether all of them were taken back.
    pub rolled_back: Result<(), Error>,
}

impl<'r> Transaction<'r> {
    /// Begins a transaction; nothing is written before its first change.
    pub fn begin(roots: &'r Roots, durability: Durability) -> Self {
        Self {
            journal: Journal::new(roots, durability),
            durability,
            steps: Vec::new(),
            touched: BTreeMap::new(),
            damaged: None,
        }
    }

    /// Stages a new inode as [`stage`](crate::stage) does.
    pub fn stage(
        &mut self,
        dir: &Dir,
        bytes: &[u8],
        attributes: Attributes<'_>,
    ) -> Result<Staged, Error> {
        self.journal.begin(dir)?;
        let staged = ops::stage_telling(dir, bytes, attributes, |name| {
            let temporary = self.journal.temporary(dir, name);
            self.journal.intend(&Record::Stage { temporary })
        })?;
        if self.durability == Durability::Disk {
            staged
                .sync()
                .during(Operation::Sync, Path::new("a new file"))?;
        }
        Ok(staged)
    }

    /// Stages a symbolic link: [`Transaction::create`] gives it its name.
    pub fn stage_link(&mut self, dir: &Dir, target: &OsStr) -> Result<Staged, Error> {
        self.journal.begin(dir)?;
        ops::stage_link(dir, target, |name| {
            let temporary = self.journal.temporary(dir, name);
            self.journal.intend(&Record::Stage { temporary })
        })
    }

    /// Removes a directory once everything else is done, if it is empty then and
    /// still the one that has this identity.
    pub fn remove_directory(&mut self, at: &Location, directory: FileId) -> Result<(), Error> {
        self.journal.begin(&at.dir)?;
        at.ready(Operation::Remove)?;
        let record = Record::RemoveDirectory {
            at: self.journal.place(at),
            directory,
        };
        self.journal.intend(&record)?;
        self.made(Ok(Step::new(at, Change::RemovesDirectory(directory))), at)
    }

    /// Gives a staged inode a free name, as [`create`](crate::create) does.
    pub fn create(&mut self, staged: Staged, at: &Location) -> Result<(), Error> {
        self.journal.begin(&at.dir)?;
        let (new, _) = staged.told_by();
        let at_place = self.journal.place(at);
        self.journal.intend(&Record::Create { at: at_place, new })?;
        self.made(ops::create(staged, at), at)
    }

    /// Puts a staged inode in the place of another, as [`replace`](crate::replace) does.
    pub fn replace(
        &mut self,
        staged: Staged,
        at: &Location,
        expected: &Pinned,
    ) -> Result<(), Error> {
        self.journal.begin(&at.dir)?;
        let (new, temporary) = staged.told_by();
        let record = Record::Replace {
            at: self.journal.place(at),
            temporary,
            new,
            old: expected.stamp()?,
        };
        self.journal.intend(&record)?;
        self.made(ops::replace(staged, at, expected), at)
    }

    /// Makes a name another one of the file at `source`, as [`relink`](crate::relink) does.
    pub fn relink(
        &mut self,
        source: &Location,
        at: &Location,
        expected: &Pinned,
    ) -> Result<(), Error> {
        const OP: Operation = Operation::Relink;
        self.journal.begin(&at.dir)?;
        let (dir, name) = source.ready(OP)?;
        let new = sys::stamp_at(dir, name).during(OP, source.path())?;
        let new = new.ok_or_else(|| Error::new(OP, source.path(), crate::ErrorKind::Changed))?;
        let temporary = temporary::name("-new").during(OP, at.path())?;
        let record = Record::Replace {
            at: self.journal.place(at),
            temporary: temporary.clone(),
            new,
            old: expected.stamp()?,
        };
        self.journal.intend(&record)?;
        self.made(ops::relink_as(source, at, expected, &temporary), at)
    }

    /// Removes a name, as [`remove`](crate::remove) does.
    pub fn remove(&mut self, at: &Location, expected: &Pinned) -> Result<(), Error> {
        self.journal.begin(&at.dir)?;
        let temporary = temporary::name("-old").during(Operation::Remove, at.path())?;
        let record = Record::Remove {
            at: self.journal.place(at),
            temporary: temporary.clone(),
            old: expected.stamp()?,
        };
        self.journal.intend(&record)?;
        self.made(ops::remove_as(at, expected, &temporary), at)
    }

    /// Moves a name to a free place, as [`rename`](crate::rename) does.
    pub fn rename(
        &mut self,
        from: &Location,
        to: &Location,
        expected: &Pinned,
    ) -> Result<(), Error> {
        self.journal.begin(&from.dir)?;
        let record = Record::Rename {
            from: self.journal.place(from),
            to: self.journal.place(to),
            moved: expected.stamp()?,
        };
        self.journal.intend(&record)?;
        self.touch(to);
        self.made(ops::rename(from, to, expected), from)
    }

    /// Writes new content into a file, as [`rewrite`](crate::rewrite) does; the
    /// journal keeps the old.
    pub fn rewrite(&mut self, at: &Location, expected: &Pinned, bytes: &[u8]) -> Result<(), Error> {
        self.journal.begin(&at.dir)?;
        let record = Record::Rewrite {
            at: self.journal.place(at),
            file: expected.stamp()?,
            accessed: expected.accessed(),
            old: expected.read()?,
            new: bytes.to_vec(),
        };
        self.journal.intend(&record)?;
        self.made(ops::rewrite(at, expected, bytes), at)
    }

    /// Makes the missing parents of a place, as
    /// [`make_directories`](crate::make_directories) does.
    pub fn make_directories(&mut self, at: &Location) -> Result<Location, Error> {
        self.journal.begin(at.dir())?;
        let journal = &mut self.journal;
        let made = ops::make_directories_telling(at, |dir, name| {
            let at = journal.temporary(dir, name);
            journal.intend(&Record::MakeDirectory { at })
        });
        let (ready, step) = made.inspect_err(|error| self.damage(error))?;
        self.touch(at);
        self.touch(&ready);
        self.steps.push(step);
        Ok(ready)
    }

    /// Makes the changes stay, and returns what could not be tidied up: the
    /// next run does it.
    ///
    /// An error means that they could not be settled; then they were rolled back.
    pub fn settle(mut self) -> Result<Vec<Error>, Box<Unsettled>> {
        let settled = self.sync().and_then(|()| self.journal.settle());
        if let Err(source) = settled {
            let rolled_back = self.roll_back();
            return Err(Box::new(Unsettled {
                source,
                rolled_back,
            }));
        }
        let left: Vec<Error> = self
            .steps
            .into_iter()
            .filter_map(|step| step.finish().err())
            .collect();
        if !left.is_empty() {
            return Ok(left);
        }
        Ok(self.journal.remove().err().into_iter().collect())
    }

    /// Takes all changes back, the last one first, and goes on when one cannot be.
    ///
    /// The error is the first one's; what somebody else changed meanwhile stays.
    pub fn roll_back(self) -> Result<(), Error> {
        let stuck: Vec<Error> = (self.steps.into_iter().rev())
            .filter_map(|step| step.undo().err())
            .collect();
        // What the kernel refuses now the next run may be able to do.
        let later = self.damaged.is_some() || stuck.iter().any(|error| error.errno().is_some());
        let removed = match later {
            true => Ok(()),
            false => self.journal.remove(),
        };
        match self.damaged.or(stuck.into_iter().next()) {
            Some(error) => Err(error),
            None => removed,
        }
    }

    /// Tells whether changes were made that a kill could have left half done: no
    /// directory takes a journal, so files were written in place only.
    pub fn is_unjournaled(&self) -> bool {
        self.journal.is_nowhere()
    }

    fn made(&mut self, step: Result<Step, Error>, at: &Location) -> Result<(), Error> {
        let step = step.inspect_err(|error| self.damage(error))?;
        self.touch(at);
        self.steps.push(step);
        Ok(())
    }

    fn damage(&mut self, error: &Error) {
        if error.operation() == Operation::Undo {
            let again = Error::new(error.operation(), error.path(), error.kind().clone());
            self.damaged.get_or_insert(again);
        }
    }

    fn touch(&mut self, at: &Location) {
        if self.durability == Durability::Disk {
            self.touched.insert(at.dir.id(), at.dir.clone());
        }
    }

    fn sync(&self) -> Result<(), Error> {
        for step in &self.steps {
            step.sync().during(Operation::Sync, step.path())?;
        }
        for dir in self.touched.values() {
            let path =
                sys::current_path(dir.as_fd()).map_or_else(|_| PathBuf::new(), PathBuf::from);
            sys::sync_directory(dir.as_fd()).during(Operation::Sync, &path)?;
        }
        Ok(())
    }
}
