//! From a plan to bubblewrap's options: one pure function.
//!
//! Bubblewrap carries options out in their order, so a plan's order is kept.
//! What it cannot say (see [`way`]) the stage inside makes itself.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sandbox_policy::facts::FileId;
use sandbox_policy::plan::{Capability, Identity, MaskForm, MountOp, Requirement};
use sandbox_policy::{Access, Plan};
use serde::{Deserialize, Serialize};

use crate::bubblewrap::features::Features;

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PlaceKind {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else.
    File,
}

/// What was found where an operation acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The inode.
    pub(crate) id: FileId,
    /// What it is.
    pub(crate) kind: PlaceKind,
    /// Whether the host has it read-only.
    pub(crate) is_read_only: bool,
    /// The descriptor by which bubblewrap gets it; without one it gets the path.
    pub(crate) fd: Option<i32>,
}

/// The descriptors that a rendering may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// One entry for each operation of the plan.
    pub(crate) places: Vec<Option<Place>>,
    /// Who carries each operation out.
    pub(crate) ways: Vec<Way>,
    /// A number for each operation that needs an empty file.
    pub(crate) empty_files: Vec<Option<i32>>,
}

impl Table {
    /// Returns the place of an operation.
    pub(crate) fn place(&self, position: usize) -> Option<&Place> {
        self.places.get(position).and_then(Option::as_ref)
    }

    /// Tells whether some operation is left to the stage inside.
    pub(crate) fn needs_nested(&self) -> bool {
        self.ways.contains(&Way::Nested)
    }

    fn empty_file(&self, position: usize) -> Option<i32> {
        self.empty_files.get(position).copied().flatten()
    }
}

/// Who carries an operation out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Way {
    /// Bubblewrap, or nobody where there is nothing to do.
    Bubblewrap,
    /// The stage inside, in a namespace of its own: bubblewrap follows links,
    /// and without `--perms` all it makes can be read.
    Nested,
}

/// Decides who carries an operation out.
pub(crate) fn way(operation: &MountOp, place: Option<&Place>, features: &Features) -> Way {
    let is_link = place.is_some_and(|place| place.kind == PlaceKind::Link);
    let is_closed = match operation {
        MountOp::Mask { form, .. } => *form != MaskForm::Passage,
        MountOp::HoldMissing { access, .. } => place.is_some() && *access == Access::Deny,
        _ => false,
    };
    match is_link || is_closed && !features.perms {
        true => Way::Nested,
        false => Way::Bubblewrap,
    }
}

/// Returns all options but the command.
pub(crate) fn render(plan: &Plan, features: &Features, table: &Table) -> Vec<OsString> {
    let mut line = Line::default();
    line.say(["--die-with-parent", "--as-pid-1"]);
    line.namespaces(plan);
    line.capabilities(plan, table);
    let renderer = Renderer {
        plan,
        features,
        table,
        is_empty_view: plan
            .mounts
            .iter()
            .any(|it| matches!(it, MountOp::EmptyView { .. })),
    };
    for (position, operation) in plan.mounts.iter().enumerate() {
        renderer.operation(&mut line, position, operation);
    }
    renderer.last(&mut line);
    line.say(["--chdir", "/"]);
    if features.argv0 {
        line.say(["--argv0", "sandpatch"]);
    }
    line.words
}

#[derive(Default)]
struct Line {
    words: Vec<OsString>,
}

impl Line {
    fn say<const N: usize>(&mut self, words: [&str; N]) {
        self.words.extend(words.map(OsString::from));
    }

    /// Says an option and the path that it is about.
    fn at(&mut self, option: &str, path: &Path) {
        self.words.push(option.into());
        self.words.push(path.into());
    }

    fn namespaces(&mut self, plan: &Plan) {
        let options = [
            (Requirement::UserNamespace, "--unshare-user"),
            (Requirement::PidNamespace, "--unshare-pid"),
            (Requirement::IpcNamespace, "--unshare-ipc"),
            (Requirement::NetworkNamespace, "--unshare-net"),
        ];
        for (requirement, option) in options {
            if plan.requires(requirement) {
                self.say([option]);
            }
        }
    }

    /// Root keeps what the program keeps, and what the stage inside needs to get
    /// rid of the rest; nobody else has any to begin with.
    fn capabilities(&mut self, plan: &Plan, table: &Table) {
        let Identity::Privileged { kept } = &plan.identity else {
            return;
        };
        self.say(["--cap-drop", "ALL"]);
        let names = kept.iter().map(|capability| match capability {
            Capability::Chown => "CAP_CHOWN",
            Capability::DacOverride => "CAP_DAC_OVERRIDE",
            Capability::Fowner => "CAP_FOWNER",
            Capability::Fsetid => "CAP_FSETID",
        });
        let nested = table.needs_nested().then_some("CAP_SYS_ADMIN");
        let own = ["CAP_SETPCAP", "CAP_DAC_READ_SEARCH"];
        for name in names.chain(own).chain(nested) {
            self.say(["--cap-add", name]);
        }
    }
}

struct Renderer<'a> {
    plan: &'a Plan,
    features: &'a Features,
    table: &'a Table,
    is_empty_view: bool,
}

impl Renderer<'_> {
    fn operation(&self, line: &mut Line, position: usize, operation: &MountOp) {
        let place = self.table.place(position);
        if self.table.ways.get(position) == Some(&Way::Nested) {
            return;
        }
        match operation {
            // Bubblewrap cuts itself off, binds by source, and leaves the
            // standard descriptors to the stage inside.
            MountOp::MakePrivate | MountOp::CloneRoot(_) | MountOp::SecureStandardDescriptors => {}
            MountOp::View(mode) => self.view(line, *mode),
            MountOp::EmptyView { directories, links } => {
                line.say(["--tmpfs", "/"]);
                for path in directories {
                    line.at("--dir", path.as_path());
                }
                for (path, text) in links {
                    line.at("--symlink", Path::new(text));
                    line.words.push(path.as_path().into());
                }
            }
            MountOp::PrivateTmp(path) => self.tmpfs(line, "1777", path.as_path()),
            MountOp::PrivateDev => {
                line.say(["--dev", "/dev"]);
                self.tmpfs(line, "1777", Path::new("/dev/shm"));
            }
            MountOp::FreshProc => self.proc(line),
            MountOp::AttachRoot { root, .. } => {
                if let Some(root) = self.plan.roots.get(root.0) {
                    let is_writable = root.access == Access::Write;
                    self.bind(line, is_writable, root.real.as_path(), place);
                }
            }
            MountOp::PinAncestor(path) => self.bind(line, true, path.as_path(), place),
            MountOp::Protect { path, .. } => self.bind(line, false, path.as_path(), place),
            MountOp::HoldMissing { path, access } => {
                if place.is_some() {
                    let mode = match access {
                        Access::Deny => "000",
                        _ => "755",
                    };
                    self.tmpfs(line, mode, path.as_path());
                    line.at("--remount-ro", path.as_path());
                }
            }
            MountOp::Mask { path, form, .. } => self.mask(line, position, path.as_path(), *form),
            MountOp::SealPassage(path) => line.at("--remount-ro", path.as_path()),
            MountOp::LeaveHostView => line.say(["--remount-ro", "/"]),
        }
    }

    fn view(&self, line: &mut Line, mode: sandbox_policy::plan::ViewMode) {
        use sandbox_policy::plan::ViewMode;
        match mode {
            // The empty view takes its place at once.
            ViewMode::ReadOnly if self.is_empty_view => {}
            ViewMode::ReadOnly => line.say(["--ro-bind", "/", "/"]),
            ViewMode::Writable => line.say(["--bind", "/", "/"]),
        }
    }

    /// Where none can be mounted, the host's is in the view, read-only.
    fn proc(&self, line: &mut Line) {
        match (self.features.fresh_proc, self.is_empty_view) {
            (true, _) => line.say(["--proc", "/proc"]),
            (false, true) => line.say(["--ro-bind", "/proc", "/proc"]),
            (false, false) => {}
        }
    }

    fn tmpfs(&self, line: &mut Line, mode: &str, path: &Path) {
        if self.features.perms {
            line.say(["--perms", mode]);
        }
        line.at("--tmpfs", path);
    }

    fn bind(&self, line: &mut Line, is_writable: bool, path: &Path, place: Option<&Place>) {
        let (by_fd, by_path) = match is_writable {
            true => ("--bind-fd", "--bind"),
            false => ("--ro-bind-fd", "--ro-bind"),
        };
        match place.and_then(|place| place.fd) {
            Some(fd) if self.features.bind_fd => line.say([by_fd, &fd.to_string()]),
            Some(fd) => line.say([by_path, &format!("/proc/self/fd/{fd}")]),
            None => line.at(by_path, path),
        }
        line.words.push(path.into());
    }

    fn mask(&self, line: &mut Line, position: usize, path: &Path, form: MaskForm) {
        match form {
            MaskForm::Directory => {
                self.tmpfs(line, "000", path);
                line.at("--remount-ro", path);
            }
            // It is sealed when all below it is in place.
            MaskForm::Passage => self.tmpfs(line, "111", path),
            MaskForm::File => {
                if let Some(fd) = self.table.empty_file(position) {
                    line.say(["--perms", "000", "--ro-bind-data", &fd.to_string()]);
                    line.words.push(path.into());
                }
            }
        }
    }

    /// Closes what bubblewrap leaves writable: its `/dev`, and `/proc`. The stage
    /// inside is started through `/proc`, so an empty view always has one.
    fn last(&self, line: &mut Line) {
        let has_dev = self.plan.mounts.contains(&MountOp::PrivateDev);
        let has_proc = self.plan.mounts.contains(&MountOp::FreshProc);
        if has_dev {
            line.say(["--remount-ro", "/dev"]);
        }
        // The stage inside maps its ids through it, and closes it then.
        if has_proc && self.features.fresh_proc && !self.table.needs_nested() {
            line.say(["--remount-ro", "/proc"]);
        }
        if !has_proc && self.is_empty_view {
            line.say(["--ro-bind", "/proc", "/proc"]);
        }
    }
}

/// Joins words as `--args` reads them.
pub(crate) fn joined(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        text.extend_from_slice(word.as_bytes());
        text.push(0);
    }
    text
}
