//! Published servers whose results repeat their texts, and `FastMCP` in both languages. `cargo xtask mcp` runs these tests.

use plaincall::{Run, Stop, Toolbox};
use plaincall_agent::mcp::{McpServer, McpServers};
use tokio::process::Command;

use super::reference::{free_port, listening, variable, with_node};
use crate::mcp::{With as _, config, run, stdio, web};

/// Tools with their arguments, and their results.
type Calls<'t> = [(&'t str, &'t str, Result<&'t str, &'t str>)];

/// The results of both servers of `FastMCP`. A return type repeats the text as structured content.
const FASTMCP: [(&str, &str, Result<&str, &str>); 6] = [
    (
        "greet",
        "!!!ARG:name\nyou\n",
        Ok("Hello \"you\"\nand \u{fc}\n"),
    ),
    ("add", "!!!ARG:a\n2\n", Ok("3")),
    ("add", "!!!ARG:a\n2\n!!!ARG:b\n-7\n", Ok("-5")),
    ("place", "", Ok("{\"name\":\"Ulm\",\"people\":7}")),
    ("nothing", "", Ok("")),
    (
        "add",
        "!!!ARG:a\ntwo\n",
        Err("invalid arguments: `a`: expected an integer"),
    ),
];

async fn check(run: &mut Run, calls: &Calls<'_>) {
    for (tool, arguments, expected) in calls {
        let mut turn = run.turn();
        turn.feed(format!(
            "!!!GADGET_START:{tool}\n{arguments}!!!GADGET_END\n"
        ));
        let results = turn.finish(Stop::Natural).await;
        let output = results[0].output.as_deref();
        match (expected, results[0].error.as_deref()) {
            (Ok(text), None) => assert_eq!(output, Some(*text), "{tool} {arguments}"),
            (Err(beginning), Some(error)) if error.starts_with(beginning) => {}
            (_, error) => panic!("{tool} {arguments}: {output:?} {error:?}"),
        }
    }
}

/// Connects to a server and checks calls of it.
async fn calls(server: McpServer, calls: &Calls<'_>) {
    let servers = McpServers::connect(config([server]), with_node()).await;
    assert_eq!(servers.failures(), []);
    assert_eq!(servers.skipped().count(), 0);
    check(&mut run(servers.tools_for(&Toolbox::default())), calls).await;
    servers.close().await;
}

#[tokio::test]
#[ignore = "it needs Node and a network: `cargo xtask mcp` runs it"]
async fn files_and_memory() {
    let program = |name: &str| variable("MCP_EVERYTHING").replace("server-everything", name);
    let folder = tempfile::tempdir().expect("a folder");
    let folder_path = folder.path().canonicalize().expect("a path");
    let folder_path = folder_path.to_str().expect("text");
    let long = "line \"two\"\n".repeat(4_000);
    std::fs::write(folder.path().join("a.txt"), &long).expect("a file");
    let files = program("server-filesystem");
    let server = stdio("files", "node", [files.as_str(), folder_path]);
    let file = format!("!!!ARG:path\n{folder_path}/a.txt\n");
    let path = format!("!!!ARG:path\n{folder_path}\n");
    let read = ("read_text_file", &*file, Ok(&*long));
    let list = ("list_directory", &*path, Ok("[FILE] a.txt"));
    calls(server, &[read, list]).await;

    let server = stdio("memory", "node", [program("server-memory")]);
    let server = server.with("MEMORY_FILE_PATH", format!("{folder_path}/graph.jsonl"));
    let entities =
        "!!!ARG:entities\n[{\"name\": \"a\", \"entityType\": \"b\", \"observations\": []}]\n";
    let created = "[\n  {\n    \"name\": \"a\",\n    \"entityType\": \"b\",\n    \"observations\": []\n  }\n]";
    calls(server, &[("create_entities", entities, Ok(created))]).await;
}

/// The programs of the servers of `FastMCP`: the interpreter and the file.
fn fastmcp() -> [[String; 2]; 2] {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
    let python = [
        variable("MCP_PYTHON"),
        format!("{folder}/fastmcp_server.py"),
    ];
    let node = [
        "node".to_owned(),
        variable("MCP_CLIENTS") + "/fastmcp_server.mjs",
    ];
    [python, node]
}

#[tokio::test]
#[ignore = "it needs Node, Python and a network: `cargo xtask mcp` runs it"]
async fn fastmcp_over_stdio() {
    for [interpreter, file] in fastmcp() {
        calls(stdio("test", &interpreter, [&*file, "stdio"]), &FASTMCP).await;
    }
}

/// A server with sessions knows none after its restart, and one without sessions needs none.
#[tokio::test]
#[ignore = "it needs Node, Python and a network: `cargo xtask mcp` runs it"]
async fn fastmcp_over_http() {
    for [interpreter, file] in fastmcp() {
        for kind in ["http", "stateless"] {
            let port = free_port();
            let start = || {
                let mut command = Command::new(&interpreter);
                command.args([&file, kind, &port.to_string()]);
                listening(command, port)
            };
            let mut serving = start().await;
            let server = web("test", format!("http://127.0.0.1:{port}/mcp"));
            let servers = McpServers::connect(config([server]), with_node()).await;
            assert_eq!(servers.failures(), []);
            let mut run = run(servers.tools_for(&Toolbox::default()));
            check(&mut run, &FASTMCP).await;
            for _ in 0..3 {
                serving.kill().await.expect("it ends");
                serving = start().await;
                check(&mut run, &FASTMCP).await;
            }
            servers.close().await;
            serving.kill().await.expect("it ends");
        }
    }
}

/// The reference server for pages reads some of a server on this machine, if it is allowed to.
#[tokio::test]
#[ignore = "it needs Python and a network: `cargo xtask mcp` runs it"]
async fn fetch() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = "<html><head><title>T</title></head><body><article><h1>Head</h1>\
        <p>Some <b>text</b> of a page with a <a href=\"/x\">link</a>.</p></article></body></html>";
    std::fs::write(folder.path().join("a.html"), page).expect("a file");
    let (python, port) = (variable("MCP_PYTHON"), free_port());
    let mut command = Command::new(&python);
    command.args("-m http.server --bind 127.0.0.1".split(' '));
    command.arg(port.to_string()).current_dir(folder.path());
    let mut serving = listening(command, port).await;
    // Without Node, which it would use to read pages.
    let server = |options: &[&str]| {
        let arguments = [&["-m", "mcp_server_fetch"], options].concat();
        stdio("fetch", &python, arguments).with("PATH", "")
    };
    let url = |name: &str| format!("http://127.0.0.1:{port}/{name}");
    let argument = |name: &str| format!("!!!ARG:url\n{}\n", url(name));
    let page = argument("a.html");
    let refused = format!(
        "Error executing tool fetch: Refused to fetch {}",
        url("robots.txt")
    );
    calls(server(&[]), &[("fetch", &*page, Err(&*refused))]).await;

    let head = format!("Contents of {}:\n", url("a.html"));
    let text = format!("{head}T\n\n# Head\n\nSome text of a page with a link.");
    let (short, missing) = (
        format!("{page}!!!ARG:max_length\n6\n!!!ARG:raw\ntrue\n"),
        argument("b.html"),
    );
    let raw = format!(
        "Content type text/html cannot be simplified to markdown, but here is the raw content:\n{head}<html>\n\n\
        <error>Content truncated. Call the fetch tool with a start_index of 6 to get more content.</error>"
    );
    let failed = format!(
        "Error executing tool fetch: Failed to fetch {} - status code 404",
        url("b.html")
    );
    let allowed = [
        ("fetch", &*page, Ok(&*text)),
        ("fetch", &*short, Ok(&*raw)),
        ("fetch", &*missing, Err(&*failed)),
    ];
    calls(server(&["--allow-private-ips"]), &allowed).await;
    serving.kill().await.expect("it ends");
}
