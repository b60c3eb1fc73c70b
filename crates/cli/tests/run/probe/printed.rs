//! The configuration that `probe` prints, in use.

use std::fs;

use serde_json::json;

use super::{ANSWER, LOOK_UP, Serving, answer, in_block, serving};
use crate::run::scene::{Ended, Scene, call};

/// Returns the configuration that `probe` prints for the block syntax.
fn printed(scene: &Scene, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let options = ["--arms", "block", "--repeat", "1"];
    let arguments = [&["probe"], arguments, &options[..], &LOOK_UP[..]].concat();
    let mut command = scene.plaincall(&arguments);
    let output = command.envs(variables.iter().copied()).output();
    let ended: Ended = output.unwrap().into();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let (_, text) = ended
        .stdout
        .split_once("\nConfiguration for block")
        .unwrap();
    let (_, text) = text.split_once(":\n\n").unwrap();
    text.to_owned()
}

/// Asks a model of this configuration a question and returns the answer. The configuration is in another folder.
fn ask(scene: &Scene, configuration: &str, model: &str, variables: &[(&str, &str)]) -> String {
    fs::create_dir_all(scene.path("folder")).unwrap();
    fs::write(scene.path("folder/config.toml"), configuration).unwrap();
    let arguments = [
        "ask",
        "--config",
        "folder/config.toml",
        "--model",
        model,
        "Where?",
    ];
    let mut command = scene.plaincall(&arguments);
    let output = command.envs(variables.iter().copied()).output();
    let ended: Ended = output.unwrap().into();
    assert_eq!(ended.status, Some(0), "{configuration}{}", ended.stderr);
    ended.stdout.trim().to_owned()
}

#[test]
fn the_printed_configuration_works() {
    let scripts = || vec![in_block(), answer(ANSWER), answer(ANSWER)];
    let is_authorized = |serving: &Serving, number: usize| {
        let head = &serving.server.seen().requests[number].head;
        head.contains("authorization: bearer k-1\r\n")
    };
    let scene = Scene::new("");
    // A URL, with and without a key.
    for key in [None, Some(("PLAINCALL_KEY", "k-1"))] {
        let serving = serving(scripts());
        let variables: Vec<_> = key.into_iter().collect();
        let url = serving.server.url();
        let table = printed(&scene, &[&url, "m:7b"], &variables);
        assert_eq!(ask(&scene, &table, "m-7b", &variables), ANSWER, "{table}");
        assert_eq!(
            table.contains("key_env = \"PLAINCALL_KEY\"\n"),
            key.is_some()
        );
        for number in 0..3 {
            assert_eq!(is_authorized(&serving, number), key.is_some(), "{number}");
        }
    }
    // Ollama, at the address of its own variable.
    let ollama = serving([scripts(), vec![answer(ANSWER)]].concat());
    let url = ollama.server.url();
    let host = url.trim_start_matches("http://").trim_end_matches("/v1");
    let variables = [("OLLAMA_HOST", host)];
    let table = printed(&scene, &["ollama:m:7b"], &variables);
    assert!(table.contains(&format!("url = \"{url}\"\n")), "{table}");
    assert_eq!(ask(&scene, &table, "m-7b", &[]), ANSWER);
    assert_eq!(ask(&scene, "", "ollama:m:7b", &variables), ANSWER);
    // Recorded replies. The path is relative to the working directory of `probe`.
    let record = call("get_record", &[("table", "users"), ("id", "u-1007")]);
    let lines = [json!(record).to_string(), json!(ANSWER).to_string()];
    fs::write(scene.path("r.jsonl"), lines.join("\n")).unwrap();
    let table = printed(&scene, &["replay:r.jsonl"], &[]);
    assert_eq!(ask(&scene, &table, "r", &[]), ANSWER);
    // A table of the configuration gets further keys.
    let configured = serving(scripts());
    let table = format!("[models.mine]\nurl = '{}'\n", configured.server.url());
    fs::write(scene.path("mine.toml"), &table).unwrap();
    let arguments = ["mine", "--config", "mine.toml"];
    let table_and_keys = printed(&scene, &arguments, &[]);
    let (header, keys) = table_and_keys.split_once('\n').unwrap();
    assert_eq!(header, "[models.mine]   # add to this table");
    assert_eq!(ask(&scene, &(table + keys), "mine", &[]), ANSWER);
    // So that no key appears twice, the lines to replace are named. What is there already is not printed.
    for (key, expected) in [
        (
            "syntax = \"emoji\"\n",
            "In [models.set], replace these lines:\n\nsyntax = \"emoji\"\n\nwith these:\n\nsyntax = \"block\"\n",
        ),
        (
            "syntax = \"block\"\n",
            "[models.set] already has these settings.\n",
        ),
    ] {
        let set = serving(scripts());
        let table = format!("[models.set]\nurl = '{}'\n{key}", set.server.url());
        fs::write(scene.path("set.toml"), table).unwrap();
        assert_eq!(
            printed(&scene, &["set", "--config", "set.toml"], &[]),
            expected
        );
    }
    // A scripted model has no server: its keys are for the table of another model.
    let other = serving(vec![answer(ANSWER)]);
    let table = format!("[models.other]\nurl = '{}'\n", other.server.url());
    let keys = printed(&scene, &["reference:block"], &[]);
    assert_eq!(keys, "syntax = \"block\"\n");
    assert_eq!(ask(&scene, &(table + &keys), "other", &[]), ANSWER);
}
