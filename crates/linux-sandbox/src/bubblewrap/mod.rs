//! The bubblewrap backend: for hosts that let one known program make namespaces
//! (by a profile of a security module, or because it is setuid), and nobody else.
//!
//! Bubblewrap mounts, and starts this executable again as the *stage inside*.
//! That believes nothing: it looks at every mount, makes those that bubblewrap
//! cannot express, and goes on like process 1 of the native backend.

mod cache;
mod discover;
mod features;
mod handoff;
mod inner;
mod probe;
mod render;
mod sources;
mod supervisor;
#[cfg(test)]
mod tests;
mod verify;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sandbox_policy::Plan;

pub use cache::FeatureCache;
pub use discover::{Candidate, Verdict};
pub use features::Features;
pub use inner::inner_stage;

use crate::command::Command;
use crate::error::{Errno, Error, Step};
use crate::native::supervisor::{refuse_untrusted_heir, single_threaded};
use crate::report::RunReport;
use cache::{Key, Memory};
use discover::Found;
use probe::Proof;
use supervisor::Started;

/// The first argument by which an executable becomes the stage inside; the
/// second one goes to [`inner_stage`].
pub const INNER_STAGE_SWITCH: &str = "--sandpatch-inner-stage";

/// The argument of a stage that only proves that it can be started.
const PROBE: &str = "probe";

/// Where a bubblewrap is looked for.
pub struct Search<'a> {
    /// The `PATH`; without one there is none.
    pub path: Option<OsString>,
    /// The working directory, from which none is started.
    pub directory: PathBuf,
    /// What earlier runs found out.
    pub cache: Option<&'a dyn FeatureCache>,
}

/// Runs a command in a sandbox that the first bubblewrap builds which can.
pub(crate) fn run(plan: &Plan, command: &Command, search: &Search<'_>) -> Result<RunReport, Error> {
    refuse_untrusted_heir(plan, command)?;
    let ignored: Vec<i32> = single_threaded()?.ignored_signals().collect();
    let chooser = Chooser::new(plan, search);
    let mut reasons = Vec::new();
    for found in &chooser.found {
        let mut features = match chooser.features(found) {
            Ok(features) => features,
            Err(verdict) => {
                reasons.push((found.spelled.clone(), verdict));
                continue;
            }
        };
        loop {
            let line = match supervisor::start(&found.real, &features, plan, command, &ignored)? {
                Started::Ran(report) => return report,
                Started::NotStarted(line) => line,
            };
            match probe::prove(&found.real, plan) {
                Proof::Works { fresh_proc: false } if features.fresh_proc => {
                    features.fresh_proc = false;
                    chooser.remember(found, &features);
                }
                Proof::Works { .. } => return Err(not_started(&found.spelled, line)),
                Proof::Fails(line) => {
                    reasons.push((found.spelled.clone(), Verdict::DoesNotWork(line)));
                    break;
                }
            }
        }
    }
    Err(none_usable(&reasons))
}

/// Looks at every bubblewrap on `PATH`; with a proof each one is started.
///
/// The first that can be used is the one that [`Launcher`](crate::Launcher) takes.
pub fn candidates(plan: &Plan, search: &Search<'_>) -> Vec<Candidate> {
    let chooser = Chooser::new(plan, search);
    let mut is_found = false;
    let verdict = |found: &Found| {
        if is_found {
            return Verdict::NotNeeded;
        }
        let verdict = chooser.proven(found).map_or_else(|it| it, Verdict::Usable);
        is_found = matches!(verdict, Verdict::Usable(_));
        verdict
    };
    let verdicts: Vec<Verdict> = chooser.found.iter().map(verdict).collect();
    let paths = chooser.found.iter().map(|found| found.spelled.clone());
    let all = paths.zip(verdicts);
    all.map(|(path, verdict)| Candidate { path, verdict })
        .collect()
}

struct Chooser<'a> {
    plan: &'a Plan,
    cache: Option<&'a dyn FeatureCache>,
    forbidden: Vec<PathBuf>,
    found: Vec<Found>,
}

impl<'a> Chooser<'a> {
    fn new(plan: &'a Plan, search: &Search<'a>) -> Self {
        let path = search.path.as_deref();
        Self {
            plan,
            cache: search.cache,
            forbidden: discover::forbidden(plan, &search.directory),
            found: path.map(discover::look).unwrap_or_default(),
        }
    }

    /// Judges a candidate, and asks it what it can do unless that is known.
    fn features(&self, found: &Found) -> Result<Features, Verdict> {
        let uid = nix::unistd::geteuid().as_raw();
        discover::judge(found, &self.forbidden, uid)?;
        let key = Key::of(&found.real);
        let known = key.as_ref().zip(self.memory());
        let known = known.and_then(|(key, memory)| memory.features(key).cloned());
        let features = match known {
            Some(features) => features,
            None => {
                let features = probe::features(&found.real).map_err(Verdict::DoesNotWork)?;
                self.remember(found, &features);
                features
            }
        };
        match features.lacks() {
            Some(option) => Err(Verdict::Lacks(option)),
            None => Ok(features),
        }
    }

    fn proven(&self, found: &Found) -> Result<Features, Verdict> {
        let features = self.features(found)?;
        match probe::prove(&found.real, self.plan) {
            Proof::Works { fresh_proc } => Ok(Features {
                fresh_proc,
                ..features
            }),
            Proof::Fails(line) => Err(Verdict::DoesNotWork(line)),
        }
    }

    fn memory(&self) -> Option<Memory> {
        Some(Memory::decode(&self.cache?.load()?))
    }

    fn remember(&self, found: &Found, features: &Features) {
        let (Some(cache), Some(key)) = (self.cache, Key::of(&found.real)) else {
            return;
        };
        let memory = self.memory().unwrap_or_else(|| Memory::decode(b""));
        if let Some(bytes) = memory.with(key, features.clone()) {
            cache.store(&bytes);
        }
    }
}

fn not_started(program: &Path, line: String) -> Error {
    Error {
        step: Step::StartBubblewrap,
        subject: Some(program.into()),
        errno: Errno(libc::ECHILD),
        detail: Some(line.into()),
    }
}

/// Says why each one was passed over.
fn none_usable(reasons: &[(PathBuf, Verdict)]) -> Error {
    if reasons.is_empty() {
        return Error {
            step: Step::FindBubblewrap,
            subject: None,
            errno: Errno(libc::ENOENT),
            detail: None,
        };
    }
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(path, verdict)| format!("{}: {verdict}", path.display()))
        .collect();
    Error {
        step: Step::FindBubblewrap,
        subject: None,
        errno: Errno(libc::EACCES),
        detail: Some(reasons.join("; ").into()),
    }
}
