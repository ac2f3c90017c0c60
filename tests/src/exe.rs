//! Finds the executable under test.
//!
//! `SANDPATCH_BIN` names it; `scripts/test` sets this to the release build,
//! which is what users run and what makes thousands of launches affordable.
//! Without the variable the build beside the test binary is used.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The absolute path of the executable under test.
///
/// # Panics
/// When there is none: a test that runs nothing must not pass.
#[must_use]
pub fn executable() -> PathBuf {
    let found = env::var_os("SANDPATCH_BIN")
        .map_or_else(|| assert_cmd::cargo::cargo_bin("sandpatch"), PathBuf::from);
    fs::canonicalize(&found).unwrap_or_else(|error| {
        panic!(
            "no executable at {}: {error}; run `cargo build --release` and set SANDPATCH_BIN",
            found.display()
        )
    })
}

/// Copies the executable into `dir` where every user may run it, with the
/// name `apply_patch` beside it, and returns the copy.
///
/// The build directory may lie below a home that other users cannot enter.
#[must_use]
pub fn install(dir: &Path) -> PathBuf {
    let copy = dir.join("sandpatch");
    fs::copy(executable(), &copy).expect("copy the executable");
    std::os::unix::fs::symlink("sandpatch", dir.join("apply_patch")).expect("link apply_patch");
    copy
}
