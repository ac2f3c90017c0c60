//! `sandpatch undo --list`: what was applied in a workspace, for people and for programs.

use std::path::Path;

use serde::Serialize;

use crate::cli::Form;
use crate::exit::Exit;
use crate::state::{Change, Entry, Listing, Store};
use crate::{render, utc, words};

use super::refusal::Refusal;

/// The version of the JSON form (docs/report.md).
const VERSION: u32 = 1;

/// How many changes of a transaction are named in a line.
const MOST_NAMED: usize = 3;

/// Prints what was applied in a directory and can be taken back.
///
/// # Errors
///
/// When the records cannot be listed.
pub fn print(directory: &Path, store: Option<&Store>, form: Form) -> Result<Exit, Refusal> {
    let listing = match store {
        Some(store) => store.list(directory).map_err(Refusal::Unlisted)?,
        None => Listing::default(),
    };
    Ok(match form {
        Form::Text => text(directory, &listing),
        Form::Json => json(&listing),
    })
}

fn text(directory: &Path, listing: &Listing) -> Exit {
    for (id, why) in &listing.unreadable {
        render::warning(&format!("transaction {id} cannot be read: {why}"));
    }
    if listing.entries.is_empty() {
        render::note(&format!("nothing to undo in {}", directory.display()));
    }
    let lines: String = listing.entries.iter().map(line).collect();
    render::answer(&lines)
}

/// Returns one line: id, time, and the first paths.
fn line(entry: &Entry) -> String {
    let Entry { id, header } = entry;
    let mut parts: Vec<String> = header.changes.iter().take(MOST_NAMED).map(named).collect();
    let more = header.changes.len() - parts.len() + header.more_changes;
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    let text = format!("{id} {} {}", utc::rfc3339(header.time), parts.join(", "));
    format!("{}\n", text.trim_end())
}

fn named(change: &Change) -> String {
    let path = words::plain(Path::new(&change.path));
    format!("{} {path}", change.kind.letter())
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    transactions: Vec<Transaction<'a>>,
    unreadable: Vec<Unreadable>,
}

#[derive(Serialize)]
struct Transaction<'a> {
    id: String,
    time: String,
    dialect: &'a str,
    changes: &'a [Change],
    more_changes: usize,
}

#[derive(Serialize)]
struct Unreadable {
    id: String,
    message: String,
}

impl<'a> From<&'a Entry> for Transaction<'a> {
    fn from(entry: &'a Entry) -> Self {
        let Entry { id, header } = entry;
        Self {
            id: id.to_string(),
            time: utc::rfc3339(header.time),
            dialect: &header.dialect,
            changes: &header.changes,
            more_changes: header.more_changes,
        }
    }
}

fn json(listing: &Listing) -> Exit {
    let unreadable = listing.unreadable.iter().map(|(id, why)| Unreadable {
        id: id.to_string(),
        message: why.to_string(),
    });
    let document = Document {
        version: VERSION,
        transactions: listing.entries.iter().map(Transaction::from).collect(),
        unreadable: unreadable.collect(),
    };
    match serde_json::to_string(&document) {
        Ok(text) => render::answer(&format!("{text}\n")),
        Err(error) => render::error(&format!("Error: the list could not be made: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use apply_patch::report::ChangeKind;

    use super::*;
    use crate::state::{Header, Place};

    fn entry(paths: &[&str]) -> Entry {
        let place = Place {
            path: "/w".into(),
            dev: 1,
            ino: 2,
        };
        let change = |path: &&str| Change {
            kind: ChangeKind::Deleted,
            path: (*path).into(),
        };
        let changes = paths.iter().map(change).collect();
        let mut header = Header::now(place, Vec::new(), "safe".into(), changes);
        header.time = 0;
        Entry {
            id: "0000abcd".parse().unwrap(),
            header,
        }
    }

    #[test]
    fn a_transaction_is_one_line() {
        let start = "0000abcd 1970-01-01T00:00:00Z ";
        assert_eq!(line(&entry(&["a", "b c"])), format!("{start}D a, D b c\n"));
        assert_eq!(line(&entry(&[])), "0000abcd 1970-01-01T00:00:00Z\n");
        let mut many = entry(&["1", "2", "3", "4", "5"]);
        many.header.more_changes = 10;
        assert_eq!(line(&many), format!("{start}D 1, D 2, D 3, 12 more\n"));
        let hostile = entry(&["a\n\u{1b}[2J\u{9b}ü"]);
        assert_eq!(
            line(&hostile),
            format!("{start}D a\\n\\u{{1b}}[2J\\u{{9b}}ü\n")
        );
    }
}
