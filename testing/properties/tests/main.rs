//! Each input of a corpus shows that its property holds.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use plaincall_properties::PROPERTIES;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the sorted paths in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns the number of inputs in a folder, and those with which the check panics.
fn failing(check: impl Fn(&[u8]) + RefUnwindSafe, folder: &Path) -> (usize, Vec<PathBuf>) {
    let mut inputs = entries(folder);
    let count = inputs.len();
    inputs.retain(|input| {
        let bytes = fs::read(input).unwrap();
        catch_unwind(|| check(&bytes)).is_err()
    });
    (count, inputs)
}

#[test]
fn every_input_of_the_corpus_passes() {
    let mut failed = Vec::new();
    for (name, check) in PROPERTIES {
        let (count, inputs) = failing(check, &folder().join("corpus").join(name));
        assert!(count > 0, "fuzz/corpus/{name} is empty");
        failed.extend(inputs);
    }
    assert!(
        failed.is_empty(),
        "the property does not hold for {failed:#?}"
    );
}

#[test]
fn every_property_has_a_target_and_a_corpus() {
    let properties: BTreeSet<&str> = PROPERTIES.iter().map(|(name, _)| *name).collect();
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    let targets = manifest.split("[[bin]]\nname = \"").skip(1);
    let targets: BTreeSet<&str> = targets.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(targets, properties, "targets in fuzz/Cargo.toml");
    let corpora = entries(&folder().join("corpus"));
    let corpora: BTreeSet<&str> = corpora
        .iter()
        .filter_map(|folder| folder.file_name()?.to_str())
        .collect();
    assert_eq!(corpora, properties, "folders in fuzz/corpus");
}

#[test]
fn an_input_that_fails_is_named() {
    let folder = folder().join("corpus/spans_tile");
    let inputs = entries(&folder);
    let bytes = fs::read(&inputs[1]).unwrap();
    let (count, failed) = failing(|input| assert_ne!(input, bytes), &folder);
    assert_eq!((count, failed), (inputs.len(), vec![inputs[1].clone()]));
}
