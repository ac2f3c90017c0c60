//! Patches, with the trees they apply to, that use every kind of change. The
//! tests that interrupt or disturb a patch share them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Identity, Place, Tree, limited, place};

const LIMIT: Duration = Duration::from_secs(30);

/// A patch that has nothing to do with any scenario.
pub const NEXT_PATCH: &str = "*** Begin Patch\n*** Add File: next-run\n+x\n*** End Patch\n";
const NEXT_NAME: &str = "next-run";

/// A tree and the patch that is applied to it, again and again.
pub struct Scenario {
    /// What the reports call it.
    pub name: &'static str,
    /// The patch.
    pub patch: String,
    /// Where it happens.
    pub place: Place,
    build: fn(&Place),
    is_undone: bool,
}

impl Scenario {
    /// One update.
    #[must_use]
    pub fn one() -> Self {
        Self::new("1 operation", Identity::Caller, build_one, ONE)
    }

    /// An update and a file in a new directory.
    #[must_use]
    pub fn two() -> Self {
        Self::new("2 operations", Identity::Caller, build_one, TWO)
    }

    /// Twenty operations of every kind.
    #[must_use]
    pub fn twenty() -> Self {
        Self::new("20 operations", Identity::Caller, build_twenty, TWENTY)
    }

    /// Two updates, one of a file that only can be written in place: its
    /// directory may not be written. Root may write everywhere, so an ordinary
    /// user does it.
    #[must_use]
    pub fn in_place() -> Self {
        let identity = *Identity::all().last().expect("an identity");
        Self::new("in place", identity, build_in_place, IN_PLACE)
    }

    fn new(name: &'static str, identity: Identity, build: fn(&Place), patch: &str) -> Self {
        Self {
            name,
            patch: format!("*** Begin Patch\n{patch}*** End Patch\n"),
            place: Place::new(identity),
            build,
            is_undone: false,
        }
    }

    /// The same, but what is watched is how the patch is taken back.
    #[must_use]
    pub fn undone(mut self) -> Self {
        self.is_undone = true;
        self
    }

    /// What stands before the name in reports.
    #[must_use]
    pub fn prefix(&self) -> &'static str {
        if self.is_undone { "undo of " } else { "" }
    }

    /// Makes the workspace anew, as it is before the patch, or before it is undone.
    pub fn reset(&self) {
        let ws = self.place.ws();
        if fs::remove_dir_all(&ws).is_err() {
            place::unlock(&ws);
            fs::remove_dir_all(&ws).expect("remove the workspace");
        }
        self.place.mkdir("ws");
        (self.build)(&self.place);
        if self.is_undone {
            self.apply();
        }
    }

    /// Applies the patch with a record.
    fn apply(&self) {
        let records = self.records();
        if records.exists() {
            fs::remove_dir_all(&records).expect("remove the records");
        }
        let mut command = self.place.command(self.place.exe());
        command.args(["apply", "--dialect", "codex", "--backend", "none"]);
        let outcome = limited::run(command, self.patch.as_bytes(), LIMIT);
        assert!(outcome.succeeded(), "{}: {outcome}", self.name);
    }

    fn records(&self) -> PathBuf {
        self.place.top().join("home/state/sandpatch/undo")
    }

    /// What the command reads: the patch, or the one record that there is.
    #[must_use]
    pub fn input(&self) -> Vec<u8> {
        const END: &[u8] = b"sndpatch";
        if !self.is_undone {
            return self.patch.as_bytes().to_vec();
        }
        let mut records = fs::read_dir(self.records()).expect("records");
        let record = records.next().expect("a record").expect("a record").path();
        let record = fs::read(record).expect("the record");
        // The header's length and the last bytes are behind the header.
        let rest = record.strip_suffix(END).expect("the end of a record");
        let (rest, length) = rest.split_last_chunk().expect("a length");
        let header = u32::from_le_bytes(*length) as usize;
        rest[..rest.len() - header].to_vec()
    }

    /// The command that does what is watched, unsandboxed.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = self.inner();
        if self.is_undone {
            command.args(["--hand-off=1", "--task=undo", "--dialect=safe"]);
            command.args(["--codes=own", "--root=."]);
        }
        command
    }

    /// The command that applies a patch from its standard input, unsandboxed.
    #[must_use]
    pub fn inner(&self) -> Command {
        let mut command = self.place.command(self.place.exe());
        command.args(["--codex-run-as-apply-patch", "-"]);
        command
    }

    /// Applies the next patch, which recovers what one before it left, and
    /// removes what it adds.
    ///
    /// # Errors
    /// When it does not apply.
    pub fn next_patch(&self) -> Result<(), String> {
        let outcome = limited::run(self.inner(), NEXT_PATCH.as_bytes(), LIMIT);
        let is_applied = outcome.succeeded() && self.forget_next_patch();
        let failed = || format!("the next patch is not applied: {outcome}");
        is_applied.then_some(()).ok_or_else(failed)
    }

    /// Removes what the next patch adds; false when there is none.
    pub fn forget_next_patch(&self) -> bool {
        fs::remove_file(self.place.ws().join(NEXT_NAME)).is_ok()
    }

    /// What is in the workspace now.
    #[must_use]
    pub fn tree(&self) -> Tree {
        Tree::of(&self.place.ws())
    }

    /// The tree before and after the patch, or its undo, made by a run that nobody disturbs.
    ///
    /// # Panics
    /// When the patch does not apply, or changes nothing.
    #[must_use]
    pub fn old_and_new(&self) -> (Tree, Tree) {
        self.reset();
        let old = self.tree();
        let outcome = limited::run(self.command(), &self.input(), LIMIT);
        assert!(outcome.succeeded(), "{}: {outcome}", self.name);
        let new = self.tree();
        assert_ne!(old, new, "{}", self.name);
        assert!(new.litter().is_empty(), "{}: {:?}", self.name, new.litter());
        (old, new)
    }
}

fn build_one(place: &Place) {
    place.write("ws/f", "one\ntwo\nthree\n");
    place.write("ws/keep", "kept\n");
}

fn build_twenty(place: &Place) {
    for name in ["up1", "up2", "up3", "up4", "mv1", "mv2", "ren1", "keep"] {
        place.write(&format!("ws/{name}"), format!("{name}\nmiddle\nlast\n"));
    }
    for name in ["ren2", "del1", "del2", "rep", "swap1", "swap2", "hard1"] {
        place.write(&format!("ws/sub/{name}"), format!("{name}\nlast\n"));
    }
    place.write(
        "ws/big",
        "a line of a larger file\n".repeat(8_000) + "end\n",
    );
    let ws = place.ws();
    mode(&ws.join("up2"), 0o755);
    mode(&ws.join("up3"), 0o600);
    mode(&ws.join("mv1"), 0o750);
    fs::hard_link(ws.join("sub/hard1"), ws.join("hard2")).expect("link");
    place.link("ws/link", "up1");
    place.link("ws/sub/dangling", "nowhere");
    place.link("ws/stays", "keep");
}

fn build_in_place(place: &Place) {
    place.write("ws/f", "one\ntwo\nthree\n");
    place.write("ws/locked/g", "one\ntwo\nthree\n");
    mode(&place.ws().join("locked"), 0o555);
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("chmod");
}

const ONE: &str = "*** Update File: f\n@@\n-two\n+TWO\n+and more\n";

const TWO: &str = "*** Update File: f\n@@\n-two\n+TWO\n*** Add File: new/dir/g\n+added\n";

const IN_PLACE: &str = "*** Update File: f\n@@\n-two\n+TWO\n\
    *** Update File: locked/g\n@@\n one\n-two\n-three\n+and much more than there was before\n";

const TWENTY: &str = "*** Update File: up1\n@@\n-middle\n+changed\n\
    *** Update File: up2\n@@\n-middle\n+changed\n\
    *** Update File: up3\n@@\n-middle\n+changed\n\
    *** Update File: up4\n@@\n-middle\n-last\n\
    *** Update File: big\n@@\n-end\n+the end\n\
    *** Update File: sub/hard1\n@@\n-last\n+changed\n\
    *** Add File: add1\n+added\n\
    *** Add File: new/add2\n+added\n\
    *** Add File: new/deep/er/add3\n+added\n\
    *** Add File: sub/rep\n+replaced\n\
    *** Delete File: sub/del1\n\
    *** Delete File: sub/del2\n\
    *** Delete File: link\n\
    *** Delete File: sub/dangling\n\
    *** Update File: mv1\n*** Move to: sub/moved1\n@@\n-middle\n+changed\n\
    *** Update File: mv2\n*** Move to: other/moved2\n@@\n-middle\n+changed\n\
    *** Update File: ren1\n*** Move to: sub/renamed1\n\
    *** Update File: sub/ren2\n*** Move to: other/renamed2\n\
    *** Update File: sub/swap1\n*** Move to: sub/swap2\n\
    *** Update File: sub/swap2\n*** Move to: sub/swap1\n";
