//! Where the text of a patch comes from.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::io::Errno;

/// Where to take the patch from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The argument is the text.
    Text(OsString),
    /// Standard input, to its end.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Source {
    /// Returns the source that a `PATCH` argument names: `-` is standard input.
    pub fn of_patch_argument(argument: OsString) -> Self {
        if argument == "-" {
            Self::Stdin
        } else {
            Self::Text(argument)
        }
    }

    /// Returns the source that the argument of `apply` names.
    ///
    /// No file can sensibly be called like the first line of a patch, and a
    /// name with a line break in it is a patch that went wrong.
    pub fn of_apply_argument(argument: Option<OsString>) -> Self {
        match argument {
            None => Self::Stdin,
            Some(text) if is_text(&text) => Self::Text(text),
            Some(name) if name == "-" => Self::Stdin,
            Some(name) => Self::File(PathBuf::from(name)),
        }
    }
}

fn is_text(argument: &OsStr) -> bool {
    let bytes = argument.as_bytes();
    bytes.contains(&b'\n') || bytes.starts_with(b"*** Begin Patch")
}

/// Why there is no patch to apply.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The argument is not text.
    #[error("the PATCH argument is not UTF-8")]
    ArgumentNotUtf8,
    /// There is nothing on standard input.
    #[error("standard input is empty, so there is no patch")]
    StdinEmpty,
    /// Standard input is not text.
    #[error("stream did not contain valid UTF-8")]
    StdinNotUtf8,
    /// Standard input cannot be read.
    #[error("{0}")]
    StdinUnreadable(std::io::Error),
    /// The file cannot be read.
    #[error("failed to read the patch file {}: {source}", path.display())]
    FileUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not text.
    #[error("the patch file {} is not UTF-8", path.display())]
    FileNotUtf8 {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the whole patch.
///
/// # Errors
///
/// [`InputError`] when it cannot be read, is not UTF-8, or when standard input has nothing.
pub fn read(source: Source) -> Result<String, InputError> {
    match source {
        Source::Text(text) => {
            String::from_utf8(text.into_vec()).map_err(|_| InputError::ArgumentNotUtf8)
        }
        Source::Stdin => String::from_utf8(stdin()?).map_err(|_| InputError::StdinNotUtf8),
        Source::File(path) => match std::fs::read(&path) {
            Err(source) => Err(InputError::FileUnreadable { path, source }),
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| InputError::FileNotUtf8 { path }),
        },
    }
}

/// Reads bytes that need not be text.
///
/// # Errors
///
/// As [`read`], but that they are not UTF-8.
pub fn bytes(source: Source) -> Result<Vec<u8>, InputError> {
    match source {
        Source::Text(text) => Ok(text.into_vec()),
        Source::Stdin => stdin(),
        Source::File(path) => match std::fs::read(&path) {
            Err(source) => Err(InputError::FileUnreadable { path, source }),
            Ok(bytes) => Ok(bytes),
        },
    }
}

fn stdin() -> Result<Vec<u8>, InputError> {
    let bytes = read_stdin().map_err(InputError::StdinUnreadable)?;
    match bytes.is_empty() {
        true => Err(InputError::StdinEmpty),
        false => Ok(bytes),
    }
}

/// Reads standard input to its end. What is larger than a pipe gets a buffer of
/// the right size at once where its size is known.
fn read_stdin() -> std::io::Result<Vec<u8>> {
    /// What a pipe holds (`pipe(7)`).
    const USUAL_BYTES: usize = 64 << 10;
    let stdin = std::io::stdin();
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    loop {
        match rustix::io::read(&stdin, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => return Ok(bytes),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if bytes.len() == bytes.capacity() {
            let size = rustix::fs::fstat(&stdin)?.st_size;
            let rest = usize::try_from(size)
                .unwrap_or(0)
                .saturating_sub(bytes.len());
            bytes.try_reserve(rest.max(bytes.len()).saturating_add(1))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_argument_is_told_apart() {
        let source = |text: &str| Source::of_apply_argument(Some(text.into()));
        assert_eq!(source("-"), Source::Stdin);
        assert_eq!(source("a.patch"), Source::File("a.patch".into()));
        assert_eq!(
            source("*** Begin Patch"),
            Source::Text("*** Begin Patch".into())
        );
        assert_eq!(source("x\ny"), Source::Text("x\ny".into()));
        assert_eq!(Source::of_apply_argument(None), Source::Stdin);
    }
}
