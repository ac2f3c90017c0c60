//! Byte searches: fixtures hold bytes, not text.

/// True when `needle` occurs in `haystack`.
#[must_use]
pub fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

/// `haystack` with every `needle` replaced.
///
/// # Panics
/// When `needle` is empty, which occurs everywhere.
#[must_use]
pub fn replace(haystack: &[u8], needle: &[u8], with: &[u8]) -> Vec<u8> {
    assert!(!needle.is_empty(), "nothing to search for");
    let mut result = Vec::with_capacity(haystack.len());
    let mut rest = haystack;
    while let Some(at) = rest
        .windows(needle.len())
        .position(|window| window == needle)
    {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(with);
        rest = &rest[at + needle.len()..];
    }
    result.extend_from_slice(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::{contains, replace};

    #[test]
    fn replaces_every_occurrence() {
        assert_eq!(replace(b"a/x b/x", b"/x", b""), b"a b");
        assert_eq!(replace(b"short", b"much longer", b"-"), b"short");
    }

    #[test]
    fn finds_only_what_is_there() {
        assert!(contains(b"note: done", b"note"));
        assert!(!contains(b"no", b"note"));
    }
}
