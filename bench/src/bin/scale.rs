//! Measures what grows with what: `cargo run --release -p plaincall-bench --bin scale -- [PLAINCALL]`.
//!
//! Prints one line for each of parser, run, agent and table, and one for the gateway if the program `plaincall` is given:
//! costs for sizes over three orders of magnitude. `bench/scale.md` explains them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plaincall::reply::Unclosed;
use plaincall::reply::extract::Extractor;
use plaincall::syntax::{Dialect, Parser};
use plaincall::{BoxError, Effect, Run, Stop, Tool, Toolbox};
use plaincall_agent::model::{Scripted, ScriptedReply};
use plaincall_agent::{Agent, AgentLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The factors of the smallest size.
const FACTORS: [usize; 4] = [1, 10, 100, 1_000];
/// The number of samples; the best counts, because other load only adds time.
const TIMES: usize = 3;
/// The number of requests to the gateway.
const REQUESTS: usize = 1_000;
const SENTENCE: &str = "The ship enters the harbour, and the answer follows in the next line. ";
/// A request with a short conversation and one tool.
const REQUEST: &str = r#"{"model":"any","messages":[{"role":"user","content":"How is the weather in Paris?"}],"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]}"#;

fn main() -> ExitCode {
    let gateway = std::env::args().nth(1);
    match measure(gateway.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scale: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(gateway: Option<&str>) -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    print("parser: ns per byte, replies of 10 kB to 10 MB", |factor| {
        let reply = reply(10_000 * factor);
        let time = best(|| Ok(parse(&reply)))?;
        Ok(each(time, reply.len(), 1e9))
    })?;
    print(
        "run: µs per call, replies of 10 to 10,000 calls",
        |factor| {
            let time = best(|| runtime.block_on(run(10 * factor)))?;
            Ok(each(time, 10 * factor, 1e6))
        },
    )?;
    let before = memory(std::process::id(), "VmRSS:")?;
    runtime.block_on(run(100_000))?;
    let grown = memory(std::process::id(), "VmHWM:")?.saturating_sub(before);
    println!("run: memory with 100,000 calls: {grown} kB more");
    print(
        "agent: µs per reply with one call, questions of 1 to 1,000 replies",
        |factor| {
            let time = best(|| runtime.block_on(ask(factor)))?;
            Ok(each(time, factor, 1e6))
        },
    )?;
    print(
        "table: µs per text of 300 bytes, 1,000 to 1,000,000 texts",
        |factor| {
            let time = best(|| extract(1_000 * factor))?;
            Ok(each(time, 1_000 * factor, 1e6))
        },
    )?;
    if let Some(program) = gateway {
        print(
            "gateway: µs of processor per request, 1 to 1,000 at the same time",
            |factor| {
                let (time, _) = runtime.block_on(serve(Path::new(program), factor))?;
                Ok(format!("{:.0}", time.as_secs_f64() * 1e6))
            },
        )?;
        print(
            "gateway: peak memory in MB, 1 to 1,000 at the same time",
            |factor| {
                let (_, peak) = runtime.block_on(serve(Path::new(program), factor))?;
                Ok(format!("{:.1}", f64::from(peak) / 1e3))
            },
        )?;
    }
    Ok(())
}

fn print(
    title: &str,
    mut figure: impl FnMut(usize) -> Result<String, BoxError>,
) -> Result<(), BoxError> {
    let figures: Result<Vec<String>, BoxError> = FACTORS.into_iter().map(&mut figure).collect();
    println!("{title}: {}", figures?.join(" | "));
    Ok(())
}

fn each(time: Duration, count: usize, unit: f64) -> String {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    format!("{:.2}", time.as_secs_f64() * unit / f64::from(count))
}

fn best(mut measured: impl FnMut() -> Result<Duration, BoxError>) -> Result<Duration, BoxError> {
    let mut best = Duration::MAX;
    for _ in 0..TIMES {
        best = best.min(measured()?);
    }
    Ok(best)
}

fn call(id: usize) -> String {
    // The markers of the block syntax, which only `syntax` spells.
    let call = plaincall::syntax::Call::Block {
        name: "nothing",
        id: Some(&id.to_string()),
        dependencies: Vec::new(),
        arguments: Vec::new(),
    };
    plaincall::syntax::render(&call, &Dialect::block()).unwrap_or_default()
}

/// Returns prose with a call in every thousand bytes.
fn reply(bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&SENTENCE.repeat(13));
        let _ = write!(text, "\n{}", call(text.len()));
    }
    text
}

fn parse(reply: &str) -> Duration {
    let begun = Instant::now();
    let Ok(mut parser) = Parser::new(&Dialect::block()) else {
        return Duration::MAX;
    };
    let mut events = 0_usize;
    for chunk in reply.as_bytes().chunks(64) {
        // All of it is ASCII.
        if let Ok(chunk) = std::str::from_utf8(chunk) {
            parser.feed(chunk).for_each(|_| events += 1);
        }
    }
    std::hint::black_box(events);
    begun.elapsed()
}

fn tools() -> Result<Toolbox, BoxError> {
    let nothing = Tool::new("nothing", |(): (), _| async { Ok(String::new()) });
    Ok(Toolbox::new([nothing.effect(Effect::Read)])?)
}

async fn run(count: usize) -> Result<Duration, BoxError> {
    let reply: String = (0..count).map(call).collect();
    let mut run = Run::new(tools()?)?;
    let begun = Instant::now();
    let mut turn = run.turn();
    turn.feed(&reply);
    let results = turn.finish(Stop::Natural).await;
    let time = begun.elapsed();
    if results.len() != count || !results.all_ok() {
        return Err(format!("{} of {count} results", results.len()).into());
    }
    Ok(time)
}

async fn ask(count: usize) -> Result<Duration, BoxError> {
    let model = Scripted::with(move |number, _| {
        let text = if number < count {
            call(number)
        } else {
            "done".to_owned()
        };
        ScriptedReply::new().text(text)
    });
    let mut limits = AgentLimits::default();
    let most = u32::try_from(count + 1)?;
    (limits.turns, limits.calls) = (most, most);
    let agent = Agent::builder(model)
        .tools(tools()?)
        .limits(limits)
        .build()?;
    let begun = Instant::now();
    agent.ask("Begin.").await?;
    Ok(begun.elapsed())
}

fn extract(count: usize) -> Result<Duration, BoxError> {
    let dialect = Dialect::block();
    let extractor = Extractor::new(&dialect, Unclosed::default(), None, Stop::Natural)?;
    let mut text = SENTENCE.repeat(4);
    let _ = write!(text, "\n{}", call(1));
    let begun = Instant::now();
    let calls: usize = (0..count).map(|_| extractor.row(&text).calls.len()).sum();
    if calls != count {
        return Err(format!("{calls} of {count} calls").into());
    }
    Ok(begun.elapsed())
}

/// A gateway that is stopped when this is dropped.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a thousand requests, so many at the same time. Returns the processor time of the gateway for each, and its peak memory in kB.
async fn serve(program: &Path, count: usize) -> Result<(Duration, u32), BoxError> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let file = std::env::temp_dir().join(format!("plaincall-scale-{port}.jsonl"));
    let body = "get_weather";
    let reply = format!("\"{body} {}\"\n", "x".repeat(1000));
    fs::write(&file, reply.repeat(REQUESTS * 2))?;
    let mut command = Command::new(program);
    command.args([
        "serve",
        "--listen",
        &format!("127.0.0.1:{port}"),
        "--upstream",
    ]);
    command
        .arg(format!("replay:{}", file.display()))
        .stdin(Stdio::null());
    let gateway = Gateway(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?,
    );
    let process = gateway.0.id();
    let request = Arc::new(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{REQUEST}",
        REQUEST.len()
    ));
    let until = Instant::now() + Duration::from_secs(20);
    while request_once(port, &request).await.is_err() {
        if Instant::now() > until {
            return Err("the gateway does not answer".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before = processor(process)?;
    for _ in 0..REQUESTS / count {
        let mut requests = JoinSet::new();
        for _ in 0..count {
            let request = Arc::clone(&request);
            requests.spawn(async move { request_once(port, &request).await });
        }
        while let Some(answered) = requests.join_next().await {
            answered??;
        }
    }
    let time = processor(process)?.saturating_sub(before) / u32::try_from(REQUESTS)?;
    let peak = memory(process, "VmHWM:")?;
    fs::remove_file(&file)?;
    Ok((time, peak))
}

async fn request_once(port: u16, request: &str) -> Result<(), BoxError> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    if answer.starts_with("HTTP/1.1 200") {
        Ok(())
    } else {
        Err(answer.lines().next().unwrap_or_default().to_owned().into())
    }
}

/// Returns the memory of a process in kB, now or its peak (Linux).
fn memory(process: u32, field: &str) -> Result<u32, BoxError> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|text| text.split_whitespace().next());
    Ok(number.ok_or("unknown format of /proc")?.parse()?)
}

/// Returns the processor time of a process (Linux).
fn processor(process: u32) -> Result<Duration, BoxError> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("unknown format of /proc")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let tick = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok());
    let ticks = tick(11).unwrap_or_default() + tick(12).unwrap_or_default();
    // A tick is a hundredth of a second.
    Ok(Duration::from_millis(ticks * 10))
}
