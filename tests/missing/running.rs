//! A command that is running in its sandbox until the test says so.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sandpatch_tests::Place;

use crate::{LIMIT, run_with};

/// A sandbox whose command waits for a word.
pub struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts a command that waits, and then runs `then`; returns when it waits.
    pub fn start(place: &Place, flags: &[&str], then: &str) -> Self {
        let script = format!("echo up; read word; {then}");
        let mut command = run_with(place, flags, &script);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start");
        let input = child.stdin.take().expect("piped");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("read");
        assert_eq!(line, "up\n", "the sandbox did not start");
        Self {
            child,
            input,
            output,
        }
    }

    /// Lets the command go on, and returns what it wrote and how it ended.
    pub fn end(mut self) -> (String, ExitStatus) {
        self.input.write_all(b"\n").expect("write");
        let mut rest = String::new();
        // To the end of the pipe: nobody may hold it longer than the command.
        while self.output.read_line(&mut rest).expect("read") > 0 {}
        (rest, self.child.wait().expect("wait"))
    }

    /// Kills the supervisor and waits until process 1 is gone.
    pub fn kill(mut self) {
        let init = self.init();
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
        eventually("process 1 is gone", || !is_alive(init));
    }

    /// Kills the guardian and then the supervisor.
    pub fn kill_with_guardian(self) {
        let guardian = self.guardian();
        let pid = nix::unistd::Pid::from_raw(guardian);
        nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).expect("kill");
        eventually("the guardian is dead", || !is_alive(guardian));
        self.kill();
    }

    /// The process in a session of its own.
    pub fn guardian(&self) -> i32 {
        self.one_child(|pid, session| pid == session)
    }

    fn init(&self) -> i32 {
        self.one_child(|pid, session| pid != session)
    }

    fn one_child(&self, wanted: impl Fn(i32, i32) -> bool) -> i32 {
        let mut found = None;
        eventually("the child of the supervisor", || {
            let children = self.children();
            let mut fitting = children
                .iter()
                .filter(|pid| session_of(**pid).is_some_and(|session| wanted(**pid, session)));
            found = fitting.next().copied();
            // Before it has a session of its own, a guardian looks like process 1.
            found.is_some() && fitting.next().is_none()
        });
        found.expect("found")
    }

    /// The children of the supervisor.
    pub fn children(&self) -> Vec<i32> {
        let pid = self.child.id();
        let path = PathBuf::from(format!("/proc/{pid}/task/{pid}/children"));
        let list = fs::read_to_string(path).expect("children");
        let numbers = list.split_whitespace().map(|word| word.parse());
        numbers.map(|number| number.expect("a number")).collect()
    }
}

/// The fields of `/proc/PID/stat` behind the name.
fn stat(pid: i32) -> Option<Vec<String>> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = line.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn session_of(pid: i32) -> Option<i32> {
    stat(pid)?.get(3)?.parse().ok()
}

/// Tells whether a process runs; one that is only to be reaped does not.
fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|fields| fields.first().is_some_and(|state| state != "Z"))
}

/// Waits for something that another process does.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "it never came true: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
