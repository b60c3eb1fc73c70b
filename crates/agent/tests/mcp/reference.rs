//! The reference server of the protocol, as published.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use plaincall::{Effect, Run, Stop, Toolbox};
use plaincall_agent::mcp::{McpOptions, McpServers};
use plaincall_agent::plaincall;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::mcp::{PATIENCE, config, options, run};

/// Calls, as written after the name of the tool, and the beginnings of their results.
const CALLS: [(&str, &str, Result<&str, &str>); 11] = [
    (
        "echo",
        "!!!ARG:message\nhi <b> \u{1f6e0}\n",
        Ok("Echo: hi <b> \u{1f6e0}"),
    ),
    (
        "get-sum",
        "!!!ARG:a\n2.5\n!!!ARG:b\n-1\n",
        Ok("The sum of 2.5 and -1 is 1.5."),
    ),
    (
        "get-sum",
        "!!!ARG:a\n2.5\n",
        Err("invalid arguments: missing required parameter `b`"),
    ),
    (
        "get-tiny-image",
        "",
        Ok("Here's the image you requested:\n[image, image/png, 4033 bytes, not shown]\n"),
    ),
    (
        "get-structured-content",
        "!!!ARG:location\nNew York\n",
        Ok("{\"temperature\":33,\"conditions\":\"Cloudy\",\"humidity\":82}"),
    ),
    (
        "get-resource-links",
        "!!!ARG:count\n2\n",
        Ok(
            "Here are 2 resource links to resources available in this server:\n[resource demo://resource/dynamic/blob/1: Blob Resource 1, ",
        ),
    ),
    (
        "get-resource-reference",
        "!!!ARG:resourceType\nText\n!!!ARG:resourceId\n1\n",
        Ok(
            "Returning resource reference for Resource 1:\n[resource demo://resource/dynamic/text/1]\nResource 1: ",
        ),
    ),
    (
        "get-annotated-message",
        "!!!ARG:messageType\nerror\n!!!ARG:includeImage\ntrue\n",
        Ok("Error: Operation failed\n[image, image/png, 4033 bytes, not shown]"),
    ),
    (
        "trigger-long-running-operation",
        "!!!ARG:duration\n1\n!!!ARG:steps\n4\n",
        Ok("Long running operation completed. Duration: 1 seconds, Steps: 4."),
    ),
    // It reports its progress, which does not extend its time limit.
    (
        "trigger-long-running-operation",
        "!!!ARG:duration\n100\n!!!ARG:steps\n100\n",
        Err("timed out after 5 s"),
    ),
    (
        "echo",
        "!!!ARG:message\nstill there\n",
        Ok("Echo: still there"),
    ),
];

async fn check(run: &mut Run) {
    for (name, arguments, expected) in CALLS {
        let mut turn = run.turn();
        turn.feed(format!(
            "!!!GADGET_START:{name}\n{arguments}!!!GADGET_END\n"
        ));
        let results = turn.finish(Stop::Natural).await;
        let (output, error) = (results[0].output.as_deref(), results[0].error.as_deref());
        let is_right = match expected {
            Ok(text) => error.is_none() && output.is_some_and(|found| found.starts_with(text)),
            Err(text) => error.is_some_and(|found| found.starts_with(text)),
        };
        assert!(is_right, "{name} {arguments}: {output:?}, {error:?}");
    }
}

/// Starts a server over HTTP at a port, and waits until it listens.
pub(super) async fn listening(mut command: Command, port: u16) -> Child {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let serving = command.kill_on_drop(true).spawn().expect("it starts");
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(since.elapsed() < PATIENCE, "the server does not listen");
        sleep(Duration::from_millis(20)).await;
    }
    serving
}

/// Returns a port that is free.
pub(super) fn free_port() -> u16 {
    let free = |listener: TcpListener| listener.local_addr();
    let address = TcpListener::bind("127.0.0.1:0").and_then(free);
    address.expect("a port").port()
}

/// Returns a variable that `cargo xtask mcp` sets.
pub(super) fn variable(name: &str) -> String {
    #[allow(clippy::disallowed_methods, reason = "it locates the servers")]
    std::env::var(name).expect("`cargo xtask mcp` sets it")
}

/// Returns options with which servers find Node.
pub(super) fn with_node() -> McpOptions {
    let mut options = options();
    let path = ("PATH".into(), variable("PATH").into());
    options.environment.extend([path]);
    options
}

/// `MCP_EVERYTHING` is the path of its program.
#[tokio::test]
#[ignore = "it needs Node and a network: `cargo xtask mcp` runs it"]
async fn the_reference_server() {
    let program = variable("MCP_EVERYTHING");
    let (options, port) = (with_node(), free_port());
    let mut command = Command::new("node");
    command.args([&program, "streamableHttp"]);
    command.env("PORT", port.to_string());
    let mut serving = listening(command, port).await;
    for mut server in [
        super::stdio("stdio", "node", [program.as_str(), "stdio"]),
        super::web("web", format!("http://127.0.0.1:{port}/mcp")),
    ] {
        server.timeout = Some(Duration::from_secs(5));
        let servers = McpServers::connect(config([server]), options.clone()).await;
        assert_eq!(servers.failures(), []);
        assert_eq!(servers.skipped().count(), 0);
        let tools = servers.tools_for(&Toolbox::default());
        for (name, hinted) in [
            ("echo", Effect::Read),
            ("gzip-file-as-resource", Effect::Idempotent),
            ("toggle-simulated-logging", Effect::Write),
        ] {
            let tool = tools.iter().find(|tool| tool.name() == name);
            let spec = tool.expect("it is there").spec();
            assert_eq!(
                (spec.effect, spec.hinted_effect),
                (Effect::Write, Some(hinted))
            );
        }
        check(&mut run(tools)).await;
        servers.close().await;
    }
    serving.kill().await.expect("it ends");
}
