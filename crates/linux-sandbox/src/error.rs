//! What could not be set up, why, and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// A kernel error number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({self})")
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = nix::errno::Errno::from_raw(self.0);
        write!(f, "{} ({name:?})", name.desc())
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

impl From<nix::errno::Errno> for Errno {
    fn from(errno: nix::errno::Errno) -> Self {
        Self(errno as i32)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// Declares the steps once: number, name, fragment for messages.
macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident = $fragment:literal,)*) => {
        /// A step of the set-up, named by what it tries to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Step { $($(#[$doc])* $name,)* }

        impl Step {
            const ALL: &'static [Step] = &[$(Step::$name,)*];

            /// Returns the end of a sentence that begins "failed to".
            pub fn fragment(self) -> &'static str {
                match self { $(Step::$name => $fragment,)* }
            }
        }
    };
}

steps! {
    /// Looking at a root.
    ResolveRoot = "look at the writable root",
    /// Looking at a rule.
    ResolveRule = "look at the path of the rule",
    /// Looking at a protected name.
    ResolveProtected = "look at the protected path",
    /// Looking at the calling process.
    InspectProcess = "read the state of the calling process",
    /// Making sure that the caller has one thread.
    OneThread = "start a sandbox from a process with several threads",
    /// Turning arguments into what the kernel takes.
    PrepareCommand = "prepare the command",
    /// Opening the own executable.
    OpenSelf = "open the running executable",
    /// Opening the working directory.
    OpenCwd = "open the working directory",
    /// Compiling the system call filter.
    CompileFilter = "compile the system call filter",
    /// Handing a descriptor on to the patch stage.
    InheritDescriptor = "hand a descriptor on",
    /// Making the pipe between the processes.
    StatusPipe = "make the status pipe",
    /// Changing the signal mask.
    SignalMask = "change the signal mask",
    /// Making the namespaces.
    Namespaces = "make the namespaces",
    /// Waiting for the sandbox.
    Wait = "wait for the sandbox",
    /// Tying the sandbox to the supervisor.
    DeathSignal = "tie the sandbox to its supervisor",
    /// Writing the id maps.
    IdentityMap = "map the user and group id",
    /// Replacing the standard input.
    ReplaceStdin = "replace the standard input",
    /// Raising the loopback interface.
    Loopback = "raise the loopback interface",
    /// Separating mount events.
    MakePrivate = "separate the mounts from the host",
    /// Pinning a root.
    PinRoot = "pin the writable root",
    /// Cloning a root.
    CloneRoot = "clone the mounts of the writable root",
    /// Making everything read-only.
    ReadOnlyView = "make the file system read-only",
    /// Attaching a root.
    AttachRoot = "attach the writable root",
    /// Pinning an ancestor.
    PinAncestor = "keep the directory in its place",
    /// Protecting a path.
    Protect = "hold the protected path read-only",
    /// Covering a denied path.
    Mask = "hide the denied path",
    /// Holding a missing name.
    HoldMissing = "hold the missing protected name",
    /// Starting the process that cleans up.
    Guardian = "start the process that cleans up",
    /// Replacing the whole view.
    EmptyView = "hide all but what the policy names",
    /// Opening a standard descriptor in the view.
    StandardDescriptor = "open a standard descriptor again",
    /// Checking that a standard descriptor that is a socket reaches one peer only.
    StandardSocket = "hand a socket on as a standard descriptor",
    /// Making the private `/dev`.
    PrivateDev = "make the private /dev",
    /// Making the private `/tmp`.
    PrivateTmp = "make the private /tmp",
    /// Mounting `/proc`.
    FreshProc = "mount /proc",
    /// Joining a new session keyring.
    Keyring = "join a new session keyring",
    /// Changing the working directory.
    ChangeDirectory = "enter the working directory",
    /// Closing descriptors.
    CloseDescriptors = "close inherited descriptors",
    /// Dropping capabilities.
    DropCapabilities = "drop capabilities",
    /// Restricting by Landlock.
    Landlock = "restrict file access by landlock",
    /// Installing the filter.
    Seccomp = "install the system call filter",
    /// Starting the command's process.
    Fork = "start the command's process",
    /// Looking for bubblewrap.
    FindBubblewrap = "find a bubblewrap that can be used",
    /// Starting bubblewrap.
    StartBubblewrap = "build the sandbox with",
    /// Handing the plan on to the stage inside.
    HandOff = "hand the plan on to the stage inside",
    /// Checking what bubblewrap mounted.
    VerifyMount = "find in the sandbox what was planned for",
    /// Making the namespace for what bubblewrap cannot mount.
    NestedNamespace = "make the nested namespace that is needed to hold",
    /// Anything that ended process 1 without a word.
    Init = "keep process 1 of the sandbox alive",
}

impl Step {
    /// Returns the step with a number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Says what could not be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What was tried.
    pub step: Step,
    /// What it was tried on.
    pub subject: Option<PathBuf>,
    /// Why it failed.
    pub errno: Errno,
    /// What a program that was used said about it, in one line.
    pub detail: Option<Box<str>>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (self.step, self.errno.0) == (Step::FindBubblewrap, libc::ENOENT) {
            return f.write_str(
                "bubblewrap is not on PATH: install it (package bubblewrap) or use --backend native",
            );
        }
        write!(f, "failed to {}", self.step.fragment())?;
        if let Some(subject) = &self.subject {
            write!(f, " {}", subject.display())?;
        }
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => write!(f, ": {}", self.errno),
        }
    }
}

impl Error {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> &'static str {
        match (self.step, self.errno.0) {
            (Step::Namespaces, libc::ENOSPC) => {
                "namespaces are used up or switched off: raise the limits in \
                 /proc/sys/user/max_*_namespaces"
            }
            (Step::Namespaces | Step::IdentityMap, libc::EPERM | libc::EACCES) => {
                "this host or container denies user namespaces (seccomp, chroot or a security \
                 module): allow them, or run outside of the container"
            }
            (Step::Landlock, libc::ENOSYS) => "the kernel has no landlock: use 5.13 or newer",
            (Step::Landlock, libc::EOPNOTSUPP) => "landlock is off: add it to the lsm= boot option",
            (Step::Landlock, libc::E2BIG) => "too many nested sandboxes: the kernel allows 16",
            (
                Step::MakePrivate | Step::ReadOnlyView | Step::CloneRoot | Step::AttachRoot,
                libc::EPERM | libc::EACCES,
            ) => "mounts are denied here, as in a nested sandbox: run outside of it",
            (_, libc::ENOSYS) => "the kernel lacks this call: use 5.12 or newer",
            (Step::HoldMissing, libc::ESTALE) => {
                "the path changed while the sandbox was built: try again"
            }
            (Step::ResolveRule, libc::E2BIG) => {
                "too many files to look for what a pattern denies: begin the pattern with a \
                 narrower directory"
            }
            (Step::HoldMissing, libc::EWOULDBLOCK) => {
                "another program keeps the directory locked: end it, or use --missing-names off"
            }
            (Step::HoldMissing, _) => {
                "an empty directory stands in for the name while the command runs: make room for \
                 it, or use --missing-names off"
            }
            (
                Step::PinRoot | Step::Protect | Step::Mask,
                libc::ESTALE | libc::ENOENT | libc::ELOOP,
            ) => "the path changed while the sandbox was built: try again",
            (Step::ResolveRoot, libc::ELOOP) => {
                "the path leads through a symbolic link inside another writable root: \
                 name the real directory"
            }
            (Step::ChangeDirectory, libc::ENOENT) => {
                "the private /tmp hides the directory: make it writable or use the host's /tmp"
            }
            (Step::StandardDescriptor, _) => {
                "input, output and errors may be files that their path still leads to, pipes, or \
                 a terminal: put a pipe between (cat FILE | ...)"
            }
            (Step::StandardSocket, _) => {
                "only a connected unix stream is safe to hand on: put a pipe between (cat | ...)"
            }
            (Step::Loopback, _) => {
                "CAP_NET_ADMIN is missing: the host's network needs no interface (--network host)"
            }
            (
                Step::ResolveRoot | Step::InspectProcess | Step::OpenSelf | Step::OpenCwd,
                libc::ENOENT,
            ) => "the directory must exist, and /proc must be mounted",
            (Step::InheritDescriptor, libc::EINVAL) => {
                "a command inherits nothing above its standard descriptors: pass data by these"
            }
            (Step::FindBubblewrap, libc::ENOENT) => {
                "the native backend needs no other program; 'auto' chooses it"
            }
            (Step::FindBubblewrap | Step::StartBubblewrap, _) => {
                "this host or container denies what bubblewrap needs, or it is too old: \
                 use --backend native, or see docs/kernel-features.md"
            }
            (Step::VerifyMount, _) => {
                "bubblewrap did not mount what it was told to, or the path changed meanwhile: \
                 try again, or use --backend native"
            }
            (Step::NestedNamespace, _) => {
                "bubblewrap cannot hold this path itself, and a second namespace is denied here: \
                 use --backend native, or replace the symbolic link by what it leads to"
            }
            (Step::OneThread, _) => "call from a process with one thread",
            _ => "the host refuses what every sandbox needs: see docs/kernel-features.md",
        }
    }
}

/// Attaches evidence to a failed call outside of the sandbox.
pub(crate) trait Context<T> {
    /// Names the step.
    fn during(self, step: Step) -> Result<T, Error>;
    /// Names the step and what it was about.
    fn during_on(self, step: Step, subject: impl Into<PathBuf>) -> Result<T, Error>;
}

impl<T, E: Into<Errno>> Context<T> for Result<T, E> {
    fn during(self, step: Step) -> Result<T, Error> {
        self.map_err(|errno| Error {
            step,
            subject: None,
            errno: errno.into(),
            detail: None,
        })
    }

    fn during_on(self, step: Step, subject: impl Into<PathBuf>) -> Result<T, Error> {
        self.map_err(|errno| Error {
            step,
            subject: Some(subject.into()),
            errno: errno.into(),
            detail: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_pipe() {
        for step in Step::ALL {
            assert_eq!(Step::from_number(*step as u8), Some(*step));
        }
        assert_eq!(Step::from_number(u8::MAX), None);
    }

    #[test]
    fn messages_keep_the_evidence() {
        let error = Err::<(), _>(Errno(libc::ESTALE))
            .during_on(Step::PinRoot, "/w")
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("failed to pin the writable root /w: "),
            "{text}"
        );
        assert!(text.ends_with("(ESTALE)"), "{text}");
    }
}
