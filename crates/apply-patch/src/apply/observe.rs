//! Looks at every path that a patch names, once, and reads what must be read.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use safe_fs::{Entry, ErrorKind, Location, Pinned, Roots, SavedAttributes};

use crate::failure::{Cause, LinkHop, SpecialKind};
use crate::plan::snapshot::{
    FileState, LinkState, PlaceKey, ResolvedPath, Slot, SlotId, SlotState, Snapshot,
};
use crate::syntax::ast::{Body, Operation, Patch};

const ENOENT: i32 = 2;
const EIO: i32 = 5;
const ENOTDIR: i32 = 20;
const ELOOP: i32 = 40;

/// What was seen, and the descriptors by which it is held.
pub struct Observed {
    snapshot: Snapshot,
    places: Vec<Held>,
    saved: BTreeMap<SlotId, SavedAttributes>,
}

/// One place, held open.
struct Held {
    location: Location,
    pinned: Option<Pinned>,
}

impl Observed {
    /// Returns what was seen as plain data.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns where a slot is.
    pub fn location(&self, slot: SlotId) -> &Location {
        &self.places[slot.0].location
    }

    /// Returns the attributes that a record has for what a place lost.
    pub fn saved(&self, slot: SlotId) -> Option<&SavedAttributes> {
        self.saved.get(&slot)
    }

    /// Remembers the attributes that a record has for what a place lost.
    pub fn remember(&mut self, slot: SlotId, attributes: SavedAttributes) {
        self.saved.insert(slot, attributes);
    }

    /// Returns the descriptor of what was at a slot, if anything was.
    pub fn pinned(&self, slot: SlotId) -> Option<&Pinned> {
        self.places[slot.0].pinned.as_ref()
    }
}

/// Observes places that no patch names: those of a record. Files are read when
/// `is_read` asks for it; a place that cannot be looked at has no slot.
pub fn observe_places<'p>(
    paths: impl Iterator<Item = &'p Path>,
    roots: &Roots,
    is_read: impl Fn(&Path) -> bool,
) -> (Observed, BTreeMap<PathBuf, Result<SlotId, Cause>>) {
    let mut observer = Observer {
        roots,
        seen: Observed::empty(),
    };
    let mut slots = BTreeMap::new();
    for path in paths {
        if slots.contains_key(path) {
            continue;
        }
        let found = roots.resolve(path).map_err(|error| cause_of(&error));
        let slot = found.and_then(|location| observer.place(location));
        let absolute = lexical(roots.base_path(), path);
        let resolved = ResolvedPath {
            absolute,
            slot: slot.clone(),
        };
        observer
            .seen
            .snapshot
            .insert_path(&path.to_string_lossy(), resolved);
        if let (Ok(slot), true) = (&slot, is_read(path)) {
            observer.read_slot(*slot);
        }
        slots.insert(path.to_path_buf(), slot);
    }
    (observer.seen, slots)
}

/// Observes every path of the patch.
pub fn observe(patch: &Patch<'_>, roots: &Roots) -> Observed {
    let mut observer = Observer {
        roots,
        seen: Observed::empty(),
    };
    for operation in &patch.operations {
        observer.path(operation.path);
        if let Body::Update {
            move_to: Some(to), ..
        } = &operation.body
        {
            observer.path(to.path);
        }
    }
    let named = observer.named(patch);
    for operation in &patch.operations {
        observer.read(operation, &named);
    }
    observer.seen
}

impl Observed {
    fn empty() -> Self {
        Self {
            snapshot: Snapshot::default(),
            places: Vec::new(),
            saved: BTreeMap::new(),
        }
    }
}

struct Observer<'r> {
    roots: &'r Roots,
    seen: Observed,
}

impl Observer<'_> {
    fn path(&mut self, path: &str) {
        if self.seen.snapshot.path(path).is_some() {
            return;
        }
        let absolute = lexical(self.roots.base_path(), Path::new(path));
        let slot = match self.roots.resolve(Path::new(path)) {
            Ok(location) => self.place(location),
            Err(error) => Err(cause_of(&error)),
        };
        self.seen
            .snapshot
            .insert_path(path, ResolvedPath { absolute, slot });
    }

    fn place(&mut self, location: Location) -> Result<SlotId, Cause> {
        let key = place_key(&location);
        if let Some(known) = self.seen.snapshot.find(&key) {
            return Ok(known);
        }
        let entry = self
            .roots
            .entry(&location)
            .map_err(|error| cause_of(&error))?;
        let (state, pinned) = match entry {
            Entry::Missing => (SlotState::Missing, None),
            Entry::Directory(_) => (SlotState::Directory, None),
            Entry::Special { kind, pinned } => (SlotState::Special(special(kind)), Some(pinned)),
            Entry::File(pinned) => (SlotState::File(file_state(&pinned)), Some(pinned)),
            Entry::Link { pinned, target } => {
                let hop = LinkHop {
                    link: location.path().to_path_buf(),
                    target,
                };
                let (ends_at, target) = self.target(&location);
                (
                    SlotState::Link(LinkState {
                        hop,
                        ends_at,
                        target,
                    }),
                    Some(pinned),
                )
            }
        };
        let id = self.seen.snapshot.insert(Slot { key, state });
        debug_assert_eq!(id.0, self.seen.places.len());
        self.seen.places.push(Held { location, pinned });
        Ok(id)
    }

    fn target(&mut self, link: &Location) -> (PathBuf, Result<SlotId, Cause>) {
        match self.roots.follow(link) {
            Ok(end) => (end.path().to_path_buf(), self.place(end)),
            Err(error) => (PathBuf::new(), Err(cause_of(&error))),
        }
    }

    /// Counts how many times the patch names each place.
    fn named(&self, patch: &Patch<'_>) -> BTreeMap<SlotId, usize> {
        let mut named = BTreeMap::new();
        for operation in &patch.operations {
            for path in [Some(operation.path), target(operation)] {
                if let Some(slot) = path.and_then(|path| self.slot(path)) {
                    *named.entry(slot).or_default() += 1;
                }
            }
        }
        named
    }

    /// Reads a file that an operation will edit.
    ///
    /// The source of a rename is read only when its new name is taken, or when
    /// another operation works on that name too: large files just move.
    fn read(&mut self, operation: &Operation<'_>, named: &BTreeMap<SlotId, usize>) {
        let Body::Update { chunks, .. } = &operation.body else {
            return;
        };
        let busy = |slot: SlotId| {
            let there = &self.seen.snapshot.slot(slot).state;
            !matches!(there, SlotState::Missing) || named.get(&slot).is_some_and(|uses| *uses > 1)
        };
        let target = target(operation).and_then(|path| self.slot(path));
        if chunks.is_empty() && !target.is_some_and(busy) {
            return;
        }
        let path = operation.path;
        let Some(named) = self.slot(path) else { return };
        let Ok(slot) = self.seen.snapshot.edited(named) else {
            return;
        };
        self.read_slot(slot);
    }

    fn read_slot(&mut self, slot: SlotId) {
        let SlotState::File(FileState { content: None, .. }) = self.seen.snapshot.slot(slot).state
        else {
            return;
        };
        let Some(pinned) = self.seen.pinned(slot) else {
            return;
        };
        let content = pinned.read().map_err(|error| cause_of(&error));
        self.seen.snapshot.set_content(slot, content);
    }

    fn slot(&self, path: &str) -> Option<SlotId> {
        self.seen
            .snapshot
            .path(path)
            .and_then(|resolved| resolved.slot.clone().ok())
    }
}

/// Returns the destination of a move.
fn target<'p>(operation: &Operation<'p>) -> Option<&'p str> {
    match &operation.body {
        Body::Update { move_to, .. } => move_to.map(|to| to.path),
        Body::Add { .. } | Body::Delete => None,
    }
}

fn file_state(pinned: &Pinned) -> FileState {
    let id = pinned.id();
    FileState {
        content: None,
        writable: pinned.check_writable().map_err(|error| cause_of(&error)),
        links: pinned.nlink(),
        inode: (id.dev, id.ino),
    }
}

/// Returns the identity of a place as the plan knows it.
pub fn place_key(location: &Location) -> PlaceKey {
    let key = location.key();
    let mut names = key.missing;
    names.push(key.name);
    PlaceKey {
        directory: (key.dir.dev, key.dir.ino),
        names,
    }
}

fn special(kind: safe_fs::SpecialKind) -> SpecialKind {
    match kind {
        safe_fs::SpecialKind::Fifo => SpecialKind::Fifo,
        safe_fs::SpecialKind::Socket => SpecialKind::Socket,
        safe_fs::SpecialKind::CharDevice => SpecialKind::CharacterDevice,
        safe_fs::SpecialKind::BlockDevice => SpecialKind::BlockDevice,
    }
}

/// Translates what the file layer says into what a patch's reader needs to know.
pub fn cause_of(error: &safe_fs::Error) -> Cause {
    match error.kind() {
        ErrorKind::Outside { via } => Cause::Outside {
            via: via.as_ref().map(|hop| LinkHop {
                link: hop.link.clone(),
                target: hop.target.clone(),
            }),
        },
        ErrorKind::Guarded { name } => Cause::Protected { name: name.clone() },
        ErrorKind::IsADirectory => Cause::Directory,
        ErrorKind::Special(kind) => Cause::Special(special(*kind)),
        ErrorKind::TrailingSlash => Cause::TrailingSlash,
        ErrorKind::InvalidName => Cause::Nul,
        ErrorKind::Changed => Cause::Changed,
        ErrorKind::HardLinked { links } => Cause::HardLinked { names: *links },
        ErrorKind::NotFound => Cause::Os { code: ENOENT },
        ErrorKind::NotADirectory => Cause::Os { code: ENOTDIR },
        ErrorKind::Loop => Cause::Os { code: ELOOP },
        _ => Cause::Os {
            code: error.errno().unwrap_or(EIO),
        },
    }
}

/// Joins and cleans a path by its text alone, as the reference's messages show it (R84).
pub fn lexical(base: &Path, path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in base.join(path).components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}
