//! What a bubblewrap can do, told by its own help: distributions change options
//! without changing the version.

use serde::{Deserialize, Serialize};

/// The options of a bubblewrap that make a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// What `--version` says after the name.
    pub version: String,
    /// `--args`: options can be read from a descriptor.
    pub args_fd: bool,
    /// `--argv0`: the program can be given another name.
    pub argv0: bool,
    /// `--bind-fd` and `--ro-bind-fd`: sources can be descriptors.
    pub bind_fd: bool,
    /// `--perms`: what is made can be given permission bits.
    pub perms: bool,
    /// `--as-pid-1`: the program itself can be process 1.
    pub as_pid_1: bool,
    /// A `/proc` of the sandbox's own can be mounted on this host.
    pub fresh_proc: bool,
}

impl Features {
    /// Reads the output of `--version` and of `--help`; whether `/proc` can be
    /// mounted is believed until a start fails.
    pub fn of_texts(version: &str, help: &str) -> Self {
        let has = |option: &str| {
            let mut first_words = help
                .lines()
                .filter_map(|line| line.split_ascii_whitespace().next());
            first_words.any(|word| word == option)
        };
        let version = version.lines().next().unwrap_or_default().trim();
        Self {
            version: version
                .strip_prefix("bubblewrap ")
                .unwrap_or(version)
                .to_owned(),
            args_fd: has("--args"),
            argv0: has("--argv0"),
            bind_fd: has("--bind-fd") && has("--ro-bind-fd"),
            perms: has("--perms"),
            as_pid_1: has("--as-pid-1"),
            fresh_proc: true,
        }
    }

    /// Returns an option without which nothing can be built.
    ///
    /// A process 1 of bubblewrap's own would hold the host's descriptors within
    /// the command's reach (`/proc/1/fd`).
    pub fn lacks(&self) -> Option<&'static str> {
        (!self.as_pid_1).then_some("--as-pid-1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_words_at_the_start_of_a_line() {
        let help = "usage: bwrap [OPTIONS...]\n    --args FD   Parse\n    --ro-bind-fd FD DEST\n\
            \x20   --as-pid-1    Do not (see --argv0 and --perms)\n    --argv0-not X\n";
        let features = Features::of_texts("bubblewrap 0.8.0\n", help);
        assert_eq!(
            features,
            Features {
                version: "0.8.0".into(),
                args_fd: true,
                as_pid_1: true,
                fresh_proc: true,
                ..Features::default()
            }
        );
        assert_eq!(features.lacks(), None);
        assert_eq!(Features::of_texts("", "").lacks(), Some("--as-pid-1"));
    }

    #[test]
    fn both_ways_of_binding_are_needed() {
        let one = Features::of_texts("x", "  --bind-fd FD DEST");
        let both = Features::of_texts("x", "  --bind-fd FD DEST\n  --ro-bind-fd FD DEST");
        assert_eq!((one.bind_fd, both.bind_fd), (false, true));
    }
}
