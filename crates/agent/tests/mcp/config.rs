//! Files with MCP servers: their settings and their errors.

use plaincall_agent::mcp::{McpConfig, McpTransport};
use rustix::time::{ClockId, clock_gettime};

/// A table of mistakes: a file, a line of dashes, its problems, a line of equals signs.
const MISTAKES: &str = include_str!("mistakes.txt");

fn variable(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".to_owned()),
        "KEY" | "SEARCH_KEY" => Some("secret".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> McpConfig {
    McpConfig::read(text, "/etc/mcp.json", variable).expect(text)
}

/// A server as one line, for tests.
fn described(config: &McpConfig) -> Vec<String> {
    let servers = config.servers.iter().map(|server| {
        let reach = match &server.transport {
            McpTransport::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                format!("{command} {args:?} {env:?} {:?}", cwd.as_deref())
            }
            McpTransport::Http { url, headers } => format!("{url} {headers:?}"),
            other => format!("{other:?}"),
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
        assert_eq!(described(&read(text)), expected, "{text}");
    }
}

#[test]
fn mistakes() {
    let mut wrong = Vec::new();
    for case in MISTAKES.trim_end().split("\n====\n") {
        let (file, expected) = case.split_once("\n----\n").expect("a case has two parts");
        let error = McpConfig::read(file, "/etc/mcp.json", variable).expect_err(file);
        let lines: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
        let lines = lines.join("\n");
        wrong.extend((lines != expected).then(|| format!("{file}\n----\n{lines}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n====\n"));
}

/// Possible secrets are not shown.
#[test]
fn secrets() {
    let config = read(
        r#"{"mcpServers": {"a": {"command": "./x", "env": {"K": "${KEY}"}, "timeout": "2m"}}}"#,
    );
    let [server] = config.servers.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!(server.timeout, Some(std::time::Duration::from_mins(2)));
    assert!(
        matches!(&server.transport, McpTransport::Stdio { command, .. } if command == "/etc/./x")
    );
    assert!(!format!("{config:?}").contains("secret"));
}

/// The examples of the document are valid.
#[test]
fn the_document() {
    let document = include_str!("../../../../docs/mcp.md");
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

/// 1 MiB of one construct. Scanning all previous ones for each would take minutes.
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
        // Other work on the machine does not count.
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let _ = McpConfig::read(&text, std::path::Path::new("/mcp"), |_| None);
        let took = clock_gettime(ClockId::ThreadCPUTime) - start;
        assert!(took.tv_sec < 20, "{took:?}");
    }
}
