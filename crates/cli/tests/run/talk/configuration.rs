//! Layers of the configuration, and the effect of their settings.

use std::fs;

use plaincall::process::CALL_VARIABLES;

use super::{MODEL, at_home, run, scene};
use crate::run::scene::{Ended, PLAINCALL, Scene, call};

/// Writes the user's own file.
pub(super) fn user(scene: &Scene, text: &str) {
    let folder = scene.path("home/.config/plaincall");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

pub(super) fn project(scene: &Scene, text: &str) {
    fs::write(scene.path("plaincall.toml"), text).unwrap();
}

/// Returns the fingerprint that is printed where there is no terminal.
pub(super) fn fingerprint(scene: &Scene) -> String {
    let ended = at_home(scene, &["config", "--trust"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let (_, rest) = ended.stderr.split_once("--trust=").unwrap();
    rest.split('`').next().unwrap().to_owned()
}

/// Trusts the current text of the project's file.
pub(super) fn trust(scene: &Scene) {
    let option = format!("--trust={}", fingerprint(scene));
    let ended = at_home(scene, &["config", &option]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

/// Returns the origin and the value of a path.
fn value(ended: &Ended, path: &str) -> Option<(String, String)> {
    let shown: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let values = shown["values"].as_array().unwrap();
    let found = values.iter().find(|value| value["path"] == path)?;
    let from = found["from"].as_str().unwrap().to_owned();
    Some((from, found["value"].to_string()))
}

/// An invalid example of the model's table is shown at its line. A valid one is sent.
#[test]
fn few_shot_examples() {
    let scene = scene(&["Hi."]);
    let table = |arguments: &str| {
        format!(
            "model = 'notes'\ntools = ['{}']\n[models.notes]\nreplay = '{}'\n[[models.notes.examples]]\nquestion = 'What is the plan?'\ntool = 'read'\narguments = {arguments}\nanswer = 'None.'\n",
            scene.path("tools.toml").display(),
            scene.path("replies.jsonl").display()
        )
    };
    user(&scene, &table("{ nam = 'plan' }"));
    let ended = at_home(&scene, &["ask", "Hello!"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let expected = "config.toml, line 8: `arguments` of example 1: ";
    assert!(ended.stderr.contains(expected), "{ended:?}");
    user(&scene, &table("{ name = 'plan' }"));
    let ended = at_home(&scene, &["ask", "Hello!"]);
    assert_eq!(
        (ended.status, &*ended.stdout),
        (Some(0), "Hi.\n"),
        "{ended:?}"
    );
}

/// The command accepts the variables that it sets for tools.
#[test]
fn a_tool_can_ask_a_model() {
    let scene = scene(&["Forty-two."]);
    let tools = format!(
        "[tools.helper]\nparameters = {{ question = 'string' }}\neffect = 'read'\n\
         command = ['{PLAINCALL}', 'ask', '--model', '{MODEL}', '{{question}}']\n"
    );
    fs::write(scene.path("tools.toml"), tools).unwrap();
    fs::write(
        scene.path("reply.txt"),
        call("helper", &[("question", "What?")]),
    )
    .unwrap();
    let ended = at_home(&scene, &["run", "reply.txt", "--tools", "tools.toml"]);
    assert!(ended.stdout.contains("Forty-two."), "{ended:?}");
    let mut command = scene.plaincall(&["config"]);
    let others = CALL_VARIABLES
        .into_iter()
        .chain(["PLAINCALL_INSPECTOR_PAGE"]);
    command.envs(others.map(|name| (name, "x")));
    let ended: Ended = command.output().unwrap().into();
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

#[test]
fn the_nearest_layer_counts() {
    let scene = scene(&["Hello."]);
    user(
        &scene,
        "model = 'a'\nsystem = 'own'\n[limits]\nturns = 5\ncalls = 6\n[models.a]\nurl = 'http://u:secret@a.example/v1'\n[mcp.servers.x]\ncommand = 'x'\nenv = { KEY = 'secret' }\n",
    );
    project(&scene, "[limits]\nturns = 7\ncalls = 8\n");
    let config = |is_trusted: bool| {
        if is_trusted {
            trust(&scene);
        }
        let mut command = scene.plaincall(&["config", "--json"]);
        command.env("HOME", scene.path("home"));
        command.env("PLAINCALL_LIMITS_CALLS", "9");
        command.env("PLAINCALL_SYSTEM", "from outside");
        let ended: Ended = command.output().unwrap().into();
        assert!(!ended.stdout.contains("secret"), "{}", ended.stdout);
        ended
    };
    let check = |ended: &Ended, path: &str, from: &str, expected: &str| {
        let found = value(ended, path);
        assert_eq!(
            found,
            Some((from.to_owned(), expected.to_owned())),
            "{path}"
        );
    };
    let ended = config(false);
    check(&ended, "limits.turns", "user", "5");
    check(&ended, "limits.calls", "environment", "9");
    check(&ended, "system", "environment", "\"from outside\"");
    check(&ended, "limits.repairs", "default", "5");
    check(
        &ended,
        "models.a.url",
        "user",
        "\"http://(not shown)@a.example/v1\"",
    );
    let ended = config(true);
    check(&ended, "limits.turns", "project", "7");
    check(&ended, "limits.calls", "environment", "9");
    // Only the text that was shown is trusted.
    project(&scene, "[limits]\nturns = 8\n");
    check(&config(false), "limits.turns", "user", "5");
    trust(&scene);
    check(&config(false), "limits.turns", "project", "8");
    assert_eq!(at_home(&scene, &["config", "--distrust"]).status, Some(0));
    check(&config(false), "limits.turns", "user", "5");
}

#[test]
fn a_project_cannot_open_what_is_closed() {
    let write = call("write", &[("name", "new"), ("text", "one")]);
    let scene = scene(&[&write, "Done."]);
    let ask = |options: &[&str]| {
        at_home(
            &scene,
            &[&["ask", "Write.", "--model", MODEL], options].concat(),
        )
    };
    let rule = |verdict: &str| {
        format!(
            "[[rules]]\ntools = 'write'\nverdict = '{verdict}'\n{}",
            if verdict == "deny" {
                "reason = 'no'\n"
            } else {
                ""
            }
        )
    };
    let tools = &["--tools", "tools.toml"];
    // Without trust, neither its tools nor its approvals apply.
    project(
        &scene,
        &format!("tools = ['tools.toml']\n{}", rule("allow")),
    );
    let ended = ask(&[]);
    assert!(
        ended
            .stderr
            .contains("is not trusted, so these keys are ignored: `tools`, rules that allow"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("unknown") || ended.stderr.contains("rejected"),
        "{ended:?}"
    );
    let ended = ask(tools);
    assert!(
        ended.stderr.contains("no terminal is available"),
        "{ended:?}"
    );
    assert!(!scene.path("new.txt").exists());
    // Its denials always apply, even against an approval of the user.
    project(&scene, &rule("deny"));
    user(&scene, &rule("allow"));
    let ended = ask(&[&tools[..], &["--yes"]].concat());
    // The model reads none of its texts.
    let ours = "rejected\n  a rule of the project denies this call";
    assert!(ended.stderr.contains(ours), "{ended:?}");
    // Its rules that ask cannot replace a denial of the user, nor can its approvals when it is trusted.
    for verdict in ["ask", "allow"] {
        project(&scene, &rule(verdict));
        user(&scene, &rule("deny"));
        trust(&scene);
        let ended = ask(&[&tools[..], &["--yes"]].concat());
        assert!(
            ended.stderr.contains("rejected\n  no"),
            "{verdict}: {ended:?}"
        );
    }
    // A trusted file may allow calls for which the user has no setting.
    user(&scene, "");
    let ended = ask(tools);
    assert!(ended.stderr.contains("+ write"), "{ended:?}");
    assert!(scene.path("new.txt").exists());
    // A change of a file that it names ends the trust.
    project(&scene, "tools = ['tools.toml']\n");
    trust(&scene);
    assert!(!ask(&[]).stderr.contains("not trusted"));
    fs::write(
        scene.path("tools.toml"),
        "[tools.write]\ncommand = ['true']\neffect = 'read'\n",
    )
    .unwrap();
    assert!(ask(&[]).stderr.contains("not trusted"));
}

#[test]
fn names_of_other_programs_are_suggested() {
    let scene = scene(&["Hello."]);
    for (text, part) in [
        (
            "api_key = 's'",
            "cannot contain secrets; use `key_env = \"VARIABLE\"` or `key_file",
        ),
        ("num_ctx = 9", "`context` in `[limits]`"),
        (
            "kind = 'ollama'",
            "`kind` cannot be `ollama`; it must be `openai` or `anthropic`; ollama uses `openai`",
        ),
    ] {
        project(&scene, &format!("[models.a]\nurl = 'http://a'\n{text}"));
        let ended = run(&scene, &["config"]);
        assert_eq!(ended.status, Some(2), "{text}: {ended:?}");
        assert!(ended.stderr.contains(part), "{text}: {}", ended.stderr);
    }
    for (name, part) in [
        ("qwen3", "did you mean `ollama:qwen3`?"),
        (
            "claude-sonnet-4-5",
            "did you mean `anthropic:claude-sonnet-4-5`?",
        ),
        ("replies.jsonl", "did you mean `replay:replies.jsonl`?"),
    ] {
        let ended = run(&scene, &["ask", "--no-project", "--model", name, "Hi."]);
        assert_eq!(ended.status, Some(2), "{name}: {ended:?}");
        assert!(ended.stderr.contains(part), "{name}: {}", ended.stderr);
    }
}

#[test]
fn mistakes_are_shown_where_they_stand() {
    let scene = scene(&["Hello."]);
    for (text, parts) in [
        (
            "modl = 'x'",
            &[
                "unknown key `modl`; did you mean `model`?",
                "plaincall.toml:1:1",
            ][..],
        ),
        (
            "[models.a]\nurl = 'http://a'\nkey_env = 'KEY'",
            &["`key_env` is not allowed in a project's file"],
        ),
        (
            "[models.a]\nkey_file = 'k'\nurl = 'http://a'",
            &["`key_file` is not allowed in a project's file"],
        ),
        (
            "sessions = '/tmp'",
            &["`sessions` is not allowed in a project's file"],
        ),
        (
            "[mcp.servers.a]\nurl = 'https://a'\nheaders = { a = '${KEY}' }",
            &["cannot use your environment variables"],
        ),
        (
            "[mcp.servers.a]\ncommand = 'a'\ncwd = '${X:-/etc}'",
            &[
                "cannot use your environment variables",
                "plaincall.toml:3:1",
            ],
        ),
        (
            "[limits]\nturns = 0\ntime = '1 day'",
            &[
                "an integer of at least 1",
                "`time` is the string `1 day`",
                "2 errors",
            ],
        ),
        (
            "[models.a]\nurl = 'a.example'",
            &["invalid URL `a.example`"],
        ),
        (
            "[models.replay]\nurl = 'http://a'",
            &["invalid model name `replay`"],
        ),
        (
            "[models.a]\nurl = 'http://a'\nsyntax = 'emoji'\nstart_prefix = 'x'",
            &["is a marker of the block syntax"],
        ),
        (
            "[[rules]]\ntools = 'a'\nverdict = 'deny'",
            &["needs a `reason`"],
        ),
        (
            "[[rules]]\ntools = 'a'\nverdict = 'alow'",
            &["did you mean `allow`?"],
        ),
        ("[[rules]]\nverdict = 'ask'", &["missing key `tools`"]),
    ] {
        project(&scene, text);
        let ended = run(&scene, &["config"]);
        assert_eq!(ended.status, Some(2), "{text}: {ended:?}");
        for part in parts {
            assert!(
                ended.stderr.contains(part),
                "{text}: {part:?} is not in\n{}",
                ended.stderr
            );
        }
    }
    fs::remove_file(scene.path("plaincall.toml")).unwrap();
    let mut command = scene.plaincall(&["config"]);
    let ended: Ended = command
        .env("PLAINCALL_LIMITS_TURN", "3")
        .output()
        .unwrap()
        .into();
    // Another program may use it.
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("did you mean `PLAINCALL_LIMITS_TURNS`?"),
        "{ended:?}"
    );
    assert!(!ended.stdout.contains("limits.turns = 3"), "{ended:?}");
    user(
        &scene,
        "[[rules]]\ntools = 'wirte'\nverdict = 'deny'\nreason = 'no'\n",
    );
    let ended = at_home(
        &scene,
        &["ask", "What?", "--model", MODEL, "--tools", "tools.toml"],
    );
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("did you mean `write`?"), "{ended:?}");
}

#[test]
fn a_key_goes_to_the_server_that_it_is_for() {
    let scene = scene(&["Hello."]);
    for (options, part) in [
        (
            &["--model", "openai:gpt"][..],
            "set the variable OPENAI_API_KEY",
        ),
        (
            &["--model", "anthropic:claude"],
            "set the variable ANTHROPIC_API_KEY",
        ),
        (&["--model", "a"], "set the variable KEY_OF_A"),
    ] {
        user(
            &scene,
            "[models.a]\nurl = 'http://127.0.0.1:9/v1'\nkey_env = 'KEY_OF_A'\n",
        );
        let ended = at_home(&scene, &[&["ask", "What?"], options].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(part), "{part:?}: {ended:?}");
    }
}

#[test]
fn settings_of_the_built_in_tools() {
    let scene = scene(&[]);
    user(
        &scene,
        "[builtin]\ndirectory = '.'\ncommand_timeout = '300ms'\nfetch_hosts = ['a.example']\ncommand_environment = ['SEEN']\n",
    );
    let listed = at_home(&scene, &["tools", "list", "--json"]);
    let effect = |name: &str| {
        let tools = listed.stdout.lines().map(serde_json::from_str);
        let tools: Vec<serde_json::Value> = tools.map(Result::unwrap).collect();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["effect"].clone()
    };
    assert_eq!(effect("fetch_url"), "read", "{listed:?}");
    let call = |command: &str| -> Ended {
        let arguments = ["tools", "call", "run_command", command, "--yes"];
        let mut command = scene.plaincall(&arguments);
        command.env("HOME", scene.path("home"));
        command.env("SEEN", "to be seen").env("UNSEEN", "hidden");
        command.output().unwrap().into()
    };
    let ended = call("command=echo \"$SEEN-$UNSEEN\"");
    assert!(ended.stdout.contains("to be seen-\n"), "{ended:?}");
    let ended = call("command=sleep 60");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    // A project passes on no variables.
    project(&scene, "[builtin]\ncommand_environment = ['SEEN']\n");
    let ended = at_home(&scene, &["config"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let refused = "`command_environment` is not allowed in a project's file";
    assert!(ended.stderr.contains(refused), "{ended:?}");
}

#[test]
fn a_server_is_started_as_it_is_written() {
    let scene = scene(&[]);
    for folder in ["home/work", "home/.config/plaincall/sub"] {
        fs::create_dir_all(scene.path(folder)).unwrap();
    }
    for (cwd, folder) in [
        ("~/work", "home/work"),
        ("${HOME}/work", "home/work"),
        ("sub", "home/.config/plaincall/sub"),
    ] {
        user(
            &scene,
            &format!(
                "[mcp.servers.'a/b']\ncommand = 'sh'\nargs = ['-c', 'echo $A $B $C $D >seen']\ncwd = '{cwd}'\nenv = {{ A = 3.10, B = 2024-01-02, C = 123456789012345678901234567890, D = true }}\n",
            ),
        );
        let ended = at_home(&scene, &["tools", "list"]);
        let seen = fs::read_to_string(scene.path(folder).join("seen"));
        let expected = "3.10 2024-01-02 123456789012345678901234567890 true\n";
        assert_eq!(seen.ok().as_deref(), Some(expected), "{cwd}: {ended:?}");
        fs::remove_file(scene.path(folder).join("seen")).unwrap();
    }
}

#[test]
fn replies_without_a_call() {
    let finish = call("finish", &[("answer", "All is done.")]);
    let ask = |limits: &str, variable: Option<&str>| {
        let scene = scene(&["I think about it.", "I still do.", &finish]);
        let text = format!("[builtin]\ndirectory = '.'\n[limits]\n{limits}\n");
        user(&scene, &text);
        let mut command = scene.plaincall(&["ask", "Do it.", "--model", MODEL]);
        command.env("HOME", scene.path("home"));
        command.envs(variable.map(|word| ("PLAINCALL_LIMITS_ON_NO_TOOL_CALL", word)));
        let ended: Ended = command.output().unwrap().into();
        (ended.stdout.trim_end().to_owned(), ended)
    };
    for (limits, variable, expected) in [
        ("", None, "I think about it."),
        ("on_no_tool_call = 'remind'", None, "All is done."),
        ("", Some("remind"), "All is done."),
        (
            "on_no_tool_call = 'remind'\nreminders = 1",
            None,
            "I still do.",
        ),
        (
            "on_no_tool_call = 'remind'",
            Some("answer"),
            "I think about it.",
        ),
    ] {
        let (answer, ended) = ask(limits, variable);
        assert_eq!(answer, expected, "{limits}: {ended:?}");
    }
    // There is no user to ask.
    let (_, ended) = ask("on_no_tool_call = 'ask'", None);
    assert!(ended.stderr.contains("requires a user"), "{ended:?}");
    let (_, ended) = ask("", Some("reminded"));
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("must be `answer`"), "{ended:?}");
}

#[test]
fn room_is_kept_for_as_long_a_reply_as_the_model_may_write() {
    let count = call("count", &[]);
    for (tokens, is_shortened) in [("100", false), ("19000", true)] {
        let scene = scene(&[&count, &count, "Done."]);
        let tools = "[tools.count]\ncommand = ['seq', '2000']\neffect = 'read'\n";
        fs::write(scene.path("tools.toml"), tools).unwrap();
        let replies = scene.path("replies.jsonl");
        let text = format!(
            "model = 'a'\n[limits]\ncontext = 20000\n[models.a]\nreplay = '{}'\nmax_tokens = {tokens}\n",
            replies.display()
        );
        user(&scene, &text);
        let ended = at_home(&scene, &["ask", "Count.", "--tools", "tools.toml"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let found = ended.stderr.contains("shortened");
        assert_eq!(found, is_shortened, "{tokens}: {ended:?}");
    }
}

#[test]
fn an_agent_has_its_own_model_tools_and_limits() {
    let block = call("own", &[]);
    for (syntax, own) in [("block", &*block), ("emoji", "🛠️[own]🛠️[/end]\n")] {
        check_agents(syntax, own);
    }
}

/// Checks agents whose model writes `own`, a call, in this syntax.
fn check_agents(syntax: &str, own: &str) {
    let scene = scene(&[]);
    let text = "model = 'plain'\ntools = ['general.toml']\n\
         [models.plain]\nreplay = 'plain.jsonl'\n\
         [models.other]\nreplay = 'other.jsonl'\nsyntax = 'SYNTAX'\n\
         [agents.reader]\nmodel = 'other'\nsystem = 'Read.'\ntools = ['own.toml']\nlimits = { turns = 1 }\n\
         [agents.longer]\nmodel = 'other'\nsystem = 'Read.'\ntools = ['own.toml']\nlimits = { turns = 2 }\n\
         [agents.writer]\nsystem = 'Write.'\n\
         [agents.none]\ntools = []\n";
    user(&scene, &text.replace("SYNTAX", syntax));
    let folder = scene.path("home/.config/plaincall");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("plain.jsonl", "\"I am plain.\"\n\"More.\"\n");
    let reply = serde_json::to_string(own).unwrap();
    write("other.jsonl", &format!("{reply}\n\"It is done.\"\n"));
    for name in ["general", "own"] {
        let tool =
            format!("[tools.{name}]\neffect = 'read'\nparameters = {{}}\nshell = 'echo {name}'\n");
        write(&format!("{name}.toml"), &tool);
    }
    let check = |options: &[&str], status: i32, stdout: &str, stderr: &str| {
        let ended = at_home(&scene, &[&["ask", "Go."], options].concat());
        assert_eq!(ended.status, Some(status), "{options:?}: {ended:?}");
        assert_eq!(ended.stdout, stdout, "{options:?}: {ended:?}");
        assert!(ended.stderr.contains(stderr), "{options:?}: {ended:?}");
    };
    let one_reply = "no answer after 1 reply, which is the limit";
    check(&[], 0, "I am plain.\n", "1 turn - 0 calls");
    check(
        &["--agent", "writer"],
        0,
        "I am plain.\n",
        "1 turn - 0 calls",
    );
    check(&["--agent", "reader"], 1, "", one_reply);
    let longer = ["--agent", "longer"];
    check(&longer, 0, "It is done.\n", "own  ok");
    // The value of an option replaces the value of the agent.
    let other = ["--agent", "reader", "--model", "plain"];
    check(&other, 0, "I am plain.\n", "1 turn");
    let unknown = [&longer[..], &["--tools", "tools.toml"]].concat();
    check(&unknown, 0, "It is done.\n", "unknown tool `own`");
    let kept = ["--agent", "writer", "--session", "kept"];
    check(&kept, 0, "I am plain.\n", "1 turn");
    check(&["--session", "kept"], 0, "More.\n", "1 turn");
    let none = ["--agent", "none", "--model", "other"];
    check(&none, 0, "\nIt is done.\n", "unknown tool `own`");
    let near = "error: unknown agent `raeder`; did you mean `reader`?\n";
    check(&["--agent", "raeder"], 2, "", near);
    let all =
        "error: unknown agent `x`; the configuration has `longer`, `none`, `reader`, `writer`\n";
    check(&["--agent", "x"], 2, "", all);
    let ended = at_home(&scene, &["config", "--json"]);
    let limit = value(&ended, "agents.reader.limits.turns");
    assert_eq!(limit, Some(("user".to_owned(), "1".to_owned())));

    // An agent of an untrusted project does not exist.
    project(&scene, "[agents.helper]\ntools = ['project.toml']\n");
    let path = scene.path("plaincall.toml");
    let untrusted = format!(
        "error: unknown agent `helper`; it is defined in {}, which is not trusted; to review and trust it, run `plaincall config --trust`\n",
        path.canonicalize().unwrap().display()
    );
    check(&["--agent", "helper"], 2, "", &untrusted);
    fs::write(
        scene.path("project.toml"),
        "[tools.a]\ncommand = ['true']\n",
    )
    .unwrap();
    trust(&scene);
    check(&["--agent", "helper"], 0, "I am plain.\n", "1 turn");
    // Its tools file is a part of what is trusted.
    fs::write(
        scene.path("project.toml"),
        "[tools.b]\ncommand = ['true']\n",
    )
    .unwrap();
    check(&["--agent", "helper"], 2, "", &untrusted);
    for (text, expected) in [
        (
            "[agents.a.builtin]\ncommand_environment = ['KEY']",
            "`command_environment` is not allowed in a project's file",
        ),
        ("[agents.a]\ntools = ['../x.toml']", "outside the project"),
        (
            "[agents.a.mcp.servers.x]\ncommand = 'x'\nenv = { A = '${KEY}' }",
            "cannot use your environment variables",
        ),
        (
            "[agents.a]\nsystem = 'a'\nsystem_file = 'b'",
            "cannot both be set",
        ),
        ("[agents.a]\nmodle = 'a'", "did you mean `model`?"),
    ] {
        project(&scene, text);
        let ended = at_home(&scene, &["config"]);
        assert!(ended.stderr.contains(expected), "{text}: {ended:?}");
    }
}
