//! Rules about files apply however a path is written, to the results of a search, and behind links.

use plaincall::{AllowAll, Rules, Run, Stop, rules::Rule};
use plaincall_agent::plaincall;

use crate::builtin::scene::{Scene, call};

const SECRET: &str = "the key is sesame";

fn scene() -> Scene {
    let scene = Scene::of(&[
        (".env", SECRET),
        ("sub/.env", SECRET),
        ("private/notes", SECRET),
        ("open.txt", "the key is missing"),
    ]);
    scene.link(".env", "link");
    scene.link("private", "folder");
    scene
}

fn rules() -> Rules {
    Rules::new([
        Rule::deny(["*"], "not for you").argument("path", "**/.env"),
        Rule::deny(["read_file", "write_file", "edit_file"], "private")
            .argument("path", "private/**"),
    ])
}

/// Returns the result of a call for the model. `DIR` is the directory.
async fn say(scene: &Scene, rules: Rules, tool: &str, arguments: &[(&str, &str)]) -> String {
    let directory = scene.path("").canonicalize().unwrap();
    let directory = directory.to_str().unwrap();
    let arguments: Vec<(&str, String)> = arguments
        .iter()
        .map(|(name, value)| (*name, value.replace("DIR", directory)))
        .collect();
    let arguments: Vec<(&str, &str)> = arguments
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut run = Run::builder(scene.toolbox().clone())
        .gate(AllowAll)
        .rules(rules)
        .build()
        .unwrap();
    let mut turn = run.turn();
    turn.feed(call(tool, &arguments));
    let results = turn.finish(Stop::Natural).await;
    let parts = [results[0].output.as_deref(), results[0].error.as_deref()];
    parts.into_iter().flatten().collect()
}

#[tokio::test]
async fn no_way_to_write_a_path_gets_around_a_rule() {
    for path in [
        ".env",
        "./.env",
        ".//.env",
        "DIR/.env",
        "DIR//.env",
        "DIR/./.env",
        "/DIR/.env",
        "sub/../.env",
        "DIR/sub/../.env",
        "DIR/../in/.env",
        "../in/.env",
        "sub/.env",
        "DIR/sub/.env",
        "link",
        "./link",
        "sub/../link",
        "DIR/link",
        "folder/notes",
        "DIR/folder/notes",
        "private/notes",
        "folder/../private/notes",
        "folder/../.env",
    ] {
        for (tool, more) in [
            ("read_file", &[][..]),
            ("write_file", &[("content", "x")]),
            ("edit_file", &[("old_text", "sesame"), ("new_text", "x")]),
            ("search_files", &[("pattern", "key")]),
        ] {
            let scene = scene();
            let arguments = [&[("path", path)], more].concat();
            let found = say(&scene, rules(), tool, &arguments).await;
            assert!(!found.contains("sesame"), "{tool} {path}: {found}");
            for file in [".env", "sub/.env", "private/notes"] {
                assert_eq!(scene.content(file), SECRET, "{tool} {path}: {found}");
            }
        }
    }
}

#[tokio::test]
async fn a_search_shows_nothing_that_a_rule_keeps_from_the_model() {
    let scene = scene();
    for path in [".", "DIR", "sub", "folder", "private", "DIR/sub/.."] {
        let arguments = [("pattern", "key"), ("path", path)];
        let found = say(&scene, rules(), "search_files", &arguments).await;
        assert!(!found.contains("sesame"), "{path}: {found}");
        let freely = say(&scene, Rules::default(), "search_files", &arguments).await;
        assert!(freely.contains("sesame"), "{path}: {freely}");
    }
    let found = say(&scene, rules(), "search_files", &[("pattern", "key")]).await;
    assert_eq!(
        found,
        "open.txt:1: the key is missing\n[3 files skipped: denied by a rule]\n"
    );
}

#[tokio::test]
async fn files_that_need_approval_are_not_shown_without_it() {
    let scene = scene();
    let about_files = || Rule::ask(["read_file"]).argument("path", "**/.env");
    let found = |rules, path| {
        let arguments = [("pattern", "key"), ("path", path)];
        let scene = &scene;
        async move { say(scene, rules, "search_files", &arguments).await }
    };
    let found_below = found(Rules::new([about_files()]), ".").await;
    assert!(!found_below.contains(".env"), "{found_below}");
    let found_file = found(Rules::new([about_files()]), ".env").await;
    assert!(!found_file.contains("sesame"), "{found_file}");
    // The gate was asked about this very search, and allowed it.
    let asked = Rules::new([Rule::ask(["*"])]);
    assert!(found(asked, ".").await.contains("sesame"));
    let asked = Rules::new([Rule::ask(["*"]).argument("path", "**/.env")]);
    assert!(found(asked, ".env").await.contains("sesame"));
}

#[tokio::test]
async fn a_rule_that_allows_holds_for_every_way_to_write_the_path() {
    let scene = scene();
    let rules = || {
        Rules::new([
            Rule::allow(["write_file"]).argument("path", "sub/*"),
            Rule::deny(["write_file"], "no"),
        ])
    };
    for (path, is_allowed) in [
        ("sub/a", true),
        ("./sub/a", true),
        ("DIR/sub/a", true),
        ("DIR//sub/./a", true),
        ("a", false),
        ("sub/../a", false),
        ("DIR/sub/../a", false),
        ("DIR/a", false),
    ] {
        let arguments = [("path", path), ("content", "x")];
        let found = say(&scene, rules(), "write_file", &arguments).await;
        assert_eq!(
            found.starts_with("created") || found.starts_with("replaced"),
            is_allowed,
            "{path}: {found}"
        );
    }
}

#[tokio::test]
async fn commands_are_compared_word_by_word() {
    let scene = scene();
    let rules = || {
        Rules::new([
            Rule::deny(["run_*"], "nothing is deleted here").argument("command", "rm *"),
            Rule::allow(["run_*"]).argument("command", "echo *"),
            Rule::deny(["run_*"], "no user is present"),
        ])
    };
    for (command, expected) in [
        ("echo it runs", "it runs\n"),
        ("echo 'it; runs'", "it; runs\n"),
        ("echo it; echo runs", "no user is present"),
        ("echo $(touch made)", "no user is present"),
        ("echo it > made", "no user is present"),
        ("echo *", "no user is present"),
        ("rm -rf sub/x", "nothing is deleted here"),
        ("rm\tx", "nothing is deleted here"),
        ("true; rm x", "nothing is deleted here"),
        ("echo x && rm x", "nothing is deleted here"),
    ] {
        let found = say(&scene, rules(), "run_command", &[("command", command)]).await;
        assert_eq!(found, expected, "{command}");
    }
    assert!(!scene.path("made").exists());
}
