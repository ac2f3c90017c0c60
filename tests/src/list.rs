//! Lists of exceptions: one `KEY reason` per line, `#` starts a comment line.
//!
//! Every listed exception is itself tested (it must still be one), so a list
//! cannot grow stale.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Reads `path` into key and reason.
///
/// # Panics
/// When the file is missing, a line has no reason, or a key comes twice.
#[must_use]
pub fn read(path: &Path) -> BTreeMap<String, String> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
    parse(&text).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut entries = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, reason) = line
            .split_once(char::is_whitespace)
            .ok_or_else(|| format!("`{line}` has no reason"))?;
        let previous = entries.insert(key.to_owned(), reason.trim().to_owned());
        if previous.is_some() {
            return Err(format!("`{key}` is listed twice"));
        }
    }
    Ok(entries)
}

/// The number before the first `_` of a case folder's name.
#[must_use]
pub fn number_of(case_name: &str) -> &str {
    case_name.split('_').next().unwrap_or(case_name)
}

#[cfg(test)]
mod tests {
    use super::{number_of, parse};

    #[test]
    fn reads_keys_and_reasons() {
        let entries = parse("# head\n\n009 reported as M\n").unwrap();
        assert_eq!(entries["009"], "reported as M");
    }

    #[test]
    fn a_line_without_reason_is_an_error() {
        assert!(parse("009").is_err());
    }

    #[test]
    fn a_key_listed_twice_is_an_error() {
        assert!(parse("009 a\n009 b").is_err());
    }

    #[test]
    fn the_number_is_the_head_of_the_name() {
        assert_eq!(number_of("009_add_overwrite"), "009");
    }
}
