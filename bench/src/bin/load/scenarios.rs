//! The scenarios.

use std::fmt::Write as _;
use std::pin::Pin;
use std::time::Duration;

use plaincall::syntax::{Call, Dialect, render};
use plaincall::tool::{ParameterKind, ToolSpec};
use plaincall::{BoxError, Command, Effect, Policy, Run, Status, Stop, Tool, Toolbox, TurnResults};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The maximum delay of the end of a call. Other programs use the machine too.
const LATENESS: Duration = Duration::from_secs(2);

type Playing = Pin<Box<dyn Future<Output = Result<String, BoxError>>>>;

/// A scenario.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The size of the promise, and one that suits a test run.
    pub(crate) full: usize,
    pub(crate) small: usize,
    /// The maximum memory, in bytes.
    pub(crate) most_memory: usize,
    pub(crate) play: fn(usize) -> Playing,
}

pub(crate) const SCENARIOS: [Scenario; 5] = [
    Scenario {
        name: "sleeping",
        full: 10_000,
        small: 1_000,
        most_memory: 128 << 20,
        play: |size| Box::pin(sleeping(size)),
    },
    Scenario {
        name: "runs",
        full: 1_000,
        small: 100,
        most_memory: 128 << 20,
        play: |size| Box::pin(runs(size)),
    },
    Scenario {
        name: "output",
        full: 1_024,
        small: 64,
        most_memory: 16 << 20,
        play: |size| Box::pin(output(size)),
    },
    Scenario {
        name: "stalled",
        full: 1_000,
        small: 100,
        most_memory: 128 << 20,
        play: |size| Box::pin(stalled(size)),
    },
    Scenario {
        name: "stream",
        full: 10 << 10,
        small: 24,
        most_memory: 4 << 20,
        play: |size| Box::pin(async move { Ok(crate::stream::play(size)?) }),
    },
];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Milliseconds {
    ms: u64,
}

/// Returns a tool that sleeps, with a timeout.
fn sleeper(timeout: Duration) -> Tool {
    Tool::new("sleep", |Milliseconds { ms }, _| async move {
        sleep(Duration::from_millis(ms)).await;
        Ok(String::new())
    })
    .effect(Effect::Read)
    .timeout(timeout)
}

/// Returns a call of the sleeper, or its first half.
fn call(ms: u64, is_closed: bool) -> Result<String, BoxError> {
    let ms = ms.to_string();
    let call = Call::Block {
        name: "sleep",
        id: None,
        dependencies: Vec::new(),
        arguments: vec![("ms", &ms)],
    };
    let text = render(&call, &Dialect::block())?;
    let cut = if is_closed {
        text.len()
    } else {
        text.len() / 2
    };
    Ok(text.get(..cut).unwrap_or_default().to_owned())
}

/// Returns whether the statuses are the expected ones, and the maximum delay of the end of a call.
fn lateness(
    results: &TurnResults,
    wanted: impl Fn(u32) -> (Status, Duration),
) -> Result<Duration, BoxError> {
    let mut latest = Duration::ZERO;
    for result in results {
        let (status, time) = wanted(result.call);
        if result.status != status {
            return Err(format!("call {} ended as {}", result.call, result.status).into());
        }
        let started = result.times.started.unwrap_or_default();
        latest = latest.max(result.times.ended.saturating_sub(started + time));
    }
    if latest > LATENESS {
        return Err(format!("a call ended {latest:?} late").into());
    }
    Ok(latest)
}

async fn sleeping(size: usize) -> Result<String, BoxError> {
    const TIMEOUT: Duration = Duration::from_millis(1500);
    let toolbox = Toolbox::new([sleeper(TIMEOUT)])?;
    let mut run = Run::builder(toolbox)
        .policy(plaincall::Policy::default().concurrent(0))
        .build()?;
    let mut turn = run.turn();
    let (short, long) = (call(1_000, true)?, call(600_000, true)?);
    for place in 0..size {
        turn.feed(if place % 2 == 0 { &short } else { &long });
    }
    let results = turn.finish(Stop::Natural).await;
    let late = lateness(&results, |call| match call % 2 {
        0 => (Status::Ok, Duration::from_secs(1)),
        _ => (Status::Error, TIMEOUT),
    })?;
    if results.len() != size {
        return Err(format!("{} results", results.len()).into());
    }
    run.close().await?;
    Ok(format!("the last call ended {} ms late", late.as_millis()))
}

async fn runs(size: usize) -> Result<String, BoxError> {
    let begun = Instant::now();
    let mut reply = String::new();
    for _ in 0..10 {
        write!(reply, "{}", call(100, true)?)?;
    }
    let mut tasks = JoinSet::new();
    for _ in 0..size {
        let reply = reply.clone();
        tasks.spawn(async move {
            let toolbox = Toolbox::new([sleeper(Duration::from_mins(1))])?;
            let mut run = Run::builder(toolbox).build()?;
            let mut turn = run.turn();
            for piece in reply.as_bytes().chunks(64) {
                turn.feed(piece);
                tokio::task::yield_now().await;
            }
            let results = turn.finish(Stop::Natural).await;
            let late = lateness(&results, |_| (Status::Ok, Duration::from_millis(100)))?;
            run.close().await?;
            Ok::<_, BoxError>((results.len(), late))
        });
    }
    let (mut calls, mut latest) = (0, Duration::ZERO);
    while let Some(joined) = tasks.join_next().await {
        let (count, late) = joined??;
        calls += count;
        latest = latest.max(late);
    }
    if calls != 10 * size {
        return Err(format!("{calls} results").into());
    }
    let time = begun.elapsed().as_millis();
    Ok(format!(
        "{calls} calls in {time} ms, the last ended {} ms late",
        latest.as_millis()
    ))
}

async fn output(size: usize) -> Result<String, BoxError> {
    let script = format!("yes | head -c {}", size << 20);
    let spec = ToolSpec::new("sleep").effect(Effect::Read);
    let spec = spec.parameter(plaincall::tool::Parameter::new(
        "ms",
        ParameterKind::Integer,
    ));
    let command = Command::shell(script).directory("/");
    let tool = Tool::command(spec, command)?.timeout(Duration::from_mins(5));
    #[allow(
        clippy::disallowed_methods,
        reason = "this is a program: it may ask where others are"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut run = Run::builder(Toolbox::new([tool])?)
        .environment([("PATH", path)])
        .build()?;
    let begun = Instant::now();
    let mut turn = run.turn();
    turn.feed(call(0, true)?);
    let results = turn.finish(Stop::Natural).await;
    let result = results.iter().next().ok_or("no result")?;
    let shown = result.output.as_deref().unwrap_or_default();
    if result.status != Status::Ok || !shown.contains("truncated") {
        return Err(format!("it ended as {}: {:?}", result.status, result.error).into());
    }
    run.close().await?;
    let time = begun.elapsed().as_millis();
    Ok(format!(
        "read in {time} ms, {} bytes for the model",
        shown.len()
    ))
}

async fn stalled(size: usize) -> Result<String, BoxError> {
    const TIMEOUT: Duration = Duration::from_secs(1);
    let mut tasks = JoinSet::new();
    for _ in 0..size {
        tasks.spawn(async {
            let policy = Policy::default().turn_timeout(Some(TIMEOUT));
            let toolbox = Toolbox::new([sleeper(Duration::from_mins(10))])?;
            let mut run = Run::builder(toolbox).policy(policy).build()?;
            let mut events = run.events();
            let mut turn = run.turn();
            turn.feed(call(600_000, true)?);
            turn.feed(call(600_000, false)?);
            // The reply never ends, but its calls do.
            let mut ended = None;
            while let Some(event) = events.next().await {
                if let plaincall::RunEvent::Result(result) = event {
                    let is_right = result.status == Status::Error || result.call == 1;
                    if !is_right {
                        return Err(format!("it ended as {}", result.status).into());
                    }
                    ended = Some(result.times.ended);
                    if result.call == 0 {
                        break;
                    }
                }
            }
            let late = ended.ok_or("no end")?.saturating_sub(TIMEOUT);
            let results = turn.finish(Stop::Broken).await;
            run.close().await?;
            Ok::<_, BoxError>((results.len(), late))
        });
    }
    let mut latest = Duration::ZERO;
    while let Some(joined) = tasks.join_next().await {
        let (count, late) = joined??;
        if count == 0 || late > LATENESS {
            return Err(format!("{count} results, {late:?} after their time").into());
        }
        latest = latest.max(late);
    }
    Ok(format!(
        "the last call ended {} ms late",
        latest.as_millis()
    ))
}
