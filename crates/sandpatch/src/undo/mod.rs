//! `sandpatch undo`: finds the record of an applied patch, and has it taken back
//! in a sandbox like the patch's own.
//!
//! Records name directories that become writable once more. Somebody who could
//! write one of their parents may have put a link in such a place since, so a
//! directory counts only while its path leads to itself.

mod list;
mod refusal;

use std::io::Read;
use std::path::{Path, PathBuf};

use sandbox_policy::facts::FileId;

use crate::cli::{Codes, Dialect, Form, OutputSwitches, PatchSwitches, PolicyFlags, Undo, Undoing};
use crate::exit::Exit;
use crate::patch::inner::{Input, current_directory};
use crate::patch::outcome::Outcome;
use crate::patch::stage;
use crate::state::{Base, Header, Id, Missing, NoState, Pending, ReadError, Record, Root, Store};
use crate::user::{self, User};
use crate::workspace::{self, Confinement};
use crate::{render, sys};

pub use refusal::Refusal;

/// Does what is asked.
pub fn command(arguments: &Undo) -> Exit {
    sys::ignore_file_size_signal();
    let done = match arguments.what() {
        Undoing::List => listed(arguments),
        Undoing::Recover => recover(arguments),
        Undoing::Take(id) => take(arguments, id),
    };
    done.unwrap_or_else(|stop| match stop {
        Stop::Said(exit) => exit,
        Stop::Refused(refusal) => refused(refusal, arguments),
    })
}

/// Why nothing is done.
enum Stop {
    /// It was said already.
    Said(Exit),
    /// It is to be said.
    Refused(Refusal),
}

impl From<Exit> for Stop {
    fn from(exit: Exit) -> Self {
        Self::Said(exit)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn refused(refusal: Refusal, arguments: &Undo) -> Exit {
    let outcome = Outcome::NothingTaken(refusal);
    let exit = outcome.exit();
    // The list has an object of its own, which cannot say this.
    match (arguments.what(), arguments.form()) {
        (Undoing::List, _) | (_, Form::Text) => render::outcome(&outcome, exit),
        (_, Form::Json) => render::json(&outcome, exit),
    }
}

/// Where the work is done, and what is known about it.
struct Scene {
    directory: PathBuf,
    user: User,
    /// There is none where none was kept yet.
    store: Option<Store>,
}

/// Goes where the transactions are.
fn enter(arguments: &Undo) -> Result<Scene, Stop> {
    let user = user::assume(arguments.policy.as_user.as_deref())?;
    workspace::enter(arguments.policy.directory.as_deref())?;
    let directory = current_directory()?;
    let here = rustix::fs::stat(".");
    let here = here.map_err(|errno| Refusal::Unlisted(errno.into()))?;
    let root = Root {
        real: directory.clone(),
        id: FileId {
            dev: here.st_dev,
            ino: here.st_ino,
        },
    };
    let store = open(&user, &[root])?;
    Ok(Scene {
        directory,
        user,
        store,
    })
}

/// Opens the records; what a sandbox with these roots could write is not believed.
fn open(user: &User, roots: &[Root]) -> Result<Option<Store>, Refusal> {
    let base = Base::of(user).map_err(Refusal::NoState)?;
    match Store::open(&base, roots, Missing::Report) {
        Ok(store) => Ok(Some(store)),
        Err(NoState::Missing { .. }) => Ok(None),
        Err(why) => Err(Refusal::NoState(why)),
    }
}

fn listed(arguments: &Undo) -> Result<Exit, Stop> {
    let scene = enter(arguments)?;
    let store = scene.store.as_ref();
    Ok(list::print(&scene.directory, store, arguments.form())?)
}

/// Ends what an interrupted patch began, in the sandbox of any patch.
fn recover(arguments: &Undo) -> Result<Exit, Stop> {
    user::assume(arguments.policy.as_user.as_deref())?;
    workspace::enter(arguments.policy.directory.as_deref())?;
    recover_in(arguments, &current_directory()?)
}

fn recover_in(arguments: &Undo, directory: &Path) -> Result<Exit, Stop> {
    let confinement = workspace::confinement(directory, &arguments.policy)?;
    let job = job(arguments, &confinement, &Input::Nothing);
    Ok(job.run(confinement.plan.as_ref(), directory, None))
}

/// Takes a transaction back: the inner stage does, under the policy it had.
fn take(arguments: &Undo, id: Option<Id>) -> Result<Exit, Stop> {
    let scene = enter(arguments)?;
    let directory = &scene.directory;
    let (id, record) = match chosen(&scene, id) {
        // The last patch may have been interrupted before it could be recorded.
        Err(Refusal::Nothing(_)) if stage::is_interrupted(directory) => {
            return recover_in(arguments, directory);
        }
        chosen => chosen?,
    };
    let confinement = confined_as_before(directory, &arguments.policy, &record.header)?;
    // One of the other roots may hold the records.
    let Some(store) = open(&scene.user, &confinement.roots)? else {
        return Err(Refusal::Nothing(directory.clone()).into());
    };
    let input = Input::Record(body(id, record)?);
    // The exit code alone does not say whether it was undone: a report that
    // nobody takes is a failure, too.
    let pending = store.begin().ok();
    let confirmation = pending.as_ref().map(Pending::descriptor);
    let job = job(arguments, &confinement, &input);
    let exit = job.run(confinement.plan.as_ref(), directory, confirmation);
    if pending.is_some_and(|pending| pending.is_written()) {
        forget(&store, id);
    }
    Ok(exit)
}

/// Returns the record that is asked for, or the newest one of this directory.
fn chosen(scene: &Scene, id: Option<Id>) -> Result<(Id, Record), Refusal> {
    let directory = &scene.directory;
    let nothing = || Refusal::Nothing(directory.clone());
    let Some(id) = id else {
        let store = scene.store.as_ref().ok_or_else(nothing)?;
        let newest = store.newest(directory).map_err(Refusal::Unlisted)?;
        let (id, record) = newest.ok_or_else(nothing)?;
        return Ok((id, record.map_err(|why| Refusal::of(id, why))?));
    };
    let store = scene.store.as_ref().ok_or(Refusal::Unknown(id))?;
    let record = store.read(id).map_err(|why| Refusal::of(id, why))?;
    match &record.header.workspace.path {
        made if made != directory => Err(Refusal::MadeElsewhere {
            id,
            directory: made.clone(),
        }),
        _ => Ok((id, record)),
    }
}

fn body(id: Id, record: Record) -> Result<Vec<u8>, Refusal> {
    let mut body = Vec::new();
    let read = record.file.take(record.body_bytes).read_to_end(&mut body);
    let why = |source| ReadError::Os {
        step: "read",
        source,
    };
    read.map_err(|error| Refusal::of(id, why(error)))?;
    Ok(body)
}

/// Decides how the undo is confined: as the patch was, and by what is asked now.
fn confined_as_before(
    directory: &Path,
    flags: &PolicyFlags,
    header: &Header,
) -> Result<Confinement, Stop> {
    let others = header.roots.iter().map(|root| &root.path);
    let others: Vec<&PathBuf> = others.filter(|root| *root != directory).collect();
    let leads_to_itself = |path: &Path| path.canonicalize().is_ok_and(|real| real == path);
    if let Some(root) = others.iter().find(|root| !leads_to_itself(root)) {
        return Err(Refusal::RootChanged(root.to_path_buf()).into());
    }
    let mut policy = flags.clone();
    policy.writable.extend(others.iter().map(PathBuf::from));
    let confinement = workspace::confinement(directory, &policy)?;
    // Somebody may have replaced it in between.
    let is_root = |path: &Path| confinement.roots.iter().any(|root| root.real == path);
    match others.into_iter().find(|root| !is_root(root)) {
        Some(root) => Err(Refusal::RootChanged(root.clone()).into()),
        None => Ok(confinement),
    }
}

/// Removes the record of what was taken back. Where it stays nothing is lost:
/// the files are not what it says any more.
fn forget(store: &Store, id: Id) {
    match store.remove(id) {
        Ok(()) | Err(ReadError::Unknown(_)) => {}
        Err(why) => render::warning(&format!(
            "transaction {id} is undone but stays listed: {why}"
        )),
    }
}

fn job<'a>(arguments: &Undo, confinement: &'a Confinement, input: &'a Input) -> stage::Job<'a> {
    stage::Job {
        output: OutputSwitches::of(arguments.form()),
        switches: PatchSwitches::of(Dialect::Safe),
        codes: Codes::Own,
        backend: arguments.policy.backend,
        roots: &confinement.roots,
        input,
        quiet: false,
        no_undo: None,
    }
}
