//! Where the state lies: a pure choice between what the environment and the
//! user database say.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::accounts;
use crate::user::User;

use super::NoState;

/// The directory that holds the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The directory; it and its parents are made when they are missing.
    pub path: PathBuf,
    /// The ancestor that is never made: a home that does not exist is not wanted.
    pub floor: PathBuf,
}

/// The name of the state directory.
pub(super) const NAME: &str = "sandpatch";

impl Base {
    /// Returns the state directory.
    pub fn directory(&self) -> PathBuf {
        self.path.join(NAME)
    }

    /// Chooses by `XDG_STATE_HOME`, the account's home, or `HOME` where the user
    /// has no account. Values that are not absolute count as unset, as the XDG
    /// base directory specification says. Of an assumed user it is the account's
    /// home: the environment is root's.
    ///
    /// # Errors
    ///
    /// [`NoState::NoHome`] when nothing names a place.
    pub fn of(user: &User) -> Result<Self, NoState> {
        let uid = rustix::process::geteuid().as_raw();
        if let User::Assumed { home } = user {
            let base = home.as_deref().and_then(below_home);
            return base.ok_or(NoState::NoHome { uid });
        }
        let xdg = std::env::var_os("XDG_STATE_HOME");
        let account = || Some(accounts::account_of_uid(&accounts::passwd().ok()?, uid)?.home);
        choose(xdg, account, std::env::var_os("HOME")).ok_or(NoState::NoHome { uid })
    }
}

/// Looks the account up only when the environment does not decide.
fn choose(
    xdg: Option<OsString>,
    account: impl FnOnce() -> Option<PathBuf>,
    home: Option<OsString>,
) -> Option<Base> {
    if let Some(path) = absolute(xdg) {
        let floor = PathBuf::from("/");
        return Some(Base { path, floor });
    }
    match account() {
        Some(home) => below_home(&home),
        None => below_home(&absolute(home)?),
    }
}

fn below_home(home: &Path) -> Option<Base> {
    home.is_absolute().then(|| Base {
        path: home.join(".local/state"),
        floor: home.to_path_buf(),
    })
}

fn absolute(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(xdg: Option<&str>, account: Option<&str>, home: Option<&str>) -> Option<String> {
        let base = choose(
            xdg.map(OsString::from),
            || account.map(PathBuf::from),
            home.map(OsString::from),
        );
        base.map(|base| format!("{} {}", base.path.display(), base.floor.display()))
    }

    #[test]
    fn the_environment_comes_first_then_the_account_then_home() {
        let (xdg, account, home) = (Some("/x"), Some("/a"), Some("/h"));
        assert_eq!(chosen(xdg, account, home).unwrap(), "/x /");
        assert_eq!(chosen(None, account, home).unwrap(), "/a/.local/state /a");
        assert_eq!(chosen(None, None, home).unwrap(), "/h/.local/state /h");
        assert_eq!(chosen(None, None, None), None);
    }

    #[test]
    fn of_an_assumed_user_only_the_account_counts() {
        let base = |home: Option<&str>| {
            Base::of(&User::Assumed {
                home: home.map(PathBuf::from),
            })
        };
        assert_eq!(
            base(Some("/a")).unwrap().path,
            PathBuf::from("/a/.local/state")
        );
        for home in [None, Some(""), Some("a")] {
            assert!(
                matches!(base(home), Err(NoState::NoHome { .. })),
                "{home:?}"
            );
        }
    }

    #[test]
    fn relative_values_count_as_unset() {
        assert_eq!(
            chosen(Some("x"), Some("/a"), None).unwrap(),
            "/a/.local/state /a"
        );
        assert_eq!(
            chosen(Some(""), None, Some("/h")).unwrap(),
            "/h/.local/state /h"
        );
        assert_eq!(chosen(None, None, Some("h")), None);
        assert_eq!(
            chosen(None, Some("a"), Some("/h")),
            None,
            "a broken account"
        );
    }
}
