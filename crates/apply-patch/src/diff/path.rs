//! Paths as git writes them: bare where that is plain, otherwise as a C string.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What stands before a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// `a/`.
    Old,
    /// `b/`.
    New,
    /// Nothing.
    Bare,
}

impl Prefix {
    const fn text(self) -> &'static str {
        match self {
            Self::Old => "a/",
            Self::New => "b/",
            Self::Bare => "",
        }
    }
}

/// Returns a path with its prefix, quoted if a byte of it is special.
pub(super) fn quoted(prefix: Prefix, path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    // A whole path is shown without its first slash, so that it stays a path below something.
    let bytes = bytes.strip_prefix(b"/").unwrap_or(bytes);
    let mut out = Vec::with_capacity(bytes.len() + 4);
    let special = bytes.iter().any(|byte| is_special(*byte));
    if special {
        out.push(b'"');
    }
    out.extend_from_slice(prefix.text().as_bytes());
    for byte in bytes {
        escaped(*byte, &mut out);
    }
    if special {
        out.push(b'"');
    }
    out
}

/// Returns what a `---` or `+++` line says.
pub(super) fn label(prefix: Prefix, path: Option<&Path>) -> Vec<u8> {
    path.map_or_else(|| b"/dev/null".to_vec(), |path| quoted(prefix, path))
}

const fn is_special(byte: u8) -> bool {
    byte < b' ' || byte >= 0x7f || byte == b'"' || byte == b'\\'
}

fn escaped(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        7 => b'a',
        8 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        11 => b'v',
        12 => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ if is_special(byte) => {
            out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            return;
        }
        _ => {
            out.push(byte);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_quoted_and_spaces_are_not() {
        let cases = [
            ("plain name", "a/plain name"),
            ("tab\there", "\"a/tab\\there\""),
            ("q\"b\\", "\"a/q\\\"b\\\\\""),
            ("\u{e9}", "\"a/\\303\\251\""),
            ("\u{1}\u{7f}", "\"a/\\001\\177\""),
            ("/abs", "a/abs"),
        ];
        for (path, expected) in cases {
            let text = String::from_utf8(quoted(Prefix::Old, Path::new(path))).unwrap();
            assert_eq!(text, expected);
        }
    }
}
