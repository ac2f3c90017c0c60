//! The command line of `codex-linux-sandbox` (S7), as programs that start it
//! type it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

/// Runs a command under a permission profile.
#[derive(Debug, Parser)]
#[command(name = "codex-linux-sandbox", version)]
pub struct Helper {
    /// What relative and symbolic paths of the policy are relative to
    #[arg(long, value_name = "DIR")]
    pub sandbox_policy_cwd: PathBuf,

    /// The directory that the command calls its own
    #[arg(long, value_name = "DIR", hide = true)]
    pub command_cwd: Option<PathBuf>,

    /// The policy, as a permission profile in JSON
    #[arg(long, value_name = "JSON", conflicts_with = "sandbox_policy")]
    pub permission_profile: Option<String>,

    /// The policy in its older form, in JSON or as a name
    #[arg(long, value_name = "JSON|NAME")]
    pub sandbox_policy: Option<String>,

    /// Restricts files by Landlock alone
    #[arg(long, hide = true)]
    pub use_legacy_landlock: bool,

    /// Shows the host's /proc, read-only, in place of one of the sandbox's own
    #[arg(long)]
    pub no_proc: bool,

    /// Shares the host's processes with the command (refused)
    #[arg(long, hide = true)]
    pub inherit_pid_namespace: bool,

    /// Lets the command reach proxies of the host only (refused)
    #[arg(long, value_name = "JSON", hide = true)]
    pub managed_network: Option<String>,

    /// Captures TCP connections (refused)
    #[arg(long, hide = true)]
    pub transparent_tcp: bool,

    /// Belongs to an inner stage of the reference (refused)
    #[arg(long, hide = true)]
    pub apply_seccomp_then_exec: bool,

    /// Belongs to an inner stage of the reference (refused)
    #[arg(long, value_name = "JSON", hide = true)]
    pub proxy_route_spec: Option<String>,

    /// Belongs to an inner stage of the reference (refused)
    #[arg(long, value_name = "SPEC", hide = true)]
    pub verify_fd_mount: Vec<String>,

    /// Belongs to an inner stage of the reference (refused)
    #[arg(long, value_name = "FD", hide = true)]
    pub transparent_tcp_fd: Option<i32>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl Helper {
    /// Returns a flag that asks for something which is not offered, with the
    /// reason.
    pub fn refused(&self) -> Option<(&'static str, &'static str)> {
        let refusals = [
            (
                self.inherit_pid_namespace,
                "--inherit-pid-namespace",
                "it would let the command signal processes of the host",
            ),
            (
                self.managed_network.is_some(),
                "--managed-network",
                "a network of proxies is not offered: leave it out for none, or let the profile \
                 enable the network",
            ),
            (
                self.transparent_tcp || self.transparent_tcp_fd.is_some(),
                "--transparent-tcp",
                "capturing connections is not offered",
            ),
            (
                self.apply_seccomp_then_exec,
                "--apply-seccomp-then-exec",
                "the inner stage is never started by hand: it isolates no files",
            ),
            (
                self.proxy_route_spec.is_some(),
                "--proxy-route-spec",
                "a network of proxies is not offered",
            ),
            (
                !self.verify_fd_mount.is_empty(),
                "--verify-fd-mount",
                "mounts are always verified",
            ),
        ];
        let asked = refusals.into_iter().find(|(is_asked, ..)| *is_asked);
        asked.map(|(_, flag, why)| (flag, why))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(words: &[&str]) -> Result<Helper, clap::Error> {
        let first = std::iter::once("codex-linux-sandbox");
        Helper::try_parse_from(first.chain(words.iter().copied()))
    }

    #[test]
    fn the_definition_is_consistent() {
        Helper::command().debug_assert();
    }

    #[test]
    fn parsing_stops_at_the_command() {
        let base = ["--sandbox-policy-cwd", ".", "--sandbox-policy", "read-only"];
        for command in [&["ls", "--no-proc"][..], &["--", "ls", "--no-proc"]] {
            let helper = parse(&[&base[..], command].concat()).unwrap();
            assert_eq!(helper.command, ["ls", "--no-proc"]);
            assert!(!helper.no_proc);
        }
        assert!(parse(&base).is_err());
        assert!(parse(&["--", "ls"]).is_err());
    }

    #[test]
    fn what_is_not_offered_is_known_by_its_flag() {
        let base = ["--sandbox-policy-cwd", "."];
        for flag in [
            &["--inherit-pid-namespace"][..],
            &["--managed-network", "{}"],
            &["--transparent-tcp"],
            &["--apply-seccomp-then-exec"],
            &["--proxy-route-spec", "{}"],
            &["--verify-fd-mount", "x"],
        ] {
            let helper = parse(&[&base[..], flag, &["ls"]].concat()).unwrap();
            assert_eq!(helper.refused().map(|(flag, _)| flag), Some(flag[0]));
        }
        let helper = parse(&[&base[..], &["--no-proc", "ls"]].concat()).unwrap();
        assert_eq!(helper.refused(), None);
    }
}
