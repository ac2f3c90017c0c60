//! The directories beneath which changes are allowed: opened once, pinned,
//! and the only way from a path to a [`Location`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use crate::containment::Chain;
use crate::dir::{Dir, Pool};
use crate::entry::Entry;
use crate::error::{Context, Error, ErrorKind, LinkHop, Operation};
use crate::guard::{Guard, Guards};
use crate::id::FileId;
use crate::location::Location;
use crate::parts::{Parts, lexical};
use crate::resolver::{Found, Hop, Proof, Resolver, Start, StartPlace, hops};
use crate::sys;

/// As many links as the kernel follows (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// Holds the base directory, the roots and the guarded names.
pub struct Roots {
    base: Root,
    pub(crate) roots: Vec<Root>,
    ids: Vec<FileId>,
    pub(crate) guards: Guards,
    resolver: Resolver,
    pool: Pool,
}

/// A pinned directory and its path for messages.
#[derive(Clone)]
pub(crate) struct Root {
    pub(crate) dir: Dir,
    pub(crate) path: PathBuf,
}

impl Root {
    /// The one place where a path is trusted: links in it are followed.
    fn open(path: &Path) -> Result<Self, Error> {
        let open = || -> io::Result<Self> {
            let dir = Dir::from_fd(sys::open(path, OFlag::O_PATH | OFlag::O_DIRECTORY)?)?;
            Ok(Self {
                dir,
                path: lexical(Path::new("/"), &std::path::absolute(path)?),
            })
        };
        open().during(Operation::Open, path)
    }
}

impl Roots {
    /// Opens and pins the directory that relative paths start from, and the
    /// directories beneath which changes are allowed; all of them must exist.
    ///
    /// A root may lie below another root; the nearest one counts, also for
    /// the guards.
    pub fn open(
        base: &Path,
        roots: &[PathBuf],
        guards: &[Guard],
        resolver: Resolver,
    ) -> Result<Self, Error> {
        let opened = Root::open(base)?;
        let roots = roots
            .iter()
            .map(|path| match path == base {
                true => Ok(opened.clone()),
                false => Root::open(path),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let base = opened;
        let guards = Guards::new(guards, roots.iter().map(|root| &root.dir))
            .during(Operation::Open, &base.path)?;
        let ids = roots.iter().map(|root| root.dir.id()).collect();
        Ok(Self {
            base,
            roots,
            ids,
            guards,
            resolver,
            pool: Pool::default(),
        })
    }

    /// Guards a directory, wherever it is, as what a guarded name stands for.
    ///
    /// A directory that is not there needs no guard.
    pub fn guard_directory(&mut self, directory: &Path, name: &OsStr) -> Result<(), Error> {
        match sys::open(directory, OFlag::O_PATH | OFlag::O_DIRECTORY) {
            Ok(held) => self.guards.add_directory(held, name),
            Err(error) if sys::is(&error, libc::ENOENT) || sys::is(&error, libc::ENOTDIR) => Ok(()),
            Err(error) => Err(error),
        }
        .during(Operation::Open, directory)
    }

    /// Returns the path of the directory that relative paths start from, for messages.
    pub fn base_path(&self) -> &Path {
        &self.base.path
    }

    /// Returns a place's path from the base directory with every parent link
    /// resolved, or the whole path when it lies elsewhere.
    ///
    /// Like [`Location::path`] it is for readers and proves nothing: never open it.
    pub fn real_path(&self, at: &Location) -> PathBuf {
        if at.dir().id() == self.base.dir.id() {
            return at
                .missing()
                .iter()
                .map(OsString::as_os_str)
                .chain([at.name()])
                .collect();
        }
        let now = |dir: &Dir| sys::current_path(dir.as_fd()).map(PathBuf::from);
        let (Ok(base), Ok(mut path)) = (now(&self.base.dir), now(at.dir())) else {
            // Without /proc there is only what was asked for.
            let path = at.path();
            return path
                .strip_prefix(&self.base.path)
                .unwrap_or(path)
                .to_path_buf();
        };
        path.extend(at.missing());
        path.push(at.name());
        match path.strip_prefix(&base) {
            Ok(relative) => relative.to_path_buf(),
            Err(_) => path,
        }
    }

    /// Resolves the parent of a path, as the kernel does, to a pinned
    /// directory beneath a root; the last component is left alone.
    ///
    /// `..` leaves a directory that does not exist, or a file, by name.
    /// Parents that do not exist are listed in [`Location::missing`].
    pub fn resolve(&self, path: &Path) -> Result<Location, Error> {
        let shown = lexical(&self.base.path, path);
        let parts = Parts::parse(path)
            .map_err(|kind| Error::new(Operation::Resolve, &self.base.path.join(path), kind))?;
        let place = match self.ids.contains(&self.base.dir.id()) {
            true => StartPlace::Root,
            false => StartPlace::Anywhere,
        };
        let start = Start {
            dir: &self.base.dir,
            path: &self.base.path,
            op: Operation::Resolve,
            place,
        };
        let found = self.resolver.parent(&start, &parts)?;
        self.admit(&start, parts, found, shown)
    }

    /// Follows a final symbolic link, and links it leads to, to the place of
    /// the target, which may be missing; a place that is no link is returned
    /// as it is. The target is proved to be inside again.
    pub fn follow(&self, link: &Location) -> Result<Location, Error> {
        let mut at = link.clone();
        for _ in 0..=MAX_LINKS {
            match self.entry(&at)? {
                Entry::Link { target, .. } => at = self.follow_once(&at, target)?,
                _ => return Ok(at),
            }
        }
        Err(Error::new(Operation::Follow, link.path(), ErrorKind::Loop))
    }

    fn follow_once(&self, link: &Location, target: OsString) -> Result<Location, Error> {
        const OP: Operation = Operation::Follow;
        let above = link.path().parent().unwrap_or(Path::new("/"));
        let parts =
            Parts::parse(Path::new(&target)).map_err(|kind| Error::new(OP, link.path(), kind))?;
        let start = Start {
            dir: link.dir(),
            path: above,
            op: OP,
            place: StartPlace::Anywhere,
        };
        let found = self.resolver.parent(&start, &parts)?;
        if !found.missing.is_empty() {
            return Err(Error::new(OP, link.path(), ErrorKind::NotFound));
        }
        let shown = lexical(above, Path::new(&target));
        let hop = LinkHop {
            link: link.path().to_path_buf(),
            target,
        };
        self.admit(&start, parts, found, shown)
            .map_err(|error| match error.kind() {
                ErrorKind::Outside { .. } => {
                    Error::new(OP, link.path(), ErrorKind::Outside { via: Some(hop) })
                }
                _ => error,
            })
    }

    /// Says what is at a location without opening it
    /// (`openat(O_PATH | O_NOFOLLOW)`, `fstat`).
    pub fn entry(&self, at: &Location) -> Result<Entry, Error> {
        Entry::at(at)
    }

    /// Proves that a resolved parent lies beneath a root and meets no guard.
    fn admit(
        &self,
        start: &Start<'_>,
        parts: Parts,
        found: Found,
        shown: PathBuf,
    ) -> Result<Location, Error> {
        let mut names = parts.names().chain([parts.last.as_os_str()]);
        let proved = found.proof == Proof::ByNames && self.guards.clear_of(&mut names);
        drop(names);
        if !proved {
            self.prove(start, &parts, &found, &shown)?;
        }
        Ok(Location {
            dir: self.pool.share(found.dir),
            missing: found.missing,
            name: parts.last,
            path: shown,
        })
    }

    fn prove(
        &self,
        start: &Start<'_>,
        parts: &Parts,
        found: &Found,
        shown: &Path,
    ) -> Result<(), Error> {
        let Some(chain) = Chain::climb(&found.dir, &self.ids).during(start.op, shown)? else {
            let via = if found.hops.is_empty() {
                self.exit(hops(start, parts).iter())
            } else {
                self.exit(found.hops.iter())
            };
            return Err(Error::new(start.op, shown, ErrorKind::Outside { via }));
        };
        let met = self
            .guards
            .meets(&chain, &found.missing, &parts.last)
            .during(start.op, shown)?;
        match met {
            Some(guard) => {
                let kind = ErrorKind::Guarded {
                    name: guard.name.clone(),
                };
                Err(Error::new(start.op, shown, kind))
            }
            None => Ok(()),
        }
    }

    /// Returns the last link inside the roots: the one that led out.
    fn exit<'a>(&self, hops: impl DoubleEndedIterator<Item = &'a Hop>) -> Option<LinkHop> {
        let inside = |hop: &&Hop| matches!(Chain::climb(&hop.dir, &self.ids), Ok(Some(_)));
        hops.rev().find(inside).map(|hop| hop.link.clone())
    }

    /// Returns the identities of the roots.
    pub(crate) fn ids(&self) -> &[FileId] {
        &self.ids
    }

    /// Returns the root that patches to one workspace meet in: the base
    /// directory, or when that is no root the first one.
    pub(crate) fn workspace(&self) -> Option<&Root> {
        let base = self.base.dir.id();
        let own = self.roots.iter().find(|root| root.dir.id() == base);
        own.or(self.roots.first())
    }

    /// Returns the roots, each directory once.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = &Root> {
        let first = |at: usize, id: FileId| self.ids.iter().position(|it| *it == id) == Some(at);
        let roots = self.roots.iter().enumerate();
        roots.filter_map(move |(at, root)| first(at, root.dir.id()).then_some(root))
    }

    /// Opens the workspace's own directory for reading, for the lock.
    pub(crate) fn open_workspace(&self) -> Option<(io::Result<std::os::fd::OwnedFd>, &Path)> {
        self.workspace().map(|root| {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
            (
                sys::open_at(root.dir.as_fd(), ".".as_ref(), flags),
                root.path.as_path(),
            )
        })
    }
}
