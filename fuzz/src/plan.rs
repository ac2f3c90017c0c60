//! A plan does in one go what the patch does step by step, or it is refused.
//!
//! The input is a patch and, for each file, NUL, its name, NUL and its bytes.
//! Other names than the patch's are in the tree too, and stay as they are.

use apply_patch::plan::plan;
use apply_patch::syntax::ast::Patch;
use apply_patch::{Options, parse};

use crate::model::Model;
use crate::tree::Tree;

/// Checks one input in both dialects.
pub fn check(input: &[u8]) {
    let parts: Vec<&[u8]> = input.split(|byte| *byte == 0).collect();
    let Some(Ok(text)) = parts.first().map(|text| std::str::from_utf8(text)) else {
        return;
    };
    let Ok(parsed) = parse(text) else { return };
    let pairs = parts[1..].chunks_exact(2);
    let pairs = pairs.filter_map(|pair| Some((std::str::from_utf8(pair[0]).ok()?, pair[1])));
    let tree = Tree::of(pairs);
    for options in [Options::safe(), Options::codex()] {
        check_plan(&tree, &parsed.patch, &options);
    }
}

fn check_plan(tree: &Tree, patch: &Patch<'_>, options: &Options) {
    let (snapshot, places) = tree.snapshot(patch);
    let planned = plan(patch, &snapshot, options);
    assert_eq!(
        plan(patch, &snapshot, options),
        planned,
        "not deterministic"
    );
    match (planned, Model::run(tree, patch, options)) {
        (Ok(plan), Some(expected)) => {
            let mut result = tree.clone();
            result.carry_out(&plan, &places);
            assert_eq!(result, expected, "the tree ends otherwise");
        }
        (Err(failures), None) => {
            for failure in failures {
                assert!(!failure.to_string().is_empty());
            }
        }
        (planned, expected) => panic!("planned: {planned:?}\nthe model says: {expected:?}"),
    }
}
