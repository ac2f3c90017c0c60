//! One case: how its folder is read, laid out and run.
//!
//! A case folder holds `patch.txt` (raw bytes) and `observed/`, and may hold
//! `input/` (copied to the working directory), `setup.sh` (run there before),
//! `how.txt` (`argv`, `stdin` or `script`), `run.sh` (for `script`: `$APPLY` is
//! the executable, `$PATCH_FILE` the patch), `env.txt` (`K=V` lines),
//! `user.txt` (runs as uid 65534) and `no_flag` (only makes sense as `arg0`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use nix::unistd::geteuid;
use sandpatch_tests::{Identity, bytes, exe, fixtures, limited, place};

use crate::record::Record;

/// The time that the recorded runs had; a hang was recorded as `timeout`.
const LIMIT: Duration = Duration::from_secs(8);

/// How the executable is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Through a link named `apply_patch`.
    Arg0,
    /// As `sandpatch --codex-run-as-apply-patch PATCH`.
    Flag,
}

impl Form {
    /// The form's name in test names and record folders.
    pub fn label(self) -> &'static str {
        match self {
            Self::Arg0 => "arg0",
            Self::Flag => "flag",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Argv,
    Stdin,
    Script,
}

/// One case folder.
#[derive(Clone, Debug)]
pub struct Case {
    folder: PathBuf,
    how: How,
    identity: Identity,
}

/// The directories of one run.
struct Layout {
    top: tempfile::TempDir,
    root: PathBuf,
    cwd: PathBuf,
    bin: PathBuf,
}

impl Case {
    /// Reads what decides how the case is run.
    pub fn read(folder: &Path) -> Self {
        let how = match fixtures::optional_text(&folder.join("how.txt")).as_deref() {
            None | Some("argv") => How::Argv,
            Some("stdin") => How::Stdin,
            Some(_) => How::Script,
        };
        let identity = match fixtures::optional_text(&folder.join("user.txt")) {
            Some(_) => Identity::Uid(65_534),
            None => Identity::Caller,
        };
        Self {
            folder: folder.to_owned(),
            how,
            identity,
        }
    }

    /// The folder's name.
    pub fn name(&self) -> String {
        fixtures::name_of(&self.folder)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The forms in which this case differs; a patch on stdin or a script has
    /// its own way of starting the executable.
    pub fn forms(&self) -> Vec<Form> {
        if self.how == How::Argv && !self.folder.join("no_flag").exists() {
            vec![Form::Arg0, Form::Flag]
        } else {
            vec![Form::Arg0]
        }
    }

    /// True when the case needs another user and nobody here can become one.
    pub fn needs_root_here(&self) -> bool {
        self.identity != Identity::Caller && !geteuid().is_root()
    }

    /// Runs the case in a fresh directory.
    pub fn run(&self, form: Form) -> Record {
        let layout = self.lay_out();
        let (command, input) = self.command(&layout, form);
        let outcome = limited::run(command, &input, LIMIT);
        let record = Record::of(&layout.root, |text| layout.normalise(text), &outcome);
        place::unlock(layout.top.path());
        record
    }

    fn lay_out(&self) -> Layout {
        let top = place::top();
        let root = top.path().join("r/root");
        let layout = Layout {
            cwd: root.join("w"),
            bin: top.path().join("bin"),
            root,
            top,
        };
        fs::create_dir_all(&layout.cwd).expect("create");
        fs::create_dir(&layout.bin).expect("create");
        // The executable under test, and the case's own files, where every
        // user can reach them.
        if self.identity == Identity::Caller {
            for name in ["sandpatch", "apply_patch"] {
                std::os::unix::fs::symlink(exe::executable(), layout.bin.join(name)).expect("link");
            }
        } else {
            let _copy = exe::install(&layout.bin);
        }
        for name in ["patch.txt", "run.sh"] {
            let source = self.folder.join(name);
            if source.exists() {
                fs::copy(source, layout.bin.join(name)).expect("copy");
            }
        }
        self.fill(&layout);
        layout
    }

    fn fill(&self, layout: &Layout) {
        let input = self.folder.join("input");
        if input.is_dir() {
            fixtures::copy_tree(&input, &layout.cwd);
        }
        let setup = self.folder.join("setup.sh");
        if setup.exists() {
            let mut command = Command::new("bash");
            command.arg(setup).current_dir(&layout.cwd);
            layout.environment(&mut command);
            let outcome = limited::run(command, b"", LIMIT);
            assert!(outcome.succeeded(), "setup.sh failed: {outcome}");
        }
        if self.identity != Identity::Caller {
            own_tree(self.identity, &layout.root);
        }
    }

    fn command(&self, layout: &Layout, form: Form) -> (Command, Vec<u8>) {
        let patch = fs::read(self.folder.join("patch.txt")).expect("read patch.txt");
        let alias = layout.bin.join("apply_patch");
        let mut input = Vec::new();
        let mut command = match (self.how, form) {
            (How::Argv, Form::Flag) => {
                let mut command = Command::new(layout.bin.join("sandpatch"));
                command.arg("--codex-run-as-apply-patch");
                command
            }
            (How::Argv | How::Stdin, _) => Command::new(alias),
            (How::Script, _) => {
                let mut command = Command::new("bash");
                command.arg(layout.bin.join("run.sh"));
                command
            }
        };
        match self.how {
            How::Argv => drop(command.arg(OsString::from_vec(patch))),
            How::Stdin => input = patch,
            How::Script => {}
        }
        self.identity.apply(&mut command);
        command.current_dir(&layout.cwd);
        layout.environment(&mut command);
        self.own_variables(&mut command);
        (command, input)
    }

    fn own_variables(&self, command: &mut Command) {
        let text = fixtures::optional_text(&self.folder.join("env.txt")).unwrap_or_default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            command.env(name, value);
        }
    }
}

impl Layout {
    /// The environment of a case: nothing of the caller's that changes results.
    fn environment(&self, command: &mut Command) {
        for (name, _) in env::vars_os() {
            if name.as_bytes().starts_with(b"CODEX_") || name == OsStr::new("XDG_STATE_HOME") {
                command.env_remove(name);
            }
        }
        command
            .env("ROOT", &self.root)
            .env("CWD", &self.cwd)
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", self.top.path().join("r"))
            .env("APPLY", self.bin.join("apply_patch"))
            .env("PATCH_FILE", self.bin.join("patch.txt"));
    }

    /// Takes the run's own directories out of `text`.
    fn normalise(&self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for (path, name) in [
            (&self.cwd, "$CWD"),
            (&self.root, "$ROOT"),
            (&self.bin, "$BIN"),
        ] {
            text = bytes::replace(&text, path.as_os_str().as_bytes(), name.as_bytes());
        }
        text
    }
}

fn own_tree(identity: Identity, path: &Path) {
    identity.own(path);
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).expect("list") {
            own_tree(identity, &entry.expect("entry").path());
        }
    }
}
