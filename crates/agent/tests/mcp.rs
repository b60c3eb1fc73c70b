//! MCP servers, as real processes and on real sockets: unusual ones, and ones that end.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod config;
mod http;
mod names_and_texts;
mod offer;
mod published;
mod reference;
mod reported;

use std::path::Path;
use std::time::Duration;

use plaincall::{AllowAll, CallResult, Effect, Run, RunEvent, Status, Stop, Tool, Toolbox};
use plaincall_agent::mcp::{McpConfig, McpEffect, McpOptions, McpServer, McpServers, McpTransport};
use plaincall_agent::{Agent, AgentEvent, Scripted, plaincall};
use tokio::time::{Instant, sleep};

use http::Responder;

/// The time limit for each wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory of a test, and an unusual server that writes each message it receives to a file there.
struct Odd {
    directory: tempfile::TempDir,
}

impl Odd {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("notes"), "").expect("a file");
        Self { directory }
    }

    fn server(&self, name: &str) -> McpServer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.sh");
        stdio(name, "/bin/sh", [script]).with("NOTES", self.notes().display().to_string())
    }

    /// Sets the result of the tool `give`.
    fn say(&self, text: &str) {
        std::fs::write(self.directory.path().join("notes.text"), text).expect("a file");
    }

    fn notes(&self) -> std::path::PathBuf {
        self.directory.path().join("notes")
    }

    /// Waits until the server has recorded such a text.
    async fn receives(&self, text: &str) {
        let since = Instant::now();
        loop {
            let notes = std::fs::read_to_string(self.notes()).expect("the notes");
            if notes.contains(text) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "no {text} in {notes}");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

fn stdio<A: Into<String>>(
    name: &str,
    command: &str,
    args: impl IntoIterator<Item = A>,
) -> McpServer {
    let reach = McpTransport::Stdio {
        command: command.to_owned(),
        args: args.into_iter().map(Into::into).collect(),
        env: Vec::new(),
        cwd: None,
    };
    McpServer::new(name, reach)
}

fn web(name: &str, url: impl Into<String>) -> McpServer {
    let (url, headers) = (url.into(), Vec::new());
    McpServer::new(name, McpTransport::Http { url, headers })
}

trait With {
    /// Sets a variable of the server's environment, or a header of each request to it.
    fn with(self, name: &str, value: impl Into<String>) -> Self;
}

impl With for McpServer {
    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        match &mut self.transport {
            McpTransport::Stdio { env: pairs, .. } | McpTransport::Http { headers: pairs, .. } => {
                pairs.push((name.to_owned(), value.into()));
            }
            other => panic!("{other:?}"),
        }
        self
    }
}

fn config(servers: impl IntoIterator<Item = McpServer>) -> McpConfig {
    let mut config = McpConfig::default();
    config.servers.extend(servers);
    config
}

fn options() -> McpOptions {
    let mut options = McpOptions::default();
    options.environment = [("PATH", "/usr/bin:/bin"), ("SECRET", "not inherited")]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    options
}

async fn connect(servers: impl IntoIterator<Item = McpServer>) -> McpServers {
    let servers = McpServers::connect(config(servers), options()).await;
    assert_eq!(servers.failures(), []);
    servers
}

fn run(tools: Vec<Tool>) -> Run {
    let toolbox = Toolbox::new(tools).expect("the names differ");
    Run::builder(toolbox).gate(AllowAll).build().expect("a run")
}

async fn call(run: &mut Run, name: &str) -> CallResult {
    let mut turn = run.turn();
    turn.feed(format!(
        "!!!GADGET_START:{name}\n!!!ARG:a\n42\n!!!GADGET_END\n"
    ));
    let results = turn.finish(Stop::Natural).await;
    results[0].clone()
}

/// Calls a tool and checks the result.
async fn check(run: &mut Run, name: &str, expected: Result<&str, &str>) {
    let result = call(run, name).await;
    let outcome = match result.error.as_deref() {
        Some(error) => Err(error),
        None => Ok(result.output.as_deref().unwrap_or_default()),
    };
    assert_eq!(outcome, expected, "{name}");
}

/// Returns whether a process runs. A zombie does not.
fn is_running(id: &str) -> bool {
    let state = std::fs::read_to_string(Path::new("/proc").join(id.trim()).join("status"));
    state.is_ok_and(|state| !state.contains("State:\tZ"))
}

async fn is_gone(id: &str) {
    let since = Instant::now();
    while is_running(id) {
        assert!(since.elapsed() < PATIENCE, "process {id} is still there");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn tools_of_a_server() {
    let odd = Odd::new();
    let mut server = odd.server("odd");
    server.effects = vec![
        ("echo".into(), McpEffect::Hinted),
        ("hang".into(), McpEffect::Read),
    ];
    let servers = connect([server]).await;
    let own = Toolbox::new([Tool::new("fail", |(): (), _| async { Ok(String::new()) })]);
    let tools = servers.tools_for(&own.expect("one tool"));
    let effects: Vec<_> = tools
        .iter()
        .map(|tool| (tool.name(), tool.spec().effect, tool.spec().hinted_effect))
        .collect();
    let writes = |name| (name, Effect::Write, None);
    assert_eq!(
        effects,
        [
            ("who", Effect::Write, Some(Effect::Read)),
            ("echo", Effect::Idempotent, Some(Effect::Idempotent)),
            writes("odd_two_words"),
            writes("die"),
            ("hang", Effect::Read, None),
            writes("cut"),
            writes("mess"),
            writes("half"),
            writes("odd_fail"),
            writes("long"),
            writes("loud"),
            writes("busy"),
            writes("ask"),
            writes("change"),
            writes("child"),
            writes("give"),
        ]
    );
    let skipped: Vec<_> = servers.skipped().collect();
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0].tool, "wrong");
    servers.close().await;
    odd.receives("closed").await;
}

/// The configuration of the user decides which tools are included, and their effects.
#[tokio::test]
async fn tools_that_a_file_chooses() {
    let odd = Odd::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.sh");
    let file = format!(
        r#"{{"mcpServers": {{"odd": {{"command": "/bin/sh", "args": ["{script}"], "env": {{"NOTES": "{}"}},
            "includeTools": ["who", "e*", "ha*"], "disabledTools": ["half"], "autoApprove": ["die"],
            "effects": {{"e*": "hinted", "*": "read", "who": "write"}}}},
            "off": {{"command": "${{NONE}}", "disabled": true, "effects": "hinted"}},
            "also_off": {{"command": "x", "enabled": false}}}}}}"#,
        odd.notes().display()
    );
    let config = McpConfig::read(&file, "/mcp.json", |_| None).expect("it can be read");
    assert!(config.servers[1].disabled && config.servers[2].disabled);
    let servers = McpServers::connect(config, options()).await;
    assert_eq!(servers.failures(), []);
    let tools = servers.tools_for(&Toolbox::default());
    let effects: Vec<_> = tools
        .iter()
        .map(|tool| (tool.name(), tool.spec().effect))
        .collect();
    let expected = [
        ("odd_who", Effect::Read),
        ("odd_echo", Effect::Idempotent),
        ("odd_hang", Effect::Read),
    ];
    assert_eq!(effects, expected);
}

#[tokio::test]
async fn calls() {
    let odd = Odd::new();
    let servers = connect([odd.server("odd")]).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    check(&mut run, "echo", Ok("{\"a\":42}")).await;
    check(&mut run, "odd_two_words", Ok("it has a blank")).await;
    check(&mut run, "fail", Err("no such file")).await;
    check(&mut run, "loud", Ok("it was loud")).await;
    check(&mut run, "busy", Ok("it was busy")).await;
    check(&mut run, "ask", Ok("it has asked")).await;
    odd.receives(r#""id":"sampling/createMessage","error":{"code":-32601,"message":"sampling/createMessage"}"#)
        .await;
    odd.receives(
        r#""id":"roots/list","error":{"code":-32601,"message":"roots are not supported"}"#,
    )
    .await;
    odd.receives(r#""id":"elicitation/create","result":{"action":"decline"}"#)
        .await;
    check(&mut run, "change", Err("the MCP server `odd` rejected the call: Unknown tool: change; it reports that its tools have changed, and this conversation still uses the old ones"))
        .await;
}

/// An invalid answer ends its call at once, and no other call.
#[tokio::test]
async fn answers_that_cannot_be_read() {
    let odd = Odd::new();
    let servers = connect([odd.server("odd")]).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    let begun = Instant::now();
    let error = call(&mut run, "cut").await.error.expect("it fails");
    let expected = "the MCP server `odd` sent an invalid answer; the call may have run: its answer is invalid: ";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(servers.notes().count(), 0);
    check(&mut run, "mess", Ok("it was logged")).await;
    let notes: Vec<_> = servers.notes().map(|note| note.reason).collect();
    let note = "prints lines that answer nothing, which are skipped; the first: {\"jsonrpc\":\"2.0\",\"res";
    assert_eq!(notes, [note]);
    assert!(
        begun.elapsed() < PATIENCE,
        "it waited for its time to be over"
    );
    check(&mut run, "half", Ok("half \u{fffd}")).await;
    check(&mut run, "odd_two_words", Ok("it has a blank")).await;
}

#[tokio::test]
async fn a_server_that_dies_is_started_once_more() {
    let odd = Odd::new();
    let servers = connect([odd.server("odd")]).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    let first = call(&mut run, "who").await.output.expect("a process");
    check(&mut run, "die", Err("the MCP server `odd` ended with exit status 7 during this call; its stderr ends: out of paper; the call may have run and is not repeated; it is restarted for the next call"))
        .await;
    let second = call(&mut run, "who").await.output.expect("a process");
    assert_ne!(first, second);
    check(&mut run, "long", Err("the MCP server `odd` wrote a message of more than 16777216 bytes during this call; the call may have run and is not repeated; it was already restarted once and is not restarted again"))
        .await;
    check(&mut run, "who", Err("the MCP server `odd` wrote a message of more than 16777216 bytes; its tools are unavailable"))
        .await;
    is_gone(&second).await;
    let (tools, end) = (16, "wrote a message of more than 16777216 bytes".to_owned());
    assert_eq!(servers.states().await, [("odd", tools, Some(end))]);
    // A person may restart it.
    servers.restart("odd").await.expect("it starts");
    assert_eq!(servers.states().await, [("odd", tools, None)]);
    assert!(call(&mut run, "who").await.output.is_some());
    let unknown = Err("unknown MCP server `x`".to_owned());
    assert_eq!(servers.restart("x").await, unknown);
}

#[tokio::test]
async fn a_server_that_died_unseen_is_started_for_the_next_call() {
    let odd = Odd::new();
    let servers = connect([odd.server("odd")]).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    let first = call(&mut run, "who").await.output.expect("a process");
    let id = rustix::process::Pid::from_raw(first.trim().parse().expect("a number"));
    rustix::process::kill_process(id.expect("a process"), rustix::process::Signal::KILL)
        .expect("it is ours");
    // The connection detects it a moment later; a call in between fails with that reason and is not repeated.
    let second = loop {
        match call(&mut run, "who").await.output {
            Some(second) => break second,
            None => sleep(Duration::from_millis(5)).await,
        }
    };
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_call_without_a_waiting_run_is_cancelled() {
    let odd = Odd::new();
    let mut server = odd.server("odd");
    server.timeout = Some(Duration::from_millis(20));
    let servers = connect([server]).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    check(&mut run, "hang", Err("timed out after 20 ms")).await;
    odd.receives(r#""method":"notifications/cancelled""#).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_server_that_is_dropped() {
    let odd = Odd::new();
    let servers = connect([odd.server("odd")]).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    let leader = call(&mut run, "who").await.output.expect("a process");
    let child = call(&mut run, "child").await.output.expect("a process");
    drop(servers);
    // Its tools hold it.
    assert!(is_running(&leader) && is_running(&child));
    run.close().await.expect("it ends");
    is_gone(&leader).await;
    is_gone(&child).await;
}

#[tokio::test]
async fn servers_that_cannot_be_reached() {
    let odd = Odd::new();
    let broken = [
        (
            stdio("missing", "no-such-program", ["x"]),
            "could not be started: the program `no-such-program` was not found; check that it is installed and in PATH",
        ),
        (
            stdio(
                "short",
                "sh",
                [
                    "-c",
                    "printf '%s\\nnote: wrong \\033[1m\\n%s\\n' \"$SECRET\" \"$KEY\" >&2; exit 3",
                ],
            )
            .with("KEY", "very-secret"),
            "ended with exit status 3 before it answered; its stderr ends: note: wrong [1m [key]",
        ),
        (
            stdio("silent", "sleep", ["1000"]),
            "did not answer within 0.5 s",
        ),
        (
            stdio("chatty", "yes", ["hello"]),
            "did not answer within 0.5 s",
        ),
        (
            web("absent", "http://127.0.0.1:1/mcp?key=secret"),
            "cannot be reached: connection refused",
        ),
    ];
    let reasons = |servers: &McpServers| -> Vec<String> {
        let failures = servers.failures().iter();
        failures.map(|failure| failure.reason.clone()).collect()
    };
    let mut hasty = options();
    hasty.connect_timeout = Duration::from_millis(500);
    let all = config(broken.iter().map(|(server, _)| server.clone()));
    let servers = McpServers::connect(all, hasty).await;
    let expected: Vec<_> = broken.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons(&servers), expected);

    // The others work.
    let missing = &broken[0];
    let mut off = stdio("off", "no-such-program", ["x"]);
    off.disabled = true;
    let all = config([missing.0.clone(), odd.server("odd"), off]);
    let servers = McpServers::connect(all, options()).await;
    assert_eq!(reasons(&servers), [missing.1]);
    let mut run = run(servers.tools_for(&Toolbox::default()));
    check(&mut run, "odd_loud", Ok("it was loud")).await;
}

#[tokio::test]
async fn over_http() {
    let responder = Responder::start().await;
    let server =
        |path: &str| web("web", responder.url(path)).with("Authorization", "Bearer very-secret");
    let servers = connect([server("/mcp")]).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    check(&mut run, "json", Ok("[key] called json")).await;
    check(&mut run, "events", Ok("[key] called events")).await;
    check(&mut run, "moved", Ok("[key] called moved")).await;
    check(
        &mut run,
        "busy",
        Err("the MCP server `web` returned status 503"),
    )
    .await;
    // A call is made once, and its key goes nowhere else.
    // A call that meets an expired session is repeated once, in a new one.
    let gone = Err("the MCP server `web` ended the session, and also the new one");
    check(&mut run, "gone", gone).await;
    assert_eq!(responder.calls("gone"), 2);
    for (name, expected) in [
        ("expired", Ok("[key] called expired")),
        ("stated", Ok("[key] called stated")),
        (
            "refused",
            Err("the MCP server `web` rejected the call: not now"),
        ),
        // The answer ends early, and the server is still there.
        (
            "ended",
            Err(
                "the MCP server `web` closed the connection during this call; the call may have run and is not repeated",
            ),
        ),
        (
            "ended",
            Err(
                "the MCP server `web` closed the connection during this call; the call may have run and is not repeated",
            ),
        ),
        (
            "ended",
            Err(
                "the MCP server `web` closed the connection during this call; the call may have run and is not repeated",
            ),
        ),
        ("noisy", Ok("[key] called noisy")),
    ] {
        check(&mut run, name, expected).await;
    }
    let notes: Vec<_> = servers.notes().map(|note| note.to_string()).collect();
    let note = "the MCP server `web` prints lines that answer nothing, which are skipped; the first: {\"level\":30}";
    assert_eq!(notes, [note]);
    let other = Responder::start().await;
    responder.lead_to(&other);
    let away = Err("the MCP server `web` sent an unexpected answer: HTTP 307 Temporary Redirect: ");
    check(&mut run, "away", away).await;
    assert_eq!(other.calls("away"), 0);
    let quoted = Err("the MCP server `web` rejected the call: wrong key [key], [key]***");
    check(&mut run, "quote", quoted).await;
    // Invalid data fails its call, although the stream continues.
    let since = Instant::now();
    let odd = Err(
        "the MCP server `web` sent an invalid answer; the call may have run: its answer is invalid: EOF while parsing a list at line 1 column 46",
    );
    check(&mut run, "odd", odd).await;
    check(&mut run, "half", Ok("[key] \u{fffd}")).await;
    assert!(since.elapsed() < PATIENCE);
    check(&mut run, "cut", Err("the MCP server `web` closed the connection: connection closed before message completed")).await;

    for (path, reason) in [
        (
            "/unauthorized",
            "requires authentication (status 401); set `Authorization` in `headers`",
        ),
        (
            "/page",
            "returned neither JSON nor an event stream; is this the URL of its MCP endpoint?",
        ),
    ] {
        let servers = McpServers::connect(config([server(path)]), options()).await;
        assert_eq!(servers.failures()[0].reason, reason, "{path}");
    }
}

/// A dropped call does not cancel the restart for others, and a server that hangs is not started for each call.
#[tokio::test]
async fn a_server_that_hangs_is_started_once_more() {
    let starts = |odd: &Odd| {
        let notes = std::fs::read_to_string(odd.notes()).expect("the notes");
        notes.matches("started").count()
    };
    // Concurrent calls wait for one restart.
    let odd = Odd::new();
    let servers = connect([odd.server("odd")]).await;
    let mut all = run(servers.tools_for(&Toolbox::default()));
    call(&mut all, "die").await;
    let mut turn = all.turn();
    turn.feed("!!!GADGET_START:who\n!!!GADGET_END\n!!!GADGET_START:who\n!!!GADGET_END\n");
    let results = turn.finish(Stop::Natural).await;
    assert!(results[0].output.is_some(), "{results:?}");
    assert_eq!(results[0].output, results[1].output);
    assert_eq!(starts(&odd), 2);

    let odd = Odd::new();
    let mut server = odd.server("odd");
    server.timeout = Some(Duration::from_millis(100));
    let mut hasty = options();
    hasty.connect_timeout = Duration::from_millis(1500);
    let servers = McpServers::connect(config([server]), hasty).await;
    let mut run = run(servers.tools_for(&Toolbox::default()));
    call(&mut run, "die").await;
    std::fs::write(odd.directory.path().join("notes.hang"), "").expect("a file");
    let over = "the MCP server `odd` did not answer within 1.5 s; its tools are unavailable";
    let since = Instant::now();
    while call(&mut run, "who").await.error.as_deref() != Some(over) {
        assert!(since.elapsed() < PATIENCE);
    }
    assert_eq!(starts(&odd), 2);
}

#[tokio::test]
async fn a_server_that_offers_too_much() {
    let responder = Responder::start().await;
    for (path, taken, skipped) in [
        (
            "/pages",
            100,
            &["the server's tool list has more than 100 pages"][..],
        ),
        (
            "/again",
            2,
            &["the server's tool list repeats after its last page"],
        ),
        ("/many", 1000, &["the server has more than 1000 tools"]),
        (
            "/giant",
            1,
            &["its definition has 40064 bytes; at most 32768 are allowed"],
        ),
        (
            "/much",
            8,
            &["the server's definitions exceed 262144 bytes; select tools with `tools`"; 2],
        ),
    ] {
        let servers = connect([web("web", responder.url(path))]).await;
        assert_eq!(
            servers.tools_for(&Toolbox::default()).len(),
            taken,
            "{path}"
        );
        let reasons: Vec<_> = servers.skipped().map(|tool| tool.reason.as_str()).collect();
        assert_eq!(reasons, skipped, "{path}");
    }
    let servers = connect([web("web", responder.url("/wrong"))]).await;
    let skipped: Vec<_> = servers.skipped().collect();
    assert_eq!(skipped.len(), 101);
    assert_eq!(
        skipped[100].reason,
        "200 more tools of the server are skipped"
    );
}

#[tokio::test]
async fn an_agent_with_servers() {
    // Without a gate, no tool that writes may run, and tools of servers count as writing unless the user sets another
    // effect.
    let odd = Odd::new();
    let mut server = odd.server("odd");
    server.effects = vec![("echo".into(), McpEffect::Read)];
    let call = |name: &str| format!("!!!GADGET_START:{name}\n!!!ARG:a\n42\n!!!GADGET_END\n");
    let model = Scripted::new([call("echo") + &call("who"), "Done.".to_owned()]);
    let agent = Agent::builder(model).mcp(connect([server]).await).build();
    let agent = agent.expect("it can be built");
    let mut talk = agent.conversation().expect("it can begin");
    let mut asking = talk.stream("Who are you?");
    let mut ends = Vec::new();
    while let Some(event) = asking.next().await {
        if let AgentEvent::Run(event) = event
            && let RunEvent::Result(result) = *event
        {
            ends.push((result.name.to_string(), result.status));
        }
    }
    assert_eq!(asking.answer().await.expect("an answer").text, "Done.");
    ends.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [("echo", Status::Ok), ("who", Status::Rejected)];
    assert_eq!(
        ends,
        expected.map(|(name, status)| (name.to_owned(), status))
    );
}
