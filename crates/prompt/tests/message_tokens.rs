//! Prompts and repair messages take at most the tokens of their earlier wording (`message_tokens.txt`). The texts are the
//! snapshots that other tests compare with the current output.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::Path;

use crate::prompt::tokens::tokens;

#[test]
fn texts_for_models_take_no_more_tokens_than_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let table = fs::read_to_string(folder.join("message_tokens.txt")).expect("the table");
    let mut totals = [[0; 2]; 2];
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (name, most) = line.rsplit_once(' ').expect("a name and a number");
        let most: usize = most.parse().expect("a number");
        let file = fs::read_to_string(folder.join(name)).expect("a snapshot");
        let is_repair = name.starts_with("repair/");
        let text = if is_repair {
            file.split_once("\n=== message\n").expect("a message").1
        } else {
            &file
        };
        let now = tokens(text);
        assert!(now <= most, "{name}: {now} tokens, at most {most}\n{text}");
        let total = &mut totals[usize::from(is_repair)];
        total[0] += most;
        total[1] += now;
    }
    let [[prompts_before, prompts], [repair_before, repair]] = totals;
    println!("prompts: {prompts_before} before, {prompts} now");
    println!("repair messages: {repair_before} before, {repair} now");
    assert!(prompts > 0 && repair > 0);
}
