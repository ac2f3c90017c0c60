//! The stage inside: process 1 of what bubblewrap built.
//!
//! It makes sure of every mount, adds what bubblewrap cannot mount, confines
//! itself like the native process 1, and becomes that.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sched::CloneFlags;
use rustix::fs::{CWD, fstat, readlinkat};
use rustix::io::Errno as OsErrno;
use sandbox_policy::AbsolutePath;
use sandbox_policy::plan::{Identity, MountOp};

use crate::bubblewrap::PROBE;
use crate::bubblewrap::handoff::{HandOff, Numbers};
use crate::bubblewrap::render::Way;
use crate::bubblewrap::verify::{self, Deviation, Seen};
use crate::command::INHERITED_FD;
use crate::error::{Context, Errno, Error, Step};
use crate::landlock;
use crate::mountinfo::MountTable;
use crate::native::exec::Image;
use crate::native::init::{Ground, Init};
use crate::native::mounts::{self, Mounted, open_same};
use crate::native::supervisor::{Signals, single_threaded};
use crate::native::{identity, standard};
use crate::placeholders::Placeholders;
use crate::report::ProcView;
use crate::resolve::id_of;
use crate::seccomp;
use crate::status::Failure;
use crate::sys;

/// The most bytes that a message may have: arguments and variables are limited
/// by the kernel to a few megabytes, a plan is smaller.
const MOST_BYTES: u64 = 64 << 20;

/// The number of the first descriptor that the patch stage does not need.
const LOWEST: i32 = INHERITED_FD + 1;

/// Runs the stage that bubblewrap starts; it does not return when it was told
/// what to do.
///
/// # Errors
///
/// What could not be prepared; [`Step::HandOff`] when the argument leads to no
/// message, as when somebody starts it by hand.
pub fn inner_stage(argument: &OsStr) -> Result<(), Error> {
    if argument == PROBE {
        return Ok(());
    }
    let number = argument.to_str().and_then(|text| text.parse().ok());
    let number = number.ok_or(Errno(libc::EINVAL)).during(Step::HandOff)?;
    let handoff = read(number).during(Step::HandOff)?;
    let Numbers {
        hello,
        status,
        stderr,
        stdin,
        inherit,
        watched,
    } = handoff.numbers;
    let adopt = |number| sys::duplicate_number(number, LOWEST);
    let stdin = stdin.map(adopt).transpose().during(Step::HandOff)?;
    let inherit = inherit.map(adopt).transpose().during(Step::HandOff)?;
    let watched = watched.map(adopt).transpose().during(Step::HandOff)?;
    let status = adopt(status).during(Step::HandOff)?;
    let hello = adopt(hello).during(Step::HandOff)?;
    let complaints = Complaints::take_over(stderr).during(Step::HandOff)?;
    let open = Open {
        stdin,
        inherit,
        watched,
        status,
        hello,
    };
    run(handoff, open, &complaints)
}

fn read(number: i32) -> Result<HandOff, Errno> {
    let message = File::from(sys::duplicate_number(number, LOWEST)?);
    let mut bytes = Vec::new();
    message.take(MOST_BYTES).read_to_end(&mut bytes)?;
    HandOff::decode(&bytes)
}

/// The descriptors of the stage.
struct Open {
    stdin: Option<OwnedFd>,
    inherit: Option<OwnedFd>,
    watched: Option<OwnedFd>,
    status: OwnedFd,
    hello: OwnedFd,
}

fn run(mut handoff: HandOff, open: Open, complaints: &Complaints) -> Result<(), Error> {
    let task = std::mem::take(&mut handoff.task);
    let command = task.into_command(None);
    let image = Image::prepare(&command)?;
    let process = single_threaded()?;
    let filter = seccomp::compile(handoff.plan.network)
        .map_err(|_| Errno(libc::EINVAL))
        .during(Step::CompileFilter)?;
    let ignored: Vec<i32> = process.ignored_signals().collect();
    let signals = Signals::take_over(&ignored).during(Step::SignalMask)?;
    // From here on the supervisor passes signals on, and hears of failures.
    rustix::io::write(&open.hello, b"!").during(Step::StatusPipe)?;
    drop(open.hello);
    let finish = || finish(&handoff, complaints);
    Init {
        ground: Ground::Mounted(&finish),
        plan: &handoff.plan,
        image: &image,
        filter: &filter,
        stdin: open.stdin.as_ref(),
        inherit: open.inherit.as_ref(),
        cwd: &command.cwd,
        ignored_signals: &ignored,
        waited: &signals.waited,
        // They are covered already, or by what finishes.
        placeholders: &Placeholders::default(),
        watched: open.watched.as_ref(),
        status: open.status,
    }
    .run()
}

/// Makes sure of what stands, and adds what is missing.
fn finish(handoff: &HandOff, complaints: &Complaints) -> Result<Mounted, Failure> {
    let plan = &handoff.plan;
    verify_mounts(handoff).map_err(|deviation| {
        complaints.name(&deviation);
        Failure {
            step: Step::VerifyMount,
            operation: u16::MAX,
            errno: deviation.errno,
        }
    })?;
    if plan.mounts.contains(&MountOp::SecureStandardDescriptors) {
        standard::secure(plan.network)?;
    }
    let rest = || {
        let all = plan.mounts.iter().enumerate().zip(&handoff.ways);
        all.filter(|(_, way)| **way == Way::Nested)
            .map(|(numbered, _)| numbered)
    };
    if let Some((first, _)) = rest().next() {
        enter_nested(handoff).map_err(|errno| Failure {
            step: Step::NestedNamespace,
            operation: u16::try_from(first).unwrap_or(u16::MAX),
            errno,
        })?;
        let held = |path: &AbsolutePath| handoff.placeholder(path);
        mounts::carry_out_rest(plan, &held, rest())?;
    }
    Ok(Mounted {
        places: mounts::places(plan)?,
        proc: match handoff.has_fresh_proc {
            true => ProcView::Fresh,
            false => ProcView::Host,
        },
    })
}

/// Enters a mount namespace of this process's own; an ordinary user needs
/// another user namespace for that. `/proc` is closed once the ids are mapped.
fn enter_nested(handoff: &HandOff) -> Result<(), Errno> {
    let identity = &handoff.plan.identity;
    let flags = match identity {
        Identity::UserNamespace { .. } => CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS,
        Identity::Privileged { .. } => CloneFlags::CLONE_NEWNS,
    };
    nix::sched::unshare(flags)?;
    identity::map_ids(identity).map_err(|failure| failure.errno)?;
    match handoff.has_fresh_proc {
        true => mounts::make_read_only(Path::new("/proc")),
        false => Ok(()),
    }
}

fn verify_mounts(handoff: &HandOff) -> Result<(), Deviation> {
    let proc = |errno| Deviation {
        path: "/proc".into(),
        errno,
    };
    let table = MountTable::read().map_err(proc)?;
    verify::verify(handoff, &table, &|path| {
        let fd = open_same(path, None)?;
        let stat = fstat(&fd)?;
        Ok(Seen {
            id: id_of(&stat),
            is_harmless_node: landlock::is_harmless(&stat),
        })
    })?;
    // The host's would show another number.
    let is_own = |text: &[u8]| text == std::process::id().to_string().as_bytes();
    match readlinkat(CWD, c"/proc/self", Vec::new()) {
        Ok(text) if !handoff.has_fresh_proc || is_own(text.as_bytes()) => Ok(()),
        Ok(_) => Err(proc(Errno(libc::EXDEV))),
        Err(errno) => Err(proc(errno.into())),
    }
}

/// Where bubblewrap's own complaints go, and where a path that deviates is named:
/// a record has no room for it.
struct Complaints {
    pipe: OwnedFd,
}

impl Complaints {
    /// Keeps the standard error that bubblewrap was given, and takes the
    /// command's in its place.
    fn take_over(stderr: i32) -> Result<Self, Errno> {
        let pipe = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), LOWEST)?;
        let stderr = sys::duplicate_number(stderr, LOWEST)?;
        nix::unistd::dup2_stderr(stderr.as_fd())?;
        Ok(Self { pipe })
    }

    /// Writes the path after a NUL, which no complaint holds.
    fn name(&self, deviation: &Deviation) {
        let text = [b"\0", deviation.path.as_os_str().as_bytes()].concat();
        let written: Result<usize, OsErrno> = rustix::io::write(&self.pipe, &text);
        // Without it the message has no path.
        let _ = written;
    }
}
