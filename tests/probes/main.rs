//! Escapes that a sandboxed command tries, one test name for each probe and
//! user: `probe_x::root` and `probe_x::user`.
//!
//! A probe exits 0 (held), 1 (escaped) or 77 (could not be tried here). Each
//! trial first lets the same launcher write inside the workspace: a sandbox
//! that runs nothing holds everything.
//!
//! `known-open.txt` lists escapes that are known to work and probes that may
//! skip; a listed escape that is held is a stale entry, and fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test harness fails its trial by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::Trial;
use sandpatch_tests::limited::{self, Ended};
use sandpatch_tests::trial::{ensure, trial};
use sandpatch_tests::{Identity, Outcome, Place, fixtures, list, skip};

const LIMIT: Duration = Duration::from_secs(120);
const CONTROL_LIMIT: Duration = Duration::from_secs(20);

/// What `known-open.txt` says about one probe and user.
#[derive(Clone, Default)]
struct Known {
    open: Option<String>,
    may_skip: bool,
}

fn main() -> ExitCode {
    let dir = fixtures::dir("probes");
    let listed = list::read(&dir.join("known-open.txt"));
    let probes = fixtures::entries(&dir, |path| {
        let name = fixtures::name_of(path);
        name.starts_with("probe_") && name.ends_with(".sh")
    });
    let mut trials = vec![list_trial(&probes, &listed)];
    for identity in Identity::all() {
        trials.push(trial(format!("control::{}", identity.label()), move || {
            control(&Place::new(identity))
        }));
        for probe in &probes {
            trials.push(probe_trial(probe, identity, &listed));
        }
    }
    sandpatch_tests::trial::main(trials)
}

fn list_trial(probes: &[PathBuf], listed: &BTreeMap<String, String>) -> Trial {
    let names: Vec<String> = probes.iter().map(|probe| stem(probe)).collect();
    let unknown: Vec<String> = listed
        .keys()
        .filter(|key| !is_known_key(key, &names))
        .cloned()
        .collect();
    trial("known_open::name_existing_probes", move || {
        ensure(unknown.is_empty(), || format!("no such probe: {unknown:?}"))
    })
}

fn is_known_key(key: &str, names: &[String]) -> bool {
    let probe = key
        .strip_prefix("open:")
        .or_else(|| key.strip_prefix("skip:"))
        .and_then(|rest| rest.strip_suffix("/root").or(rest.strip_suffix("/user")));
    probe.is_some_and(|probe| names.iter().any(|name| name == probe))
}

fn probe_trial(probe: &Path, identity: Identity, listed: &BTreeMap<String, String>) -> Trial {
    let probe = stem(probe);
    let key = format!("{probe}/{}", identity.label());
    let known = Known {
        open: listed.get(&format!("open:{key}")).cloned(),
        may_skip: listed.contains_key(&format!("skip:{key}")),
    };
    let name = format!("{probe}::{}", identity.label());
    trial(name.clone(), move || {
        let place = Place::new(identity);
        control(&place)?;
        judge(&name, &run_probe(&place, &probe), &known)
    })
}

fn judge(name: &str, outcome: &Outcome, known: &Known) -> Result<(), String> {
    match (outcome.ended, &known.open) {
        (Ended::Code(0), None) | (Ended::Code(1), Some(_)) => Ok(()),
        (Ended::Code(0), Some(reason)) => Err(format!(
            "is held now: take it off known-open.txt (it said: {reason})"
        )),
        (Ended::Code(77), _) => {
            let reason = String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
            if known.may_skip {
                skip::skip_allowed(name, &reason);
                return Ok(());
            }
            skip::skip(name, &reason)
        }
        _ => Err(outcome.to_string()),
    }
}

/// The launcher must let ordinary work through.
fn control(place: &Place) -> Result<(), String> {
    let mut command = place.command(place.exe());
    command.args(["run", "--", "sh", "-c", "echo written > inside"]);
    let outcome = limited::run(command, b"", CONTROL_LIMIT);
    let inside = place.ws().join("inside");
    let written = fs::read(&inside).is_ok_and(|bytes| bytes == b"written\n");
    ensure(outcome.succeeded() && written, || {
        format!("a write inside the workspace must work: {outcome}")
    })
}

fn run_probe(place: &Place, probe: &str) -> Outcome {
    let scripts = place.top().join("probes");
    fixtures::copy_tree(&fixtures::dir("probes"), &scripts);
    // Probes make their own workspace, which is the launcher's directory.
    let mut command: Command = place.command(&scripts.join(format!("{probe}.sh")));
    command.arg(place.exe()).arg("run");
    if probe == "probe_deny_rename" {
        command.args(["--deny-read", "{WS}/a/secret"]);
    }
    command
        .arg("--")
        .env("PROBE_BASE", "/var/tmp")
        .env("PROBE_PYTHON", "/usr/bin/python3")
        .current_dir("/");
    limited::run(command, b"", LIMIT)
}

fn stem(probe: &Path) -> String {
    fixtures::name_of(probe).trim_end_matches(".sh").to_owned()
}
