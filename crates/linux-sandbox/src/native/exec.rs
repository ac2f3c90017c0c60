//! Prepares the command before the fork, and becomes it after.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

use crate::command::{Command, Program};
use crate::error::{Context, Errno, Error, Step};
use crate::native::standard::above_inherited;
use crate::sys::{self, StringArray};

/// Where programs are looked up when there is no `PATH`, as in the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What runs a text file that names no interpreter.
const SHELL: &CStr = c"/bin/sh";

/// Everything that `execve` needs, in its own form.
pub(crate) struct Image {
    program: Candidates,
    args: StringArray,
    vars: StringArray,
}

enum Candidates {
    Paths(Vec<CString>),
    File(OwnedFd),
}

impl Image {
    /// Prepares a command.
    pub(crate) fn prepare(command: &Command) -> Result<Self, Error> {
        let program = match &command.program {
            Program::SelfExe => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let opened = openat(CWD, c"/proc/self/exe", flags, Mode::empty());
                let opened = opened.during(Step::OpenSelf)?;
                Candidates::File(above_inherited(opened).during(Step::OpenSelf)?)
            }
            Program::Named(name) => {
                let path = command.environment.path.as_deref();
                Candidates::Paths(candidates(name, path).during_on(Step::PrepareCommand, name)?)
            }
        };
        let vars = command.environment.vars.iter().map(|(name, value)| {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            line
        });
        Ok(Self {
            program,
            args: strings(command.args.iter().cloned()).during(Step::PrepareCommand)?,
            vars: strings(vars).during(Step::PrepareCommand)?,
        })
    }

    /// Becomes the command; returns only when that fails.
    pub(crate) fn execute(&self) -> Errno {
        let paths = match &self.program {
            Candidates::File(file) => {
                return sys::execute_file(file.as_fd(), &self.args, &self.vars);
            }
            Candidates::Paths(paths) => paths,
        };
        let mut worst = Errno(libc::ENOENT);
        for path in paths {
            match sys::execute(path, &self.args, &self.vars) {
                Errno(libc::ENOEXEC) => return self.execute_script(path),
                Errno(libc::ENOENT | libc::ENOTDIR) => {}
                // A later directory may hold one that can be executed, and one
                // that cannot be searched holds none for us.
                Errno(libc::EACCES) => {
                    if statat(CWD, path.as_c_str(), AtFlags::empty()).is_ok() {
                        worst = Errno(libc::EACCES);
                    }
                }
                other => return other,
            }
        }
        worst
    }
}

impl Image {
    /// Has the shell run a text file without `#!`, as `execvp` does.
    fn execute_script(&self, path: &CStr) -> Errno {
        let mut args = vec![SHELL.to_owned(), path.to_owned()];
        args.extend(self.args.strings().iter().skip(1).cloned());
        sys::execute(SHELL, &StringArray::new(args), &self.vars)
    }
}

fn strings(texts: impl Iterator<Item = OsString>) -> Result<StringArray, Errno> {
    let texts: Result<Vec<_>, _> = texts.map(|text| c_string(text.into_vec())).collect();
    Ok(StringArray::new(texts?))
}

fn c_string(bytes: Vec<u8>) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno(libc::EINVAL))
}

/// Lists the paths that a name may stand for.
fn candidates(name: &OsStr, path: Option<&OsStr>) -> Result<Vec<CString>, Errno> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(name.as_bytes().to_vec())?]);
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes();
    path.split(|byte| *byte == b':')
        .map(|dir| {
            let dir = if dir.is_empty() { b"." } else { dir };
            c_string([dir, b"/", name.as_bytes()].concat())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_names_up_like_a_shell() {
        let found = |name: &str, path: Option<&str>| {
            candidates(OsStr::new(name), path.map(OsStr::new)).unwrap()
        };
        assert_eq!(found("a/b", Some("/x")), [c"a/b".to_owned()]);
        assert_eq!(
            found("a", Some("/x::/y")),
            [c"/x/a".to_owned(), c"./a".to_owned(), c"/y/a".to_owned()]
        );
        assert_eq!(
            found("a", None),
            [c"/bin/a".to_owned(), c"/usr/bin/a".to_owned()]
        );
        assert!(found("", Some("/x")).is_empty());
        assert!(candidates(OsStr::new("a\0"), None).is_err());
    }
}
