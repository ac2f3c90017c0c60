//! The process outside: prepares, forks, passes signals on, waits, reports.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::fs::{CWD, Mode, OFlags, openat};
use sandbox_policy::plan::{NotCovered, Requirement};
use sandbox_policy::{AbsolutePath, Plan, Purpose};

use crate::Backend;
use crate::command::{Command, Stdin};
use crate::error::{Context, Errno, Error, Step};
use crate::facts::shown_path;
use crate::native::exec::Image;
use crate::native::init::{Ground, Init};
use crate::native::process::Process;
use crate::native::standard::{self, above_inherited};
use crate::placeholders::{GivenBack, Held};
use crate::report::{Enforcement, Outcome, RunReport};
use crate::seccomp;
use crate::status::{Failure, MAX_BYTES, Record};
use crate::sys::{self, FORWARDED, Fork, Origin};

/// Runs a command in the sandbox of a plan.
pub(crate) fn run(plan: &Plan, command: Command) -> Result<RunReport, Error> {
    refuse_untrusted_heir(plan, &command)?;
    let image = Image::prepare(&command)?;
    let process = single_threaded()?;
    let cwd = real_directory(plan, &command.cwd)?;
    let filter = seccomp::compile(plan.network)
        .map_err(|_| Errno(libc::EINVAL))
        .during(Step::CompileFilter)?;
    let ignored: Vec<i32> = process.ignored_signals().collect();
    let (receiver, sender) = nix::unistd::pipe2(OFlag::O_CLOEXEC).during(Step::StatusPipe)?;
    let sender = above_inherited(sender).during(Step::StatusPipe)?;
    let signals = Signals::take_over(&ignored).during(Step::SignalMask)?;
    let held = Held::take(plan.missing_names())?;
    match sys::fork_into(namespaces(plan)).during(Step::Namespaces)? {
        Fork::Child => {
            drop(receiver);
            let stdin = match &command.stdin {
                Stdin::Inherit => None,
                Stdin::Descriptor(fd) => Some(fd),
            };
            Init {
                ground: Ground::New,
                plan,
                image: &image,
                filter: &filter,
                stdin,
                inherit: command.inherit.as_deref(),
                cwd: &cwd,
                ignored_signals: &ignored,
                waited: &signals.waited,
                placeholders: held.placeholders(),
                watched: held.watched(),
                status: sender,
            }
            .run()
        }
        Fork::Parent(init) => {
            drop((sender, command));
            let pass_on = |signal| sys::queue_signal(init, signal);
            match signals.supervise(init, pass_on) {
                Ok(end) => {
                    let records = records(&receiver)?;
                    conclude(plan, Backend::Native, held.give_back(), &records, end)
                }
                Err(errno) => {
                    held.leave_to_guardian();
                    Err(errno).during(Step::Wait)
                }
            }
        }
    }
}

/// Refuses to hand a descriptor to a command.
pub(crate) fn refuse_untrusted_heir(plan: &Plan, command: &Command) -> Result<(), Error> {
    match command.inherit.is_some() && plan.purpose != Purpose::Patch {
        true => Err(Errno(libc::EINVAL)).during(Step::InheritDescriptor),
        false => Ok(()),
    }
}

/// Returns the state of this process, which may have one thread only.
pub(crate) fn single_threaded() -> Result<Process, Error> {
    let process = Process::current().during(Step::InspectProcess)?;
    match process.threads {
        1 => Ok(process),
        _ => Err(Errno(libc::EBUSY)).during(Step::OneThread),
    }
}

/// Returns the clone flags for what a plan needs.
fn namespaces(plan: &Plan) -> i32 {
    let flags = [
        (Requirement::MountNamespace, libc::CLONE_NEWNS),
        (Requirement::PidNamespace, libc::CLONE_NEWPID),
        (Requirement::IpcNamespace, libc::CLONE_NEWIPC),
        (Requirement::NetworkNamespace, libc::CLONE_NEWNET),
        (Requirement::UserNamespace, libc::CLONE_NEWUSER),
    ];
    let needed = flags
        .into_iter()
        .filter(|(requirement, _)| plan.requires(*requirement));
    needed.fold(0, |all, (_, flag)| all | flag)
}

/// Returns a directory's path as it is spelled inside: a link on the way may be
/// hidden by a private `/tmp`. Below a root the plan knows the answer.
pub(crate) fn real_directory(plan: &Plan, path: &Path) -> Result<PathBuf, Error> {
    if let Ok(path) = AbsolutePath::new(path) {
        let real = plan.real_path(&path);
        if plan.roots.iter().any(|root| real.is_within(&root.real)) {
            return Ok(real.as_path().into());
        }
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty());
    shown_path(opened.during_on(Step::OpenCwd, path)?.as_fd()).during_on(Step::OpenCwd, path)
}

/// The signals that are blocked while the sandbox runs; dropping gives the old
/// state back.
pub(crate) struct Signals {
    pub(crate) waited: SigSet,
    previous: SigSet,
    child_was_ignored: bool,
}

impl Signals {
    /// Blocks the signals and makes sure that children can be waited for.
    pub(crate) fn take_over(ignored: &[i32]) -> Result<Self, Errno> {
        let mut waited: SigSet = FORWARDED.into_iter().collect();
        waited.add(Signal::SIGCHLD);
        let mut previous = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&waited), Some(&mut previous))?;
        let child_was_ignored = ignored.contains(&libc::SIGCHLD);
        let signals = Self {
            waited,
            previous,
            child_was_ignored,
        };
        if child_was_ignored {
            sys::reset_signal(libc::SIGCHLD)?;
        }
        Ok(signals)
    }

    /// Passes signals on until a child ends.
    ///
    /// Signals of a terminal reach the whole foreground group, the command
    /// included, and are not passed on a second time.
    pub(crate) fn supervise(
        &self,
        child: i32,
        pass_on: impl Fn(i32) -> Result<(), Errno>,
    ) -> Result<WaitStatus, Errno> {
        loop {
            let received = sys::wait_signal(&self.waited)?;
            if received.signal == Signal::SIGCHLD as i32 {
                match waitpid(Pid::from_raw(child), Some(WaitPidFlag::WNOHANG))? {
                    WaitStatus::StillAlive => {}
                    end => return Ok(end),
                }
            } else if received.origin != Origin::Kernel {
                pass_on(received.signal)?;
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if self.child_was_ignored {
            let _ = sys::ignore_signal(libc::SIGCHLD);
        }
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.previous), None);
    }
}

/// Reads everything that the sandbox said, up to its end.
pub(crate) fn records(receiver: &OwnedFd) -> Result<Vec<Record>, Error> {
    let mut buffer = [0; MAX_BYTES];
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(receiver, rest).during(Step::Wait)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(Record::decode_all(buffer.get(..length).unwrap_or_default()))
}

/// Makes a report of what the sandbox said and how it ended.
pub(crate) fn conclude(
    plan: &Plan,
    backend: Backend,
    given_back: GivenBack,
    records: &[Record],
    end: WaitStatus,
) -> Result<RunReport, Error> {
    let mut in_force = None;
    let mut outcome = None;
    for record in records {
        match *record {
            Record::Failed(failure) => return Err(explain(plan, failure)),
            Record::Enforced { landlock, proc } => in_force = Some((landlock, proc)),
            // The command's process ends with a code of its own, said later.
            Record::ExecFailed(errno) => outcome = outcome.or(Some(exec_outcome(errno))),
            Record::InputOffset(offset) => standard::set_input_offset(offset),
            Record::Exited(code) => outcome = outcome.or(Some(Outcome::Exited(code))),
            Record::Signaled(signal) => outcome = outcome.or(Some(Outcome::Signaled(signal))),
        }
    }
    let Some((landlock, proc)) = in_force else {
        return Err(Errno(libc::ECHILD)).during(Step::Init);
    };
    let killed = match end {
        WaitStatus::Signaled(_, signal, _) => Outcome::Signaled(signal as i32),
        _ => Outcome::Signaled(libc::SIGKILL),
    };
    let open = given_back.open.into_iter();
    let open = open.map(NotCovered::MissingProtectedName);
    let enforcement = Enforcement {
        backend,
        in_force: plan.requirements.clone(),
        landlock,
        proc,
        not_covered: plan.not_covered.iter().cloned().chain(open).collect(),
    };
    Ok(RunReport {
        outcome: outcome.unwrap_or(killed),
        enforcement,
        filled_placeholders: given_back.filled,
    })
}

fn exec_outcome(errno: Errno) -> Outcome {
    match errno.0 {
        libc::ENOENT | libc::ENOTDIR => Outcome::NotFound,
        _ => Outcome::NotExecutable(errno),
    }
}

/// Adds what a failed step was about.
fn explain(plan: &Plan, failure: Failure) -> Error {
    let operation = plan.mounts.get(usize::from(failure.operation));
    let subject = operation.and_then(|operation| operation.path(&plan.roots));
    Error {
        step: failure.step,
        subject: subject.map(|path| path.as_path().into()),
        errno: failure.errno,
        detail: None,
    }
}
