//! The effect of a project's files before and after they are trusted.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::configuration::{fingerprint, project, trust, user};
use super::{MODEL, at_home, scene};
use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Ended, call};

#[test]
fn an_untrusted_file_does_not_stop_the_command() {
    let scene = scene(&["Hello.", "Hello.", "Hello.", "Hello.", "Hello.", "Hello."]);
    let ask = |status: i32, part: &str| {
        let options = ["ask", "What?", "--model", MODEL, "--tools", "tools.toml"];
        let ended = at_home(&scene, &options);
        assert_eq!(ended.status, Some(status), "{part}: {ended:?}");
        assert!(ended.stderr.contains(part), "{part:?}: {ended:?}");
    };
    project(&scene, "modl = 'x'\nmodel = 1");
    ask(0, "plaincall.toml has 2 errors, so it is ignored");
    let refused = at_home(&scene, &["config", "--trust"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    // A rule that matches nothing.
    let deny = "[[rules]]\ntools = 'wirte'\nverdict = 'deny'\nreason = 'no'\n";
    project(&scene, deny);
    ask(0, "did you mean `write`?");
    fs::write(scene.path("plaincall.toml"), b"\xff").unwrap();
    ask(0, "plaincall.toml is not UTF-8 text");
    fs::write(scene.path("plaincall.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    ask(0, "plaincall.toml cannot be read: it is larger than 1 MiB");
    // A user who trusts the file relies on what it forbids.
    project(&scene, deny);
    trust(&scene);
    ask(2, "did you mean `write`?");
    project(&scene, "modl = 'x'");
    ask(2, "plaincall.toml has 1 error; fix it");
    assert_eq!(at_home(&scene, &["config", "--distrust"]).status, Some(0));
    ask(0, "so it is ignored");
}

#[test]
fn whose_file_it_is() {
    let scene = scene(&[]);
    project(&scene, "model = 'a'\n[models.a]\nurl = 'http://a'");
    let folder = scene.path("plaincall.toml").parent().unwrap().to_owned();
    let config = |part: &str| {
        let ended = at_home(&scene, &["config"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(part), "{part:?}: {ended:?}");
    };
    let everybody = |mode: u32| {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    };
    config("(not trusted; ignored: `model`, `models`");
    everybody(0o777);
    config("ignored: it is in a world-writable directory");
    let refused = at_home(&scene, &["config", "--trust"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    everybody(0o1777);
    config("(not trusted; ignored: `model`, `models`");
    // Only the superuser can give a file away.
    if std::os::unix::fs::chown(scene.path("plaincall.toml"), Some(4242), None).is_ok() {
        config("ignored: it belongs to another user (uid 4242; yours is 0)");
    }
}

#[test]
fn files_named_by_an_untrusted_file_are_not_read() {
    let scene = scene(&[]);
    let pipe = scene.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(scene.path("large"), vec![b'#'; (1 << 20) + 1]).unwrap();
    for (key, path, reason) in [
        ("tools", "pipe", "not a regular file"),
        ("mcp.files", "pipe", "not a regular file"),
        ("tools", ".", "not a regular file"),
        ("tools", "large", "it is larger than 1 MiB"),
        ("tools", "missing", "no such file"),
    ] {
        project(&scene, "model = 'trusted before'");
        // Neither without trust nor after trusting another text.
        for is_known in [false, true] {
            if is_known {
                trust(&scene);
            }
            project(&scene, &format!("{key} = ['{path}']"));
            let ended = at_home(&scene, &["config"]);
            assert_eq!(ended.status, Some(0), "{path}: {ended:?}");
            assert!(ended.stdout.contains("not trusted"), "{path}: {ended:?}");
            let ended = at_home(&scene, &["config", "--trust"]);
            assert_eq!(ended.status, Some(1), "{path}: {ended:?}");
            assert!(ended.stderr.contains(reason), "{path}: {ended:?}");
            project(&scene, "model = 'trusted before'");
        }
        assert_eq!(at_home(&scene, &["config", "--distrust"]).status, Some(0));
    }
}

#[test]
fn a_project_reads_nothing_outside_it() {
    let scene = scene(&["Hello."]);
    let outside = scene.path("home/secret");
    fs::create_dir_all(scene.path("home")).unwrap();
    fs::write(&outside, "outside and secret").unwrap();
    fs::create_dir(scene.path("work")).unwrap();
    std::os::unix::fs::symlink(&outside, scene.path("work/link")).unwrap();
    std::os::unix::fs::symlink(scene.path("home"), scene.path("work/folder")).unwrap();
    std::os::unix::fs::symlink("inside", scene.path("work/inner")).unwrap();
    fs::write(scene.path("work/inside"), "inside").unwrap();
    let config = |options: &[&str]| -> Ended {
        let mut command = scene.plaincall(options);
        command.current_dir(scene.path("work"));
        command.env("HOME", scene.path("home"));
        command.output().unwrap().into()
    };
    let written = |text: &str| fs::write(scene.path("work/plaincall.toml"), text).unwrap();
    for key in [
        "system_file = 'PATH'",
        "tools = ['PATH']",
        "mcp.files = ['PATH']",
        "builtin.directory = 'PATH'",
        "models.a = { replay = 'PATH' }",
    ] {
        // As written.
        for path in [
            "../home/secret",
            "~/secret",
            outside.to_str().unwrap(),
            "/dev/stdin",
            "x/../../home",
        ] {
            written(&key.replace("PATH", path));
            let ended = config(&["config", "--trust"]);
            assert_eq!(ended.status, Some(2), "{key} {path}: {ended:?}");
            assert!(
                ended.stderr.contains("is outside the project"),
                "{key} {path}: {ended:?}"
            );
            assert!(
                !ended.stdout.contains("secret\n"),
                "{key} {path}: {ended:?}"
            );
        }
        // Through links.
        for path in ["link", "folder/secret", "./folder/../home/secret", "folder"] {
            written(&key.replace("PATH", path));
            let ended = config(&["config", "--trust"]);
            assert_eq!(ended.status, Some(1), "{key} {path}: {ended:?}");
            assert!(
                ended.stderr.contains("outside the project"),
                "{key} {path}: {ended:?}"
            );
            assert!(
                !ended.stdout.contains("outside and"),
                "{key} {path}: {ended:?}"
            );
        }
    }
    written("system_file = 'inner'");
    let ended = config(&["config", "--trust"]);
    assert!(ended.stdout.contains("\ninside\n"), "{ended:?}");
    let (_, rest) = ended.stderr.split_once("--trust=").unwrap();
    let option = format!("--trust={}", rest.split('`').next().unwrap());
    assert_eq!(config(&["config", &option]).status, Some(0));
    assert!(config(&["config"]).stdout.contains("(trusted)"));
    // A file that is swapped afterwards, with the same text or not, does not count.
    fs::remove_file(scene.path("work/inner")).unwrap();
    fs::write(&outside, "inside").unwrap();
    std::os::unix::fs::symlink(&outside, scene.path("work/inner")).unwrap();
    assert!(config(&["config"]).stdout.contains("(not trusted"));
}

#[test]
fn a_project_takes_no_variables() {
    let scene = scene(&["Hello."]);
    let tools = "[tools.a]\ndescription = 'x'\neffect = 'read'\ncommand = ['env']\nenvironment = ['EDITOR', 'OPENAI_API_KEY']\n";
    fs::write(scene.path("own.toml"), tools).unwrap();
    project(&scene, "tools = ['own.toml']");
    trust(&scene);
    let ask = || at_home(&scene, &["ask", "What?", "--model", MODEL]);
    let ended = ask();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    for part in [
        "own.toml: the tool `a` reads `EDITOR` from your environment",
        "name this file in your user configuration",
    ] {
        assert!(ended.stderr.contains(part), "{part:?}: {ended:?}");
    }
    // The same file, named by the user.
    assert_eq!(at_home(&scene, &["config", "--distrust"]).status, Some(0));
    fs::remove_file(scene.path("plaincall.toml")).unwrap();
    user(
        &scene,
        &format!("tools = ['{}']", scene.path("own.toml").display()),
    );
    assert_eq!(ask().status, Some(0));
}

#[test]
fn files_to_trust_show_no_secrets() {
    const SECRETS: [&str; 8] = [
        "tulip",
        "rose",
        "lily",
        "daisy",
        "orchid",
        "sk-proj-1234567890abc",
        "AKIAIOSFODNN7EXAMPLE",
        "iris",
    ];

    let scene = scene(&[]);
    let text = "model = 'a'\ntools = ['own.toml']\nsystem_file = 'words'\n# sk-proj-1234567890abc\n\
        [mcp]\nfiles = ['mcp.json']\n\
        [mcp.servers.x]\ncommand = 'x'\nargs = ['--api-key', 'tulip', '--password=rose']\nenv = { TOKEN = 'lily', MODE = 'seen' }\n\
        [models.a]\nurl = 'https://me:daisy@a.example/v1?key=orchid'\n";
    project(&scene, text);
    fs::write(scene.path("own.toml"), "[tools.a]\ncommand = ['curl', 'https://u:iris@a.example', 'AKIAIOSFODNN7EXAMPLE', 'shown']\n").unwrap();
    fs::write(
        scene.path("mcp.json"),
        "{\"mcpServers\": {\"y\": {\"command\": \"y\", \"env\": {\"API_KEY\": \"lily\"}}}}",
    )
    .unwrap();
    fs::write(
        scene.path("words"),
        "You know that the key is sk-proj-1234567890abc. Keep it secret.",
    )
    .unwrap();
    let ended = at_home(&scene, &["config", "--trust"]);
    for secret in SECRETS {
        assert!(
            !format!("{ended:?}").contains(secret),
            "{secret}: {ended:?}"
        );
    }
    for part in [
        "'--api-key', '(not shown)'",
        "MODE = 'seen'",
        "'shown'",
        "Keep it secret.",
        "\"command\": \"y\"",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    // Nor does the error in its line.
    for mistake in [
        "env = { TOKEN = 'lily', X = '${Y}' }",
        "apikey = 'lily'",
        "headers = { Authorization = 'Bearer lily', X = [] }",
    ] {
        project(&scene, &format!("[mcp.servers.x]\n{mistake}\n"));
        for option in ["--trust", "--json"] {
            let ended = at_home(&scene, &["config", option]);
            assert_eq!(ended.status, Some(2), "{mistake}: {ended:?}");
            assert!(
                ended.stderr.contains("plaincall.toml:2:"),
                "{mistake}: {ended:?}"
            );
            assert!(
                !format!("{ended:?}").contains("lily"),
                "{mistake}: {ended:?}"
            );
        }
    }
}

#[test]
fn the_trusted_content_is_the_shown_content() {
    let scene = scene(&[]);
    project(&scene, "tools = ['tools.toml']");
    let seen = fingerprint(&scene);
    fs::write(scene.path("tools.toml"), "[tools.a]\ncommand = ['a']\n").unwrap();
    let ended = at_home(&scene, &["config", &format!("--trust={seen}")]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("nothing was trusted"), "{ended:?}");
    // On a terminal a person is asked.
    let home = scene.path("home").to_string_lossy().into_owned();
    for (answer, is_trusted) in [("\n", false), ("yes\n", true)] {
        let terminal = Terminal::start(
            &scene,
            Options {
                command: "config",
                arguments: &["--trust"],
                environment: &[("HOME", &home)],
                ..Options::default()
            },
        );
        terminal.wait_for("Trust these files? [y/N]");
        terminal.type_keys(answer);
        let (status, shown) = terminal.finish();
        assert_eq!(status, Some(i32::from(!is_trusted)), "{shown}");
        assert!(shown.contains("[tools.a]"), "{shown}");
        let ended = at_home(&scene, &["config"]);
        assert_eq!(ended.stdout.contains("(trusted)"), is_trusted, "{ended:?}");
    }
}

#[test]
fn the_used_content_is_the_trusted_content() {
    let tools = |word: &str| {
        format!("[tools.say]\ncommand = ['echo', 'it prints {word}']\neffect = 'read'\n")
    };
    let scene = scene(&[&call("say", &[]), "Done."]);
    fs::write(scene.path("tools.toml"), tools("one")).unwrap();
    project(&scene, "tools = ['tools.toml']");
    trust(&scene);
    let pipe = scene.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let arguments = ["ask", "Say.", "--model", MODEL, "--json", "--file", "pipe"];
    let mut command = scene.plaincall(&arguments);
    let child = command.env("HOME", scene.path("home")).spawn().unwrap();
    // When the document is read, the configuration has been read, and no tool exists yet.
    let document = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    fs::write(scene.path("tools.toml"), tools("two")).unwrap();
    drop(document);
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("it prints one"), "{ended:?}");
    assert!(!ended.stdout.contains("it prints two"), "{ended:?}");
}
