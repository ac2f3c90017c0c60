//! Process 1 of the sandbox: sets everything up, confines itself, starts the
//! command, reaps what is left, and ends with the command.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use sandbox_policy::Plan;
use sandbox_policy::plan::Requirement;
use seccompiler::BpfProgram;

use crate::command::INHERITED_FD;
use crate::error::{Errno, Step};
use crate::landlock;
use crate::native::exec::Image;
use crate::native::mounts::Mounted;
use crate::native::{identity, mounts, standard};
use crate::placeholders::Placeholders;
use crate::status::{At, Failure, Record};
use crate::sys::{self, Fork, Origin};

/// `CLOSE_RANGE_CLOEXEC`.
const CLOSE_ON_EXEC: u32 = 1 << 2;

/// The first descriptor that a program does not inherit, unless it was asked for.
const FIRST_CLOSED: u32 = INHERITED_FD as u32;

/// What process 1 finds around it.
pub(crate) enum Ground<'a> {
    /// New namespaces, with the host's mounts in them.
    New,
    /// What somebody else has mounted; this makes sure of it, and adds the rest.
    Mounted(&'a dyn Fn() -> Result<Mounted, Failure>),
}

/// Everything that process 1 was given before it began.
pub(crate) struct Init<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) image: &'a Image,
    pub(crate) filter: &'a BpfProgram,
    pub(crate) stdin: Option<&'a OwnedFd>,
    pub(crate) inherit: Option<&'a OwnedFd>,
    pub(crate) cwd: &'a std::path::Path,
    pub(crate) ignored_signals: &'a [i32],
    pub(crate) waited: &'a SigSet,
    /// What stands in for missing names.
    pub(crate) placeholders: &'a Placeholders,
    /// What the guardian waits for the end of.
    pub(crate) watched: Option<&'a OwnedFd>,
    pub(crate) status: OwnedFd,
}

impl Init<'_> {
    /// Runs process 1 to its end.
    pub(crate) fn run(self) -> ! {
        match self.set_up().and_then(|record| self.start(record)) {
            Ok(command) => self.reap_until(command),
            Err(failure) => {
                self.send(Record::Failed(failure));
                sys::exit_now(1)
            }
        }
    }

    /// Builds the sandbox around this process.
    fn set_up(&self) -> Result<Record, Failure> {
        sys::die_with_parent().at(Step::DeathSignal)?;
        if let Ground::New = self.ground {
            identity::map_ids(&self.plan.identity)?;
        }
        self.replace_stdin().at(Step::ReplaceStdin)?;
        let first_closed = self.hand_on().at(Step::InheritDescriptor)?;
        let mounted = match self.ground {
            Ground::New => self.mount()?,
            Ground::Mounted(finish) => finish()?,
        };
        join_new_keyring().at(Step::Keyring)?;
        nix::unistd::chdir(self.cwd).at(Step::ChangeDirectory)?;
        sys::close_range(first_closed, u32::MAX, CLOSE_ON_EXEC).at(Step::CloseDescriptors)?;
        sys::forbid_inspection().at(Step::DropCapabilities)?;
        identity::drop_capabilities(self.plan)?;
        let status = landlock::restrict(&mounted.places).at(Step::Landlock)?;
        mounted
            .places
            .into_iter()
            .for_each(|(place, _)| sys::leave_open(place));
        seccompiler::apply_filter(self.filter)
            .map_err(filter_errno)
            .at(Step::Seccomp)?;
        Ok(Record::Enforced {
            landlock: status,
            proc: mounted.proc,
        })
    }

    fn mount(&self) -> Result<Mounted, Failure> {
        if self.plan.requires(Requirement::NetworkNamespace) {
            sys::loopback_up().at(Step::Loopback)?;
        }
        mounts::carry_out(self.plan, self.placeholders)
    }

    fn replace_stdin(&self) -> Result<(), Errno> {
        if let Some(stdin) = self.stdin {
            nix::unistd::dup2_stdin(stdin)?;
        }
        Ok(())
    }

    /// Puts the inherited descriptor in its place, and returns the first number
    /// that the program must not inherit.
    fn hand_on(&self) -> Result<u32, Errno> {
        let Some(fd) = self.inherit else {
            return Ok(FIRST_CLOSED);
        };
        standard::inherit(fd.as_fd())?;
        Ok(FIRST_CLOSED + 1)
    }

    /// Starts the command as process 2.
    ///
    /// A supervisor that died before the death signal was set reads nothing, so
    /// the word to it fails and nothing is started.
    fn start(&self, enforced: Record) -> Result<i32, Failure> {
        rustix::io::write(&self.status, &enforced.encode()).at(Step::Init)?;
        match sys::fork_into(0).at(Step::Fork)? {
            Fork::Parent(command) => Ok(command),
            Fork::Child => {
                let errno = self.become_command();
                self.send(Record::ExecFailed(errno));
                sys::exit_now(127)
            }
        }
    }

    /// Gives signals their default meaning and executes the command.
    fn become_command(&self) -> Errno {
        for signal in self.ignored_signals {
            if let Err(errno) = sys::reset_signal(*signal) {
                return errno;
            }
        }
        let none = SigSet::empty();
        if let Err(errno) = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&none), None) {
            return errno.into();
        }
        self.image.execute()
    }

    fn send(&self, record: Record) {
        // Nobody is left to be told when the supervisor is gone.
        let _ = rustix::io::write(&self.status, &record.encode());
    }

    fn send_input_offset(&self) {
        // An input of our own making is nobody else's.
        let shared = self.stdin.is_none();
        if let Some(offset) = standard::input_offset().filter(|_| shared) {
            self.send(Record::InputOffset(offset));
        }
    }

    /// Reaps every process until the command ends, then ends everything.
    fn reap_until(&self, command: i32) -> ! {
        self.close_all_but_status();
        loop {
            while let Ok(status) = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                match status {
                    WaitStatus::Exited(pid, code) if pid.as_raw() == command => {
                        self.send_input_offset();
                        self.send(Record::Exited(code as u8));
                        sys::exit_now(0)
                    }
                    WaitStatus::Signaled(pid, signal, _) if pid.as_raw() == command => {
                        self.send_input_offset();
                        self.send(Record::Signaled(signal as i32));
                        sys::exit_now(0)
                    }
                    WaitStatus::StillAlive => break,
                    _ => {}
                }
            }
            self.wait_and_pass_on(command);
        }
    }

    /// Waits for a signal; passes it on when the supervisor sent it.
    ///
    /// A terminal sends its signals to the command as well, so those from the
    /// kernel are not passed on.
    fn wait_and_pass_on(&self, command: i32) {
        let Ok(received) = sys::wait_signal(self.waited) else {
            return;
        };
        let is_child = received.signal == Signal::SIGCHLD as i32;
        if !is_child && received.origin == Origin::Queue {
            let signal = Signal::try_from(received.signal).ok();
            let _ = nix::sys::signal::kill(Pid::from_raw(command), signal);
        }
    }

    /// Keeps descriptors of the host out of reach of `/proc/1/fd`.
    fn close_all_but_status(&self) {
        let watched = self.watched.map(AsRawFd::as_raw_fd);
        let kept = [Some(self.status.as_raw_fd()), watched];
        let kept = kept.into_iter().flatten();
        let mut kept: Vec<u32> = kept.filter_map(|fd| u32::try_from(fd).ok()).collect();
        sys::close_all_from_but(FIRST_CLOSED, &mut kept);
    }
}

/// A kernel without keyrings has none to leave.
fn join_new_keyring() -> Result<(), Errno> {
    match sys::join_session_keyring() {
        Err(Errno(libc::ENOSYS)) => Ok(()),
        other => other,
    }
}

fn filter_errno(error: seccompiler::Error) -> Errno {
    match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error.into(),
        _ => Errno(libc::EINVAL),
    }
}
