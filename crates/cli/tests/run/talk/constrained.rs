//! Conversations with a model server that constrains replies.

use std::fs;

use plaincall_testkit::model_server::{Asked, Script};
use serde_json::Value;

use super::configuration::user;
use super::{at_home, fed, scene};
use crate::run::probe::{models, serving};
use crate::run::scene::{Ended, Scene, call};

fn reply(text: &str) -> Script {
    Script::stream(&[text], "stop")
}

/// Asks questions at a server with these scripts. Returns how the last one ended, and the bodies of the requests.
fn ask(
    scene: &Scene,
    settings: &str,
    scripts: Vec<Script>,
    questions: &[&[&str]],
) -> (Ended, Vec<Value>) {
    let serving = serving(scripts);
    let url = serving.server.url();
    user(
        scene,
        &format!("tools = ['~/../tools.toml']\n[models.m]\nurl = '{url}'\n{settings}"),
    );
    let mut last = None;
    for options in questions {
        let all = [&["ask", "Go.", "--model", "m"], *options].concat();
        last = Some(at_home(scene, &all));
    }
    let requests = serving.server.seen().requests;
    let asked = requests.iter().filter(|asked| !asked.body.is_empty());
    (last.unwrap(), asked.map(Asked::json).collect())
}

fn grammar(body: &Value) -> &str {
    body["grammar"].as_str().unwrap_or_default()
}

#[test]
fn a_setting_adds_a_grammar() {
    let read = || reply(&call("read", &[("name", "apples")]));
    for (settings, is_constrained) in [
        ("", false),
        ("constrain = 'llama.cpp'\n", true),
        ("constrain = 'never'\n", false),
    ] {
        let scripts = vec![read(), reply("Done.")];
        let (ended, bodies) = ask(&scene(&[]), settings, scripts, &[&[]]);
        assert_eq!(
            (ended.status, &*ended.stdout),
            (Some(0), "Done.\n"),
            "{ended:?}"
        );
        for body in &bodies {
            let has_tool = grammar(body).contains("read");
            assert_eq!(has_tool, is_constrained, "{settings}");
        }
        assert_eq!(bodies.len(), 2);
    }
    let scripts = vec![models("llamacpp"), reply("Done.")];
    let (ended, bodies) = ask(&scene(&[]), "constrain = 'auto'\n", scripts, &[&[]]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!grammar(&bodies[0]).is_empty());
}

#[test]
fn the_grammar_of_a_session_keeps_its_key() {
    let session = ["--session", "kept", "--dialect", "keyed"];
    let questions = [&session[..], &session[..2]];
    let scripts = vec![reply("One."), reply("Two.")];
    let setting = "constrain = 'llama.cpp'\n";
    let (ended, bodies) = ask(&scene(&[]), setting, scripts, &questions);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!grammar(&bodies[0]).is_empty());
    assert_eq!(grammar(&bodies[0]), grammar(&bodies[1]));
}

#[test]
fn what_cannot_be_constrained_is_explained() {
    let tools =
        "[tools.fixed]\nparameters = { name = { enum = ['!!!GADGET_END'] } }\nshell = 'true'\n";
    let scene = scene(&[]);
    fs::write(scene.path("tools.toml"), tools).unwrap();
    let reason = "no call of `fixed` can be part of a grammar: ";
    let (ended, bodies) = ask(
        &scene,
        "constrain = 'auto'\n",
        vec![models("vllm"), reply("Done.")],
        &[&[]],
    );
    assert_eq!(
        (ended.status, &*ended.stdout),
        (Some(0), "Done.\n"),
        "{ended:?}"
    );
    let note = format!("note: replies are not constrained: {reason}");
    assert!(ended.stderr.starts_with(&note), "{ended:?}");
    assert!(bodies[0].get("response_format").is_none());

    let demanded =
        "`constrain` requires a server with the API `openai`; set it to `auto` or `never`";
    for (settings, expected) in [
        (
            "constrain = 'vllm'\n",
            format!("replies cannot be constrained: {reason}"),
        ),
        (
            "kind = 'anthropic'\nconstrain = 'always'\n",
            format!("the model `m`: {demanded}"),
        ),
    ] {
        let (ended, bodies) = ask(&scene, settings, Vec::new(), &[&[]]);
        assert_eq!((ended.status, bodies.len()), (Some(2), 0), "{ended:?}");
        let error = format!("error: {expected}");
        assert!(ended.stderr.starts_with(&error), "{ended:?}");
    }
    // Without tools there is nothing to constrain.
    let always = "constrain = 'always'\n";
    let (ended, bodies) = ask(&scene, always, vec![reply("Done.")], &[&["--no-tools"]]);
    assert_eq!(
        (ended.status, grammar(&bodies[0])),
        (Some(0), ""),
        "{ended:?}"
    );

    // A switch of the model in a conversation explains it too, or fails.
    let tables: String = ["auto", "never", "vllm"]
        .map(|constrain| {
            format!("[models.{constrain}]\nurl = 'http://127.0.0.1:9'\nconstrain = '{constrain}'\n")
        })
        .concat();
    user(&scene, &format!("tools = ['~/../tools.toml']\n{tables}"));
    let mut command = scene.plaincall(&["chat", "--model", "never"]);
    command.env("HOME", scene.path("home"));
    let ended = fed(&mut command, "/model auto\n/model vllm\n/model\n");
    let expected = [
        &note[..],
        "note: switched to auto; the conversation keeps its syntax\n",
        &format!("error: replies cannot be constrained: {reason}"),
        "note: current model: auto\n",
    ];
    let mut rest = &*ended.stderr;
    for part in expected {
        let (_, after) = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("{part:?} is not in {ended:?}"));
        rest = after;
    }
    assert_eq!(ended.stderr.matches(reason).count(), 2, "{ended:?}");

    let scene = super::scene(&[]);
    let (ended, bodies) = ask(&scene, always, vec![models("library")], &[&[]]);
    assert_eq!((ended.status, bodies.len()), (Some(1), 0), "{ended:?}");
    let error = "names no engine that accepts a grammar; set `constrain` to the engine";
    assert!(ended.stderr.contains(error), "{ended:?}");
}
