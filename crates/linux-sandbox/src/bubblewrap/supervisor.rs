//! The process outside: chooses a bubblewrap, starts it, and hears of the stage
//! inside what came of it.

use std::ffi::{CString, OsString};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair, sockopt,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, pidfd_open};
use sandbox_policy::Plan;
use sandbox_policy::plan::MountOp;

use crate::Backend;
use crate::bubblewrap::INNER_STAGE_SWITCH;
use crate::bubblewrap::features::Features;
use crate::bubblewrap::handoff::{HandOff, Numbers, Task, stdin_number};
use crate::bubblewrap::probe::{self, VARIABLES};
use crate::bubblewrap::render::{joined, render};
use crate::bubblewrap::sources::{self, Sources};
use crate::carrier::carry;
use crate::command::{Command, Stdin};
use crate::error::{Context, Errno, Error, Step};
use crate::native::exec::Image;
use crate::native::standard::above_inherited;
use crate::native::supervisor::{Signals, conclude, real_directory, records};
use crate::placeholders::Held;
use crate::report::RunReport;
use crate::sys::{self, Fork, StringArray};

/// What came of a start.
pub(crate) enum Started {
    /// The stage inside ran, and so did the command, or it says why not.
    Ran(Result<RunReport, Error>),
    /// Bubblewrap ended before the stage did anything, with this complaint.
    NotStarted(String),
}

/// Everything that is open while bubblewrap starts.
struct Ends {
    sources: Sources,
    own: OwnedFd,
    message: OwnedFd,
    options: Option<OwnedFd>,
    hello: OwnedFd,
    status: OwnedFd,
    stderr: OwnedFd,
    complaints: OwnedFd,
    watched: Option<OwnedFd>,
}

/// What stays with the supervisor.
struct Channels {
    hello: OwnedFd,
    status: OwnedFd,
    complaints: OwnedFd,
}

/// Starts a bubblewrap, and waits for its end.
pub(crate) fn start(
    program: &Path,
    features: &Features,
    plan: &Plan,
    command: &Command,
    ignored: &[i32],
) -> Result<Started, Error> {
    // What cannot be executed at all is known before anything is started.
    Image::prepare(command)?;
    let signals = Signals::take_over(ignored).during(Step::SignalMask)?;
    let held = Held::take(plan.missing_names())?;
    let (ends, channels, words) = prepare(program, features, plan, command, &held)?;
    let inherited = ends.inherited(command);
    let variables = VARIABLES.map(|(name, value)| OsString::from(format!("{name}={value}")));
    let path = c_string(program.as_os_str().to_owned())?;
    let args = strings(words)?;
    let variables = strings(variables.to_vec())?;
    match sys::fork_into(0).during(Step::Namespaces)? {
        Fork::Child => {
            let errno = ends.become_bubblewrap(&inherited, &path, &args, &variables);
            let text = format!("it cannot be executed: {errno}");
            let _ = rustix::io::write(&ends.complaints, text.as_bytes());
            sys::exit_now(127)
        }
        Fork::Parent(child) => {
            drop(inherited);
            drop(ends);
            wait(plan, child, &signals, &channels, held)
        }
    }
}

fn wait(
    plan: &Plan,
    child: i32,
    signals: &Signals,
    channels: &Channels,
    held: Held,
) -> Result<Started, Error> {
    let stage = stage_process(&channels.hello).during(Step::Wait)?;
    let Some(stage) = stage else {
        waitpid(Pid::from_raw(child), None).during(Step::Wait)?;
        let said = complaints(&channels.complaints);
        let line = probe::complaint(&said).unwrap_or_else(|| "it ended without a word".to_owned());
        return Ok(Started::NotStarted(line));
    };
    let pass_on = |signal| match sys::queue_signal_to(stage.as_fd(), signal) {
        // It ends on its own; bubblewrap is not done yet.
        Err(Errno(libc::ESRCH)) => Ok(()),
        other => other,
    };
    let end = match signals.supervise(child, pass_on) {
        Ok(end) => end,
        Err(errno) => {
            held.leave_to_guardian();
            return Err(errno).during(Step::Wait);
        }
    };
    let records = records(&channels.status)?;
    let report = conclude(plan, Backend::Bubblewrap, held.give_back(), &records, end);
    Ok(Started::Ran(report.map_err(|error| match error.step {
        Step::VerifyMount => Error {
            subject: named(&complaints(&channels.complaints)),
            ..error
        },
        _ => error,
    })))
}

fn prepare(
    program: &Path,
    features: &Features,
    plan: &Plan,
    command: &Command,
    held: &Held,
) -> Result<(Ends, Channels, Vec<OsString>), Error> {
    let sources = sources::open(plan, features, held.placeholders())?;
    let (hello, their_hello) = hello_pair().during(Step::StatusPipe)?;
    let (status, their_status) = pipe_with(PipeFlags::CLOEXEC).during(Step::StatusPipe)?;
    // A complaint that does not fit must not stop the one who complains.
    let quiet = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (complaints, their_complaints) = pipe_with(quiet).during(Step::StatusPipe)?;
    let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 0);
    let own = openat(
        CWD,
        c"/proc/self/exe",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let mut ends = Ends {
        own: keep(own.during(Step::OpenSelf)?)?,
        message: carry(b"").during(Step::HandOff)?,
        options: None,
        hello: keep(their_hello)?,
        status: keep(their_status)?,
        stderr: keep(stderr.during(Step::HandOff)?)?,
        complaints: keep(their_complaints)?,
        watched: held.watched().map(duplicate).transpose()?,
        sources,
    };
    let handoff = ends.handoff(features, plan, command)?;
    let bytes = handoff.encode().during(Step::HandOff)?;
    ends.message = keep(carry(&bytes).during(Step::HandOff)?)?;
    let options = render(plan, features, &ends.sources.table);
    if features.args_fd {
        ends.options = Some(keep(carry(&joined(&options)).during(Step::HandOff)?)?);
    }
    let words = ends.words(program, options);
    let channels = Channels {
        hello,
        status,
        complaints,
    };
    Ok((ends, channels, words))
}

impl Ends {
    fn handoff(
        &self,
        features: &Features,
        plan: &Plan,
        command: &Command,
    ) -> Result<HandOff, Error> {
        let has_proc = plan.mounts.contains(&MountOp::FreshProc);
        Ok(HandOff {
            plan: plan.clone(),
            places: self.sources.table.places.clone(),
            ways: self.sources.table.ways.clone(),
            has_fresh_proc: has_proc && features.fresh_proc,
            task: Task::of(command, real_directory(plan, &command.cwd)?),
            numbers: Numbers {
                hello: self.hello.as_raw_fd(),
                status: self.status.as_raw_fd(),
                stderr: self.stderr.as_raw_fd(),
                stdin: stdin_number(command),
                inherit: command.inherit.as_ref().map(|fd| fd.as_raw_fd()),
                watched: self.watched.as_ref().map(AsRawFd::as_raw_fd),
            },
        })
    }

    /// Returns the whole argument vector.
    fn words(&self, program: &Path, options: Vec<OsString>) -> Vec<OsString> {
        let mut words = vec![program.as_os_str().to_owned()];
        match &self.options {
            Some(fd) => words.extend(["--args".into(), fd.as_raw_fd().to_string().into()]),
            None => words.extend(options),
        }
        let stage = format!("/proc/self/fd/{}", self.own.as_raw_fd());
        let message = self.message.as_raw_fd().to_string();
        words.extend(["--", &stage, INNER_STAGE_SWITCH, &message].map(OsString::from));
        words
    }

    /// Lists the descriptors that bubblewrap and the stage inside need.
    fn inherited<'a>(&'a self, command: &'a Command) -> Vec<BorrowedFd<'a>> {
        let own = [
            &self.own,
            &self.message,
            &self.hello,
            &self.status,
            &self.stderr,
        ];
        let stdin = match &command.stdin {
            Stdin::Inherit => None,
            Stdin::Descriptor(fd) => Some(fd),
        };
        own.into_iter()
            .chain(&self.options)
            .chain(&self.sources.open)
            .chain(&self.watched)
            .chain(stdin)
            .chain(command.inherit.as_deref())
            .map(AsFd::as_fd)
            .collect()
    }

    /// Becomes bubblewrap; returns only when that fails.
    fn become_bubblewrap(
        &self,
        inherited: &[BorrowedFd<'_>],
        path: &CString,
        args: &StringArray,
        variables: &StringArray,
    ) -> Errno {
        let prepare = || -> Result<(), Errno> {
            sys::die_with_parent()?;
            for fd in inherited {
                fcntl_setfd(fd, FdFlags::empty())?;
            }
            Ok(nix::unistd::dup2_stderr(&self.complaints)?)
        };
        match prepare() {
            Ok(()) => sys::execute(path, args, variables),
            Err(errno) => errno,
        }
    }
}

fn keep(fd: OwnedFd) -> Result<OwnedFd, Error> {
    above_inherited(fd).during(Step::HandOff)
}

/// Takes a copy of a descriptor that stays with its owner.
fn duplicate(fd: &OwnedFd) -> Result<OwnedFd, Error> {
    let copy = rustix::io::fcntl_dupfd_cloexec(fd, 0).during(Step::HandOff)?;
    keep(copy)
}

fn strings(texts: Vec<OsString>) -> Result<StringArray, Error> {
    let texts: Result<Vec<_>, _> = texts.into_iter().map(c_string).collect();
    Ok(StringArray::new(texts?))
}

fn c_string(text: OsString) -> Result<CString, Error> {
    CString::new(text.as_bytes())
        .map_err(|_| Errno(libc::EINVAL))
        .during(Step::HandOff)
}

/// Makes the pair over which the stage says that it runs: the kernel adds whose
/// word it is, by its number out here.
fn hello_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_passcred(&ours, true)?;
    Ok((ours, theirs))
}

/// Waits for the word of the stage inside; returns nothing when all who could
/// say it are gone.
fn stage_process(hello: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        hello,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let credentials = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials),
        _ => None,
    });
    let process = credentials.ok_or(Errno(libc::EPROTO))?.pid;
    Ok(Some(pidfd_open(process, PidfdFlags::empty())?))
}

/// Reads what was said so far.
fn complaints(pipe: &OwnedFd) -> Vec<u8> {
    let mut buffer = vec![0; 16 << 10];
    let length = rustix::io::read(pipe, &mut buffer).unwrap_or(0);
    buffer.truncate(length);
    buffer
}

/// Returns the path that the stage named.
fn named(said: &[u8]) -> Option<PathBuf> {
    let start = said.iter().rposition(|byte| *byte == 0)?;
    let path = std::ffi::OsStr::from_bytes(said.get(start + 1..)?);
    Some(PathBuf::from(path))
}
