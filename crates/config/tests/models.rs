//! The tables of models: their keys and their problems.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "tests, some of which are long tables"
)]

use std::num::NonZeroU32;

use plaincall_config::FileError;
use plaincall_config::secret::Address;
use plaincall_config::settings::{
    Api, ArgumentMode, Model, Reasoning, Settings, Syntax, ToolMode, read_settings,
};
use plaincall_names::Unclosed;

/// Reads the models of a file.
fn read_models(file: &str, text: &str) -> Result<Vec<(String, Model)>, FileError> {
    let layer = read_settings(file, text, None)?;
    let models = layer.read::<Settings>().unwrap().models;
    Ok(models.into_iter().collect())
}

/// Checks a table with these lines. If there is a base, the dialect of the table is applied to it.
fn over(base: &Model, lines: &str, expected: &Model) {
    let text = format!("[models.\"a:*\"]\n{lines}");
    let models = read_models("models.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let [(name, own)] = <[_; 1]>::try_from(models).unwrap();
    let found = if *base == Model::default() {
        own
    } else {
        own.over(base)
    };
    assert_eq!((&*name, &found), ("a:*", expected), "{lines}");
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
    for (base, lines, expected) in vec![
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
        (
            none(),
            "markers_anywhere = true",
            Model {
                markers_anywhere: Some(true),
                ..none()
            },
        ),
        (begun(true), "in_reasoning = false", begun(false)),
        (none(), "unclosed = 'reject'", unclosed(Unclosed::Reject)),
        (
            none(),
            "arguments = 'stream'",
            arguments(ArgumentMode::Stream),
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
            "developer_role = true\nsystem_anywhere = true",
            Model {
                developer_role: Some(true),
                system_anywhere: Some(true),
                ..none()
            },
        ),
        (
            none(),
            "listed_tools = ['read', 'mcp__*']\nhidden_tools = ['web_*']\ndescription_length = 200",
            Model {
                listed_tools: Some(vec!["read".to_owned(), "mcp__*".to_owned()]),
                hidden_tools: Some(vec!["web_*".to_owned()]),
                description_length: NonZeroU32::new(200),
                ..none()
            },
        ),
    ] {
        over(&base, lines, &expected);
    }
    assert_eq!(read_models("", "").unwrap(), []);
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
            "[models.a]\nsyntax = 'emoji'\nmarkers_anywhere = true",
            (3, 1),
            "`markers_anywhere` is for the block syntax",
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
            "[models.a]\nformats = ['qwen']",
            (2, 12),
            "`hermes`, `mistral`, ",
        ),
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
            "[models.a]\ntemperature = 3",
            (2, 1),
            "must be a number from 0 to 2",
        ),
        (
            "[models.a]\nextra = { seed = 1, stream_options = 'no', stop = 'x' }",
            (2, 1),
            "`extra` cannot set `stream_options`",
        ),
        (
            "[models]\nkeyed = true",
            (2, 9),
            "`keyed` is true; it must be a table",
        ),
        (
            "[model.a]\n",
            (1, 2),
            "the table of a model is `[models.NAME]`",
        ),
        (
            "models = 7\n",
            (1, 10),
            "`models` is a number; it must be a table",
        ),
        ("[models.a]\n[models.a]\n", (2, 9), "duplicate key `a`"),
        (
            "[models.a]\nkeyed = true\nkeyed = true\n",
            (3, 1),
            "duplicate key `keyed`",
        ),
        ("[models.a]\nkeyed = \n", (2, 9), ""),
        ("[models.a]\nurl = 'a'", (2, 1), "must begin with `http://`"),
        ("[models.a]\nkey_env = 'SET'", (2, 1), "requires `url`"),
        (
            "[models.a]\nurl = 'http://a'\nkey_env = 'sk-tulip-123456'",
            (3, 1),
            "`key_env` must be the name of an environment variable that has the key, not the key",
        ),
        (
            "[models.a]\nurl = 'http://a'\nkey_env = 'SET'\nkey_file = 'a'",
            (4, 1),
            "cannot both be set",
        ),
        (
            "[models.a]\nmax_body = 1",
            (2, 1),
            "unknown key `max_body`: it belongs in the table `[serve]`",
        ),
    ] {
        let error = read_models("models.toml", text).unwrap_err();
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
    let two = read_models("", "[models.a]\nx = 1\nkeyed = 1");
    assert_eq!(two.unwrap_err().problems.len(), 2);
}

#[test]
fn problems_of_the_gateway() {
    for (text, position, words) in [
        (
            "[serve]\nsyntax = 'emoji'",
            (2, 1),
            "unknown key `syntax`: it belongs in a table `[models.NAME]`; `[models.\"*\"]` is for models without a better match",
        ),
        (
            "[serve]\nupstream = 'http://a'",
            (2, 1),
            "use `url` in a table `[models.NAME]`",
        ),
        ("[serve]\nkeys = 'a'", (2, 1), "did you mean `keys_file`?"),
        (
            "[serve]\nsystem = 'a'",
            (2, 1),
            "it belongs at the top level, above all tables",
        ),
        ("[serve]\nlisen = 'a'", (2, 1), "did you mean `listen`?"),
        (
            "listen = '127.0.0.1:1'",
            (1, 1),
            "it belongs in the table `[serve]`",
        ),
        (
            "[serve]\nlisten = 8090",
            (2, 10),
            "an IP address and a port, such as 127.0.0.1:8090",
        ),
        (
            "[serve]\nlisten = 'localhost:8091'",
            (2, 10),
            "such as 127.0.0.1:8091",
        ),
        ("[serve]\nmax_body = '1k'", (2, 12), "a size above 0: bytes"),
        ("[serve]\nidle_timeout = 0", (2, 16), "a duration above 0"),
        ("[serve]\nretries = 11", (2, 1), "must be at most 10"),
        ("[serve]\nkey_rate = 0", (2, 12), "at least 1"),
        (
            "[serve]\nmax_requests = 1000001",
            (2, 1),
            "must be at most 1000000",
        ),
        (
            "[serve]\nmax_bodies = '1 MiB'",
            (2, 1),
            "it must be at least `max_body`, 33554432 bytes",
        ),
    ] {
        let error = read_settings("config.toml", text, None).unwrap_err();
        let [problem] = error.problems.as_slice() else {
            panic!("{text}: {error}");
        };
        assert!(problem.message.contains(words), "{text}: {problem}");
        let found = (problem.line, problem.column);
        assert_eq!(found, position, "{text}: {problem}");
    }
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
        // It may be a secret.
        (
            "url = 'http://x'\nheaders = 'Bearer tulip'",
            (3, 11),
            "`headers` is a string; it must be a table",
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
