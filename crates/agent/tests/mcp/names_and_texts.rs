//! The names of the tools of servers, and the texts of their results.

use plaincall::{Context, Tool, Toolbox};
use plaincall_agent::mcp::{McpServers, McpTransport};
use plaincall_agent::plaincall;
use serde_json::{Value, json};

use super::http::Responder;
use super::{Odd, With as _, config, connect, options, run, web};

/// Checks the names of the tools of one of the configured servers, if these names are in use.
async fn check_names(
    responder: &Responder,
    configured: &[&str],
    taken: &[&str],
    (server, tools): (&str, &[&str]),
    expected: &[&str],
) {
    responder.offer(tools);
    let servers = configured.iter().map(|name| {
        let mut configured = web(name, responder.url("/given"));
        configured.disabled = *name != server;
        configured
    });
    let servers = McpServers::connect(config(servers), options()).await;
    assert_eq!(
        (servers.failures(), servers.skipped().count()),
        (&[][..], 0)
    );
    let nothing = |(): (), _: Context| async { Ok(String::new()) };
    let taken = taken.iter().map(|name| Tool::new(*name, nothing));
    let tools = servers.tools_for(&Toolbox::new(taken).expect("the names differ"));
    let names: Vec<&str> = tools.iter().map(Tool::name).collect();
    assert_eq!(names, expected);
    Toolbox::new(tools.clone()).expect("all of them can be called");
}

#[tokio::test]
async fn names_of_one_server() {
    let responder = Responder::start().await;
    for (taken, tools, expected) in [
        (
            &[][..],
            &["y", "get/it.now-1"][..],
            &["y", "get/it.now-1"][..],
        ),
        (&["x"], &["x"], &["a_x"]),
        // A tool that already has such a name keeps it.
        (&["x"], &["x", "a_x"], &["a_x_2", "a_x"]),
        (&["a_x", "x"], &["x"], &["a_x_2"]),
        (&[], &["a b", "a:b"], &["a_a_b", "a_a_b_2"]),
        (&[], &["é[1]", ":"], &["a_é_1_", "a__"]),
        // Invisible characters, and characters that reverse the text after them.
        (
            &[],
            &["wri\u{200b}te", "\u{202e}etirw", "write"],
            &["a_wri_te", "a__etirw", "write"],
        ),
        (&[], &["read_result"], &["a_read_result"]),
    ] {
        check_names(&responder, &["a"], taken, ("a", tools), expected).await;
    }
    #[cfg(feature = "builtin")]
    for tool in plaincall_agent::builtin::BuiltinTool::ALL {
        let (name, expected) = (tool.name(), format!("a_{}", tool.name()));
        check_names(&responder, &["a"], &[], ("a", &[name]), &[&expected]).await;
    }
}

/// The names do not depend on which servers can be reached.
#[tokio::test]
async fn names_of_several_servers() {
    let responder = Responder::start().await;
    let servers = ["a", "b", "a_b", "my server", "my_server", "-s", "read"];
    for (server, tool, expected) in [
        ("a", "x", "a_x"),
        ("b", "x", "b_x"),
        ("a", "b_x", "a__b_x"),
        ("a_b", "x", "a_b_x"),
        ("a", "b", "a__b"),
        ("a", "_b", "a__b"),
        ("my server", "x", "my_server_2_x"),
        ("my_server", "x", "my_server_x"),
        ("my_server", "2_x", "my_server__2_x"),
        ("-s", ":", "_-s__"),
        ("read", "file", "read_file_2"),
    ] {
        check_names(&responder, &servers, &[], (server, &[tool]), &[expected]).await;
    }
    check_names(&responder, &["a", "b"], &["a_x"], ("a", &["x"]), &["a_x_2"]).await;
}

/// The output, or the error and the output.
type Returned<'r> = Result<&'r str, (&'r str, Option<&'r str>)>;

#[tokio::test]
#[allow(clippy::too_many_lines, reason = "a table")]
async fn results() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let cut = format!(
        "{}\n[output truncated: first 120 of 160 bytes]\n",
        "é".repeat(60)
    );
    let table: [(Value, Returned<'_>); 27] = [
        (json!({"content": []}), Ok("")),
        (
            json!({"content": [text("one\n"), text("two"), text("three")]}),
            Ok("one\ntwo\nthree"),
        ),
        (
            json!({"content": [text("{\"a\": 1}")], "structuredContent": {"a": 1}}),
            Ok("{\"a\": 1}"),
        ),
        (
            json!({"content": [text("a is 1")], "structuredContent": {"a": 1}}),
            Ok("a is 1\n{\"a\":1}"),
        ),
        (json!({"content": [], "structuredContent": null}), Ok("")),
        // As the file-system server and FastMCP repeat their texts.
        (
            json!({"content": [text("one \"two\"\n")], "structuredContent": {"content": "one \"two\"\n"}}),
            Ok("one \"two\"\n"),
        ),
        (
            json!({"content": [text("42")], "structuredContent": {"result": 42}}),
            Ok("42"),
        ),
        (
            json!({"content": [text("a"), text("2"), text("{\"a\": 1}")], "structuredContent": {"result": ["a", 2, {"a": 1}]}}),
            Ok("a\n2\n{\"a\": 1}"),
        ),
        (
            json!({"content": [], "structuredContent": {"result": null}}),
            Ok(""),
        ),
        (
            json!({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}], "structuredContent": {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}}),
            Ok("[image, image/png, 5 bytes, not shown]"),
        ),
        (
            json!({"content": [text("a")], "structuredContent": {"result": ["a", "b"]}}),
            Ok("a\n{\"result\":[\"a\",\"b\"]}"),
        ),
        (
            json!({"content": [text("a")], "structuredContent": {"a": "a", "b": 1}}),
            Ok("a\n{\"a\":\"a\",\"b\":1}"),
        ),
        // Blocks that are unknown or incomplete.
        (
            json!({"content": [text("t"), {"type": "video", "data": "AA"}]}),
            Ok("t\n[content of an unknown kind: {\"type\":\"video\",\"data\":\"AA\"}]"),
        ),
        (
            json!({"content": [{"type": "error", "error": "why"}], "isError": true}),
            Err((
                "[content of an unknown kind: {\"type\":\"error\",\"error\":\"why\"}]",
                None,
            )),
        ),
        (
            json!({"content": [{"type": "text", "text": null}, text("t"), {"type": "image", "data": "aGVsbG8="}]}),
            Ok(
                "[content of an unknown kind: {\"type\":\"text\",\"text\":null}]\nt\n[image, of an unknown type, 5 bytes, not shown]",
            ),
        ),
        (
            json!({"content": [{"type": "resource_link", "uri": "a:1"}, {"type": "resource", "resource": {"uri": "a:1"}}]}),
            Ok(
                "[resource a:1; only its URL was sent]\n[resource a:1, of an unknown type, 0 bytes, not shown]",
            ),
        ),
        (json!({"content": "t"}), Ok("t")),
        (json!({}), Ok("")),
        (
            json!({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}),
            Ok("[image, image/png, 5 bytes, not shown]"),
        ),
        (
            json!({"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}),
            Ok("[audio, audio/wav, 0 bytes, not shown]"),
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "a:1", "text": "hello"}}]}),
            Ok("[resource a:1]\nhello"),
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "a:1", "blob": "aGk="}}]}),
            Ok("[resource a:1, of an unknown type, 2 bytes, not shown]"),
        ),
        (
            json!({"content": [{"type": "resource_link", "uri": "a:1", "name": "b", "description": "c"}]}),
            Ok("[resource a:1: b, c; only its URL was sent]"),
        ),
        (json!({"content": [text(&"é".repeat(80))]}), Ok(&cut)),
        (
            json!({"content": [text("no such file")], "isError": true}),
            Err(("no such file", None)),
        ),
        (
            json!({"content": [], "isError": true}),
            Err(("the tool failed without a message", None)),
        ),
        (
            json!({"output": "lost?"}),
            Err((
                "the MCP server `web` sent an answer that is not a result: {\"output\":\"lost?\"}",
                None,
            )),
        ),
    ];
    let responder = Responder::start().await;
    responder.offer(&["x"]);
    let mut options = options();
    options.output_limit = 120;
    let server = web("web", responder.url("/given"));
    let servers = McpServers::connect(config([server]), options).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    for (result, expected) in table {
        responder.give(&result);
        let returned = super::call(&mut run, "x").await;
        let output = returned.output.as_deref();
        let found = match returned.error.as_deref() {
            Some(error) => Err((error, output)),
            None => Ok(output.unwrap_or_default()),
        };
        assert_eq!(found, expected, "{result}");
    }
}

/// Secrets that a server received are redacted from its texts.
#[tokio::test]
async fn secrets() {
    let odd = Odd::new();
    let mut server = odd
        .server("odd")
        .with("SECRET", "lily rose")
        .with("MODE", "production")
        .with("KEY_FILE", "/home/me/keys")
        .with("FOLDER", "/home/me/folder-1234567890")
        .with("X", "sk-proj-1234567890abc")
        .with("SHORT_KEY", "no")
        .with("DATABASE", "postgres://me:dandelion@host/name");
    if let McpTransport::Stdio { args, .. } = &mut server.transport {
        let more = [
            "--api-key",
            "tulip-rose",
            "--token=garden-rose",
            "production",
        ];
        args.extend(more.map(str::to_owned));
    }
    for (text, expected) in [
        (
            "tulip-rose garden-rose lily rose production /home/me/key /home/me/keys /home/me/folder-1234567890 dandelion",
            "[key] [key] [key] production /home/me/key [key] /home/me/folder-1234567890 [key]",
        ),
        ("no sk-proj-1234567890abc!", "no [key]!"),
        ("sk-proj-1234567890abcsk-proj-1234567890abc", "[key][key]"),
        // The beginning alone.
        ("wrong: sk-proj-12345***", "wrong: [key]***"),
        ("sk-proj begins like it", "sk-proj begins like it"),
    ] {
        odd.say(text);
        let servers = connect([server.clone()]).await;
        let mut run = run(servers.tools_for(&Toolbox::default()));
        super::check(&mut run, "give", Ok(expected)).await;
    }

    let responder = Responder::start().await;
    responder.offer(&["x"]);
    let url = responder.url("/given?api_key=dande%20tulip&q=weather");
    let server = web("web", url)
        .with("Authorization", "Bearer chrysanthemum")
        .with("X-Place", "production");
    let mut run = run(connect([server]).await.tools_for(&Toolbox::default()));
    let text = "Bearer chrysanthemum: chrysanthemum dande tulip dande%20tulip weather production";
    responder.give(&json!({"content": [{"type": "text", "text": text}]}));
    let expected = "[key]: [key] [key] [key] weather production";
    super::check(&mut run, "x", Ok(expected)).await;
}

/// An odd part of a definition is lost, and not the tool.
#[tokio::test]
async fn definitions() {
    let responder = Responder::start().await;
    let server = web("web", responder.url("/given"));
    for (schema, parameters, lost) in [
        (
            json!({"properties": {"a": {"type": "string", "description": null}}, "required": null}),
            &["a"][..],
            Some("/inputSchema/required: it must be a list of property names"),
        ),
        (
            json!({"properties": null}),
            &[],
            Some("/inputSchema/properties: "),
        ),
        (
            json!({"properties": {"a": {"enum": []}}}),
            &["a"],
            Some("/inputSchema/properties/a: no value is valid here"),
        ),
        (
            json!({"properties": {"a": false, "b": {}}}),
            &["b"],
            Some("/inputSchema/properties/a: no value is valid here"),
        ),
        (
            json!({"properties": {"two words": {}, "b": {}}, "required": ["two words", "b"]}),
            &["b"],
            Some(
                "/inputSchema/properties/two words: the name of a parameter must not contain a space or tab",
            ),
        ),
        (json!({"properties": {"b": {}}}), &["b"], None),
    ] {
        let mut schema = schema;
        schema["type"] = "object".into();
        responder.define(&json!([{"name": "x", "description": null, "inputSchema": schema}]));
        let servers = connect([server.clone()]).await;
        let skipped: Vec<_> = servers.skipped().collect();
        assert_eq!(
            skipped.len(),
            usize::from(lost.is_some()),
            "{schema} {skipped:?}"
        );
        for (skipped, lost) in skipped.iter().zip(lost) {
            assert!(
                !skipped.is_dropped && skipped.reason.starts_with(lost),
                "{skipped:?}"
            );
        }
        let tools = servers.tools_for(&Toolbox::default());
        let spec = tools.first().expect("it is used").spec();
        let names: Vec<_> = spec
            .parameters()
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, parameters, "{schema}");
    }
}
