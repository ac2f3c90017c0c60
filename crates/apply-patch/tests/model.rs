//! Random patches against a model that does one operation after the other on
//! a map of names: the tree must end as the model says, or not change at all.
//!
//! The model knows nothing of staging, swaps or inodes. It refuses what the
//! rules refuse (docs/compatibility.md, "Moves"), and says so independently.
//!
//! What was applied is taken back by its record: to the very tree of before, or,
//! when a file was changed since, not at all.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end with a panic"
)]

#[path = "support/listing.rs"]
mod listing;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use apply_patch::undo::Recorded;
use apply_patch::{ApplyError, Options, UndoError, parse};
use listing::{Listing, listing};
use proptest::prelude::*;
use safe_fs::{Resolver, Roots};

const NAMES: [&str; 6] = ["a", "b", "c", "d/e", "d/f", "n/o"];

type Tree = BTreeMap<&'static str, String>;

#[derive(Debug, Clone)]
enum Op {
    Add(usize),
    Delete(usize),
    /// Replaces the first line.
    Update(usize),
    Move(usize, usize),
    MoveAndUpdate(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..NAMES.len();
    prop_oneof![
        name().prop_map(Op::Add),
        name().prop_map(Op::Delete),
        name().prop_map(Op::Update),
        (name(), name()).prop_map(|(from, to)| Op::Move(from, to)),
        (name(), name()).prop_map(|(from, to)| Op::MoveAndUpdate(from, to)),
    ]
}

impl Op {
    fn source(&self) -> Option<usize> {
        match self {
            Self::Add(_) => None,
            Self::Delete(name) | Self::Update(name) => Some(*name),
            Self::Move(from, _) | Self::MoveAndUpdate(from, _) => Some(*from),
        }
    }

    /// Where a move goes, unless it stays.
    fn leaves_for(&self) -> Option<usize> {
        match self {
            Self::Move(from, to) | Self::MoveAndUpdate(from, to) if from != to => Some(*to),
            _ => None,
        }
    }
}

/// The model: contents by name, and what later moves take along.
struct Model<'a> {
    ops: &'a [Op],
    now: Tree,
    moved_to: Vec<usize>,
    held: BTreeMap<usize, String>,
    replaces: bool,
}

/// What a first line becomes, so that every edit is known by its operation.
fn edited(content: &str, index: usize) -> String {
    let rest = content.split_once('\n').map_or("", |(_, rest)| rest);
    format!("edit {index}\n{rest}")
}

impl Model<'_> {
    /// Does one operation, or refuses; also returns the first line that an edit must name.
    fn step(&mut self, index: usize) -> Option<()> {
        match self.ops[index].clone() {
            Op::Add(name) => {
                let there = self.now.contains_key(NAMES[name]);
                if there && (!self.replaces || self.moved_to.contains(&name)) {
                    return None;
                }
                self.now
                    .insert(NAMES[name], format!("added {index}\nend\n"));
            }
            Op::Delete(name) => {
                self.now.remove(NAMES[name])?;
                self.moved_to.retain(|it| *it != name);
            }
            Op::Update(name) => {
                let content = self.now.get_mut(NAMES[name])?;
                *content = edited(content, index);
            }
            Op::Move(from, to) => self.relocate(index, from, to, str::to_owned)?,
            Op::MoveAndUpdate(from, to) => {
                self.relocate(index, from, to, |content| edited(content, index))?;
            }
        }
        Some(())
    }

    fn relocate(
        &mut self,
        index: usize,
        from: usize,
        to: usize,
        change: impl Fn(&str) -> String,
    ) -> Option<()> {
        let held = self.held.remove(&index);
        let content = held
            .clone()
            .or_else(|| self.now.get(NAMES[from]).cloned())?;
        if from == to && held.is_none() {
            self.now.insert(NAMES[to], change(&content));
            return Some(());
        }
        if let Some(there) = self.now.get(NAMES[to]).cloned() {
            if self.moved_to.contains(&to) {
                return None;
            }
            let mut later =
                (index + 1..self.ops.len()).filter(|it| self.ops[*it].source() == Some(to));
            match later.next() {
                Some(next) if self.ops[next].leaves_for().is_some() => {
                    self.held.insert(next, there);
                }
                Some(_) => return None,
                None if self.replaces => {}
                None => return None,
            }
        }
        if held.is_none() {
            self.now.remove(NAMES[from]);
            self.moved_to.retain(|it| *it != from);
        }
        self.now.insert(NAMES[to], change(&content));
        self.moved_to.push(to);
        Some(())
    }
}

/// Spells the patch; an edit names the first line as it is at that point of the model.
fn spell(ops: &[Op], start: &Tree, replaces: bool) -> (String, Option<Tree>) {
    let mut model = Model {
        ops,
        now: start.clone(),
        moved_to: Vec::new(),
        held: BTreeMap::new(),
        replaces,
    };
    let mut text = String::from("*** Begin Patch\n");
    let mut possible = true;
    for (index, op) in ops.iter().enumerate() {
        let first = |model: &Model<'_>, name: usize| {
            let content = model
                .held
                .get(&index)
                .or_else(|| model.now.get(NAMES[name]));
            let line = content.and_then(|content| content.lines().next());
            line.unwrap_or("missing").to_owned()
        };
        match op {
            Op::Add(name) => {
                text += &format!("*** Add File: {}\n+added {index}\n+end\n", NAMES[*name]);
            }
            Op::Delete(name) => text += &format!("*** Delete File: {}\n", NAMES[*name]),
            Op::Update(name) => {
                let line = first(&model, *name);
                text += &format!(
                    "*** Update File: {}\n@@\n-{line}\n+edit {index}\n",
                    NAMES[*name]
                );
            }
            Op::Move(from, to) => {
                text += &format!(
                    "*** Update File: {}\n*** Move to: {}\n",
                    NAMES[*from], NAMES[*to]
                );
            }
            Op::MoveAndUpdate(from, to) => {
                let line = first(&model, *from);
                text += &format!(
                    "*** Update File: {}\n*** Move to: {}\n@@\n-{line}\n+edit {index}\n",
                    NAMES[*from], NAMES[*to]
                );
            }
        }
        possible &= model.step(index).is_some();
    }
    text += "*** End Patch\n";
    (text, possible.then_some(model.now))
}

fn files(top: &Path) -> Tree {
    let found = NAMES.iter().filter_map(|name| {
        let content = fs::read_to_string(top.join(name)).ok()?;
        Some((*name, content))
    });
    found.collect()
}

/// Returns the names in the tree that are no directories and not ours.
fn litter(directory: &Path, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(litter(&entry.path(), &format!("{name}/")));
        } else if !NAMES.contains(&name.as_str()) {
            found.push(name);
        }
    }
    found
}

/// Lays the first files out, each with a mode of its own.
fn lay_out(top: &Path, present: &[bool]) -> Tree {
    const MODES: [u32; 6] = [0o644, 0o755, 0o600, 0o640, 0o700, 0o664];
    let mut start = Tree::new();
    for (index, name) in NAMES.into_iter().enumerate() {
        if present[index] {
            let content = format!("first of {name}\nlast of {name}\n");
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &content).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(MODES[index])).unwrap();
            start.insert(name, content);
        }
    }
    start
}

/// Changes one of the places that the patch changed, by turns, and returns it
/// with what puts it back.
fn disturb<'a>(
    top: &'a Path,
    (start, after): (&Tree, &Tree),
    pick: usize,
) -> Option<(&'static str, impl FnOnce() + 'a)> {
    let changed = |name: &&&str| start.get(**name) != after.get(**name);
    let changed: Vec<&&str> = NAMES.iter().filter(changed).collect();
    let name = **changed.get(pick % changed.len().max(1))?;
    let (path, was) = (top.join(name), after.get(name).cloned());
    if pick.is_multiple_of(3) && was.is_some() {
        let mode = fs::metadata(&path).unwrap().permissions();
        fs::remove_file(&path).unwrap();
        return Some((name, put_back(path, was, Some(mode))));
    }
    fs::write(&path, "theirs\n").unwrap();
    Some((name, put_back(path, was, None)))
}

fn put_back(path: PathBuf, was: Option<String>, mode: Option<fs::Permissions>) -> impl FnOnce() {
    move || match was {
        Some(content) => {
            fs::write(&path, content).unwrap();
            if let Some(mode) = mode {
                fs::set_permissions(&path, mode).unwrap();
            }
        }
        None => fs::remove_file(&path).unwrap(),
    }
}

/// Reads the files of the model.
fn read_all(top: &Path) -> Tree {
    let content = |name: &'static str| Some((name, fs::read_to_string(top.join(name)).ok()?));
    NAMES.into_iter().filter_map(content).collect()
}

/// Takes a patch back, after an attempt that somebody's change keeps from it.
fn taken_back(
    top: &Path,
    (start, after): (&Tree, &Tree),
    (roots, record): (&Roots, &[u8]),
    pick: usize,
) -> Result<Listing, TestCaseError> {
    if record.is_empty() {
        prop_assert_eq!(start, after, "something was changed and nothing recorded");
        return Ok(listing(top));
    }
    let record = Recorded::parse(record).unwrap();
    let undo = || apply_patch::undo(&record, roots, &Options::safe());
    if let Some((name, put_back)) = disturb(top, (start, after), pick) {
        let before = listing(top);
        match undo() {
            Err(UndoError::Changed(paths)) => prop_assert_eq!(paths, [Path::new(name)]),
            // What was there before was put back by hand.
            Err(UndoError::Already) => prop_assert_eq!(&read_all(top), start),
            other => prop_assert!(false, "{name} was changed: {other:?}"),
        }
        prop_assert_eq!(listing(top), before, "{} was changed", name);
        put_back();
    }
    let undone = undo();
    prop_assert!(undone.is_ok(), "{undone:?}");
    Ok(listing(top))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(400),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_tree_ends_as_the_model_says(
        present in proptest::collection::vec(any::<bool>(), NAMES.len()),
        ops in proptest::collection::vec(op(), 1..7),
        replaces in any::<bool>(),
        walk in any::<bool>(),
        pick in any::<u8>(),
    ) {
        let top = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let start = lay_out(top.path(), &present);
        let before = listing(top.path());
        let (text, expected) = spell(&ops, &start, replaces);
        let parsed = parse(&text).unwrap();
        let options = if replaces { Options::codex() } else { Options::safe() };
        let resolver = if walk { Resolver::Walk } else { Resolver::Openat2 };
        let roots = Roots::open(top.path(), &[top.path().to_path_buf()], &[], resolver).unwrap();
        let mut record = Vec::new();
        let result = apply_patch::apply(&parsed.patch, &roots, &options, Some(&mut record));
        let after = files(top.path());
        match (result, expected) {
            (Ok(_), Some(expected)) => {
                prop_assert_eq!(&after, &expected, "{}", text);
                let trees = (&start, &after);
                let restored = taken_back(top.path(), trees, (&roots, &record), pick.into());
                prop_assert_eq!(restored?, before, "{}", text);
            }
            (Err(ApplyError::Failed(_)), None) => {
                prop_assert_eq!(after, start, "{}", text);
                prop_assert_eq!(&record, b"");
            }
            (result, expected) => prop_assert!(
                false, "{result:?}\nthe model says {expected:?}\n{text}"
            ),
        }
        prop_assert_eq!(litter(top.path(), ""), Vec::<String>::new());
    }
}
