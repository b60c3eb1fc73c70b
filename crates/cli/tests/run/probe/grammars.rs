//! The arm with a grammar.

use plaincall_probe::SharedResult;
use plaincall_testkit::model_server::{Asked, Script};
use serde_json::{Value, json};

use super::{ANSWER, LOOK_UP, answer, in_block, models, probe, serving};
use crate::run::scene::{Ended, Scene};

/// Runs the arm with a grammar, and four others that fail.
fn with_grammar(last: [Script; 2], arguments: &[&str]) -> (Ended, Vec<Value>, String) {
    let wrong = || answer("I do not know.");
    let mut scripts = vec![models("llamacpp"), wrong(), wrong(), wrong(), wrong()];
    scripts.extend(last);
    let serving = serving(scripts);
    let url = serving.server.url();
    let options = [&[&*url, "m", "--repeat", "1"], &LOOK_UP[..], arguments].concat();
    let ended = probe(&Scene::new(""), &options);
    let requests = serving.server.seen().requests;
    let bodies = requests.iter().skip(1).map(Asked::json).collect();
    (ended, bodies, url)
}

#[test]
fn a_server_that_accepts_a_grammar() {
    let (ended, requests, url) = with_grammar([in_block(), answer(ANSWER)], &[]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let has_grammar = requests.iter().map(|body| {
        let grammar = body["grammar"].as_str();
        grammar.is_some_and(|grammar| grammar.contains("get_record"))
    });
    let has_grammar: Vec<bool> = has_grammar.collect();
    assert_eq!(has_grammar, [false, false, false, false, true, true]);
    let expected = "Recommended: block-grammar (1 of 1 correct";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
    let configuration = format!(
        "\n[models.m]\nurl = \"{url}\"\nmodel = \"m\"\nsyntax = \"block\"\nconstrain = \"auto\"\n"
    );
    assert!(ended.stdout.ends_with(&configuration), "{}", ended.stdout);

    let (ended, ..) = with_grammar([in_block(), answer(ANSWER)], &["--json"]);
    let result = SharedResult::read(&ended.stdout).unwrap();
    assert_eq!(result.settings.engine.as_deref(), Some("llama.cpp"));
    // A grammar is never dropped, and the other arms continue.
    let rejected = || Script::json(400, &json!({"error": {"message": "no grammar"}}));
    let (ended, requests, _) = with_grammar([rejected(), rejected()], &[]);
    assert_eq!((ended.status, requests.len()), (Some(1), 5));
    let expected = "\nblock-grammar could not be tried: ";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
}

#[test]
fn a_grammar_that_is_asked_for_is_needed() {
    let library = serving(vec![models("library")]);
    let url = library.server.url();
    for (model, expected) in [
        (
            &[&*url, "m"][..],
            "the server's list of models names no engine that accepts a grammar; if it is one, set `constrain`",
        ),
        (
            &["reference:block"],
            "only servers with the API `openai` accept grammars",
        ),
    ] {
        let ended = probe(
            &Scene::new(""),
            &[model, &["--arms", "block-grammar"]].concat(),
        );
        assert_eq!(ended.status, Some(2), "{}", ended.stderr);
        let expected = format!("error: the arm `block-grammar` cannot be tried: {expected}");
        assert!(ended.stderr.starts_with(&expected), "{}", ended.stderr);
    }
}
