//! `sandpatch undo`: what was applied in a workspace, and taking it back.

use std::io::Read;
use std::path::{Path, PathBuf};

use sandbox_policy::facts::FileId;
use serde::Serialize;

use crate::cli::{Codes, Dialect, Form, OutputSwitches, PatchSwitches, PolicyFlags, Undo, Undoing};
use crate::exit::Exit;
use crate::patch::inner::{Input, current_directory};
use crate::patch::stage;
use crate::state::{Base, Change, Entry, Id, Listing, Missing, NoState, Root, Store};
use crate::{render, user, utc, workspace};

/// The version of the JSON form (docs/report.md).
const VERSION: u32 = 1;

/// How many changes of a transaction are named in a line.
const MOST_NAMED: usize = 3;

/// Does what is asked.
pub fn command(arguments: &Undo) -> Exit {
    let done = match arguments.what() {
        Undoing::List => list(arguments),
        Undoing::Recover => recover(arguments),
        Undoing::Take(id) => take(arguments, id),
    };
    done.unwrap_or_else(|exit| exit)
}

fn list(arguments: &Undo) -> Result<Exit, Exit> {
    let (directory, store) = enter(arguments)?;
    let listing = listing(&directory, store.as_ref())?;
    Ok(match arguments.form() {
        Form::Text => text(&directory, &listing),
        Form::Json => json(&listing),
    })
}

/// Ends what an interrupted patch began, in the sandbox of any patch.
fn recover(arguments: &Undo) -> Result<Exit, Exit> {
    user::assume(arguments.policy.as_user.as_deref())?;
    workspace::enter(arguments.policy.directory.as_deref())?;
    in_stage(arguments, &arguments.policy, &Input::Nothing)
}

/// Takes a transaction back: the inner stage does, under the policy it had.
fn take(arguments: &Undo, id: Option<Id>) -> Result<Exit, Exit> {
    let (directory, store) = enter(arguments)?;
    let Some(store) = store else {
        return Err(nothing(&directory));
    };
    let id = match id {
        Some(id) => id,
        None => match listing(&directory, Some(&store))?.entries.first() {
            Some(newest) => newest.id,
            None => return Err(nothing(&directory)),
        },
    };
    let mut record = store.read(id).map_err(|why| failed(&why))?;
    if record.header.workspace.path != directory {
        let elsewhere = record.header.workspace.path.display();
        return Err(failed(&format!(
            "transaction {id} was made in {elsewhere}: name that directory with -C"
        )));
    }
    let mut body = Vec::new();
    let bytes = (&mut record.file).take(record.body_bytes);
    { bytes }
        .read_to_end(&mut body)
        .map_err(|error| failed(&error))?;
    let mut policy = arguments.policy.clone();
    let others = record.header.roots.iter().map(|root| root.path.clone());
    policy
        .writable
        .extend(others.filter(|root| *root != directory));
    let exit = in_stage(arguments, &policy, &Input::Record(body))?;
    if exit.code() == 0 {
        store.remove(id).map_err(|why| failed(&why))?;
    }
    Ok(exit)
}

fn in_stage(arguments: &Undo, policy: &PolicyFlags, input: &Input) -> Result<Exit, Exit> {
    let directory = current_directory()?;
    let confinement = workspace::confinement(&directory, policy)?;
    let job = stage::Job {
        output: OutputSwitches::of(arguments.form()),
        switches: PatchSwitches::of(Dialect::Safe),
        codes: Codes::Own,
        roots: &confinement.roots,
        input,
        quiet: false,
        no_undo: None,
    };
    Ok(job.run(confinement.plan.as_ref(), &directory, None))
}

fn nothing(directory: &Path) -> Exit {
    render::error(&format!(
        "Error: nothing to undo in {}",
        directory.display()
    ))
}

fn failed(why: &dyn std::fmt::Display) -> Exit {
    render::error(&format!("Error: the undo records cannot be used: {why}"))
}

/// Goes where the transactions are; there is no store where none was kept yet.
fn enter(arguments: &Undo) -> Result<(PathBuf, Option<Store>), Exit> {
    let user = user::assume(arguments.policy.as_user.as_deref())?;
    workspace::enter(arguments.policy.directory.as_deref())?;
    let directory = current_directory()?;
    let id = rustix::fs::stat(".").map_err(|errno| failed(&errno))?;
    // What a sandbox could write is not believed.
    let root = Root {
        real: directory.clone(),
        id: FileId {
            dev: id.st_dev,
            ino: id.st_ino,
        },
    };
    let base = Base::of(&user).map_err(|why| failed(&why))?;
    match Store::open(&base, &[root], Missing::Report) {
        Ok(store) => Ok((directory, Some(store))),
        Err(NoState::Missing { .. }) => Ok((directory, None)),
        Err(why) => Err(failed(&why)),
    }
}

fn listing(directory: &Path, store: Option<&Store>) -> Result<Listing, Exit> {
    match store {
        Some(store) => store.list(directory).map_err(|error| failed(&error)),
        None => Ok(Listing::default()),
    }
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

/// The path is the patch's, so a terminal must not act on it.
fn named(change: &Change) -> String {
    let letter = change.kind.letter();
    let plain = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    let path: String = change.path.chars().map(plain).collect();
    format!("{letter} {path}")
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
