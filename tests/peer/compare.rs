//! Where two records differ, as text for the reader of a failed test.

use crate::record::Record;

/// How standard error is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StderrRule {
    /// Byte for byte: our own record.
    Exact,
    /// An error may go on after the reference's text (cause, nearest place,
    /// hint), and a success may print `note:` and `warning:` lines.
    Prefix,
}

/// One paragraph for each part that differs; empty when none does.
pub fn differences(expected: &Record, got: &Record, rule: StderrRule) -> String {
    let mut found = String::new();
    let mut note = |part: &str, expected: &[u8], got: &[u8]| {
        found.push_str(&format!(
            "{part}: expected\n{}\ngot\n{}\n",
            expected.escape_ascii().to_string().replace("\\n", "\n"),
            got.escape_ascii().to_string().replace("\\n", "\n"),
        ));
    };
    if expected.code != got.code {
        note("code", expected.code.as_bytes(), got.code.as_bytes());
    }
    if expected.stdout != got.stdout {
        note("stdout", &expected.stdout, &got.stdout);
    }
    if !stderr_matches(&expected.stderr, &got.stderr, rule) {
        note("stderr", &expected.stderr, &got.stderr);
    }
    let (old, new) = (&expected.manifest, &got.manifest);
    if old != new {
        let only = |these: &[Vec<u8>], those: &[Vec<u8>]| {
            let lines: Vec<_> = these.iter().filter(|line| !those.contains(line)).collect();
            lines.into_iter().cloned().collect::<Vec<_>>().join(&b'\n')
        };
        note("manifest", &only(old, new), &only(new, old));
    }
    for (path, bytes) in &got.files {
        // A name that is only in one of them is in the manifest's difference.
        if let Some(before) = expected.files.get(path).filter(|before| *before != bytes) {
            note(&path.display().to_string(), before, bytes);
        }
    }
    found
}

fn stderr_matches(expected: &[u8], got: &[u8], rule: StderrRule) -> bool {
    if expected == got {
        return true;
    }
    match rule {
        StderrRule::Exact => false,
        StderrRule::Prefix if expected.trim_ascii().is_empty() => got
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
            .all(|line| {
                [&b"note:"[..], b"warning:", b"  "]
                    .iter()
                    .any(|head| line.starts_with(head))
            }),
        StderrRule::Prefix => {
            let text = expected.strip_suffix(b"\n").unwrap_or(expected);
            got.starts_with(text)
        }
    }
}
