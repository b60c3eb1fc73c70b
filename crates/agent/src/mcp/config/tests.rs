use std::path::Path;
use std::time::Duration;

use plaincall::Effect;

use super::{McpConfig, McpReach};

fn variable(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".to_owned()),
        "KEY" | "SEARCH_KEY" => Some("secret".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> McpConfig {
    let config = McpConfig::read(text, "/etc/mcp.json", variable);
    config.unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// The lines that tell of the mistakes of a file.
fn check(text: &str, expected: &[&str]) {
    let error = McpConfig::read(text, "/etc/mcp.json", variable).expect_err(text);
    let told = error.to_string();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told, expected, "{text}");
}

/// A server as one line, for tests.
fn told(config: &McpConfig) -> Vec<String> {
    let servers = config.servers.iter().map(|server| {
        let reach = match &server.reach {
            McpReach::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                format!("{command} {args:?} {env:?} {:?}", cwd.as_deref())
            }
            McpReach::Http { url, headers } => format!("{url} {headers:?}"),
        };
        format!("{}: {reach}", server.name)
    });
    servers.collect()
}

#[test]
fn forms() {
    let expected = [
        r#"a: x ["1", "/home/me/b"] [("K", "secret"), ("PORT", "80")] Some("/etc/sub")"#,
        r#"b: https://b.example/mcp [("Authorization", "Bearer secret")]"#,
    ];
    for text in [
        r#"{"mcpServers": {"a": {"command": "x", "args": ["1", "${HOME}/b"], "env": {"K": "${KEY}", "PORT": 80}, "cwd": "sub"},
            "b": {"url": "https://b.example/mcp", "headers": {"Authorization": "Bearer ${env:KEY}"}}}}"#,
        "\u{feff} // servers\n{\"inputs\": [], \"servers\": {\"a\": {\"type\": \"stdio\", /* { */ \"command\": \"x\", \"args\": [\"1\", \"${HOME}/b\",],\n\"env\": {\"K\": \"${KEY}\", \"PORT\": 80,}, \"cwd\": \"sub\"}, \"b\": {\"type\": \"streamable-http\", \"serverUrl\": \"https://b.example/mcp\", \"headers\": {\"Authorization\": \"Bearer secret\"}},}, }",
        "other = 1\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\"1\", \"${HOME}/b\"]\nenv = { K = \"${KEY}\", PORT = 80 }\ncwd = \"sub\"\n[mcp_servers.b]\nurl = \"https://b.example/mcp\"\nhttp_headers.Authorization = \"Bearer ${KEY}\"\n",
        "mcp.servers.a = { command = \"x\", args = [\"1\", \"${HOME}/b\"], env = { K = \"${KEY}\", PORT = 80 }, cwd = \"sub\" }\n[mcp.servers.b]\nurl = \"https://b.example/mcp\"\nheaders = { Authorization = \"Bearer ${KEY}\" }",
    ] {
        assert_eq!(told(&read(text)), expected, "{text}");
    }
}

#[test]
fn what_is_said_of_tools() {
    let config = read(
        r#"{"mcpServers": {
            "a": {"command": "./x", "effects": {"get_*": "read", "get_all": "write", "put": "hinted"},
                  "includeTools": ["get_*", "put"], "disabledTools": ["get_b"], "timeout": "2m", "autoApprove": ["put"]},
            "b": {"command": "${NONE}", "disabled": true, "effects": "hinted"},
            "c": {"command": "x", "enabled": false}}}"#,
    );
    let [a, b, c] = config.servers.as_slice() else {
        panic!("{config:?}")
    };
    let McpReach::Stdio { command, .. } = &a.reach else {
        panic!("{a:?}")
    };
    assert_eq!(Path::new(command), Path::new("/etc/./x"));
    assert_eq!(a.timeout, Some(Duration::from_mins(2)));
    assert!(b.disabled && c.disabled);
    let takes = ["get_a", "get_b", "put", "drop"].map(|tool| a.takes(tool));
    assert_eq!(takes, [true, false, true, false]);
    assert!(c.takes("drop"));
    for (server, tool, hinted, expected) in [
        (a, "get_all", None, Effect::Read),
        (a, "put", Some(Effect::Idempotent), Effect::Idempotent),
        (a, "put", None, Effect::Write),
        (a, "drop", Some(Effect::Read), Effect::Write),
        (b, "any/thing", Some(Effect::Read), Effect::Read),
        (c, "get", Some(Effect::Read), Effect::Write),
    ] {
        assert_eq!(server.effect_of(tool, hinted), expected, "{tool}");
    }
    assert_eq!(config.passed_over.len(), 1);
    // What may be a secret is not shown.
    assert!(
        !format!(
            "{:?}",
            read(r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${KEY}"}}}}"#)
        )
        .contains("secret")
    );
}

#[test]
fn mistakes() {
    let one = |server: &str| format!("{{\"mcpServers\": {{\"a\": {server}}}}}");
    let check_one = |server: &str, expected: &[&str]| check(&one(server), expected);
    check("{", &["line 1, column 1: the file ends inside an object"]);
    check(
        "{\"mcpServers\": {},\n \"mcpServers\": {}}",
        &["line 2, column 2: `mcpServers` stands here for the second time"],
    );
    check(
        "[mcpServers.a]\ncommand = x",
        &["line 2, column 11: string values must be quoted, expected literal string"],
    );
    check(
        "{}",
        &["line 1, column 1: the file names no MCP servers: it has no key `mcpServers`"],
    );
    check(
        "{\"mcpServer\": {}}",
        &["line 1, column 2: there is no key `mcpServer`; did you mean `mcpServers`?"],
    );
    check(
        "{\"mcpServers\": [1]}",
        &[
            "line 1, column 16: `mcpServers` is a list; it must be a table with a table for each server",
        ],
    );
    check_one(
        "5",
        &["line 1, column 22: `a` is the number 5; it must be a table, with `command` or `url`"],
    );
    check_one(
        "{}",
        &[
            "line 1, column 17: the server `a` has neither `command`, a program that is started, nor `url`, where it runs already",
        ],
    );
    check_one(
        "{\"command\": \"x\", \"url\": \"http://x\"}",
        &[
            "line 1, column 39: a server has `command` or `url`, not both: it is started, or it runs already",
        ],
    );
    check_one(
        "{\"command\": \"x\", \"type\": \"http\"}",
        &["line 1, column 23: `command` does not go with the server's `type`"],
    );
    check_one(
        "{\"url\": \"http://x\", \"args\": []}",
        &[
            "line 1, column 42: a server at an address has no `args`: that is for one that is started",
        ],
    );
    check_one(
        "{\"url\": \"x\"}",
        &["line 1, column 30: this is no address: relative URL without a base"],
    );
    check_one(
        "{\"url\": \"ftp://x\"}",
        &["line 1, column 30: an address begins with `http://` or `https://`"],
    );
    check_one(
        "{\"command\": \"x\", \"args\": \"y\", \"env\": {\"A=\": \"1\", \"B\": []}}",
        &[
            "line 1, column 47: `args` is the text `y`; it must be a list of texts",
            "line 1, column 60: `A=` is no name of a variable",
            "line 1, column 76: `B` is a list; it must be a text",
        ],
    );
    check_one(
        "{\"command\": \"${NONE}/x\"}",
        &[
            "line 1, column 34: the variable `NONE` is not set; set it, or write `${NONE:-what else}`",
        ],
    );
    check_one(
        "{\"command\": \"x\", \"effects\": {\"a\": \"reads\"}}",
        &[
            "line 1, column 56: the text `reads` is no effect; write `read` (it changes nothing), `idempotent` (twice is the same as once), `write`, or `hinted` (what the server says of its tools is taken for true); did you mean `read`?",
        ],
    );
    check_one(
        "{\"command\": \"x\", \"timeout\": 0}",
        &[
            "line 1, column 50: `timeout` is the number 0; it must be a time above 0: seconds, such as 10, or a number with its unit, such as \"500ms\", \"10s\", \"2m\"",
        ],
    );
    check_one(
        "{\"command\": \"x\", \"tools\": [], \"includeTools\": []}",
        &["line 1, column 52: `tools` says the same already"],
    );
    check_one(
        "{\"url\": \"http://x\", \"type\": \"sse\"}",
        &[
            "line 1, column 50: the transport `sse` of MCP's first version is not spoken here; most servers that offer it offer streamable HTTP too, often at an address that ends with `/mcp`: name that, with `type` `http`",
        ],
    );
}

/// What the document shows can be read.
#[test]
fn the_document() {
    let document = include_str!("../../../../../docs/mcp.md");
    let mut count = 0;
    for block in document.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        if language == "json" || language == "toml" {
            assert!(!read(text).servers.is_empty());
            count += 1;
        }
    }
    assert_eq!(count, 4);
}

/// 1 MiB of one thing: to look at all that came before for each of them took minutes.
#[test]
fn large_files_are_read_in_linear_time() {
    let filled = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for number in 0.. {
            text += &line(number);
            if text.len() > 1 << 20 {
                break;
            }
        }
        text
    };
    let variables = filled(&|number| format!("\"V{number}\": \"\",\n"));
    let unknown = filled(&|number| format!("k{number} = 1\n"));
    for text in [
        format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"env\": {{{variables}}}}}}}}}"),
        format!("[mcp_servers.a]\ncommand = \"x\"\n{unknown}"),
    ] {
        let begun = std::time::Instant::now();
        let _ = McpConfig::read(&text, std::path::Path::new("/mcp"), |_| None);
        let took = begun.elapsed();
        assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    }
}
