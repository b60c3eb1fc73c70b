//! Servers that behave as public reports quote them: `reported.txt`.

use plaincall::Toolbox;
use serde_json::json;

use super::{Responder, With as _, call, connect, run, stdio, web};

const FACTS: &str = include_str!("reported.txt");

#[tokio::test]
async fn reported_servers() {
    for fact in FACTS.split("\n== ").skip(1) {
        let (title, fact) = fact.split_once('\n').expect("a title");
        let of = |key: &'static str| {
            let lines = fact.lines().filter_map(|line| line.split_once(' '));
            let lines = lines.filter(move |(name, _)| *name == key);
            lines.map(|(_, text)| text.replace("\\n", "\n").replace("\\e", "\u{1b}"))
        };
        let responder = Responder::start().await;
        responder.offer(&["t"]);
        responder.give(&json!({"content": [{"type": "text", "text": "fine"}]}));
        for line in of("http") {
            let mut parts = line.splitn(3, "; ").map(|part| part.trim_end_matches(';'));
            let mut part = || parts.next().unwrap_or_default();
            responder.respond([part(), part(), part()]);
        }
        let server = if of("http").next().is_some() {
            web("s", responder.url("/given"))
        } else {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/reported.sh");
            let lines = |key| of(key).map(|line| line + "\n").collect::<String>();
            let server = stdio("s", "/bin/sh", [script]).with("START", lines("start"));
            server.with("DURING", lines("during"))
        };
        let servers = connect([server]).await;
        let mut run = run(servers.tools_for(&Toolbox::default()));
        let results = [call(&mut run, "t").await, call(&mut run, "t").await];
        let [first, second] = results.map(|result| match result.error {
            Some(error) => format!("error {}", error.trim_start_matches("the MCP server `s` ")),
            None => format!("output {}", result.output.unwrap_or_default()),
        });
        let expected = fact
            .lines()
            .find(|line| line.starts_with("output ") || line.starts_with("error "));
        assert_eq!(Some(&*first), expected, "{title}");
        assert_eq!(second, "output fine", "the next call after {title}");
        let notes: Vec<String> = servers.notes().map(|note| note.reason).collect();
        let expected = of("note").map(|text| {
            format!("prints lines that answer nothing, which are skipped; the first: {text}")
        });
        assert_eq!(notes, expected.collect::<Vec<_>>(), "{title}");
        servers.close().await;
    }
}
