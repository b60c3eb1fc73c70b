//! The cost of a run without its tools: `cargo run --release -p plaincall-bench --bin runs`.
//!
//! Prints the microseconds per call that does nothing, without and with a log, and the time to plan a graph of calls.
//! Fails if a figure is above its promise.

use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use plaincall::syntax::{Call, Dialect, render};
use plaincall::{BoxError, Effect, Log, Run, Stop, Tool, Toolbox};
use plaincall_plan::{Action, CallIndex, Limits, Order, Outcome, Plan, Reply};

/// The number of calls of a run.
const CALLS: u32 = 100_000;

/// The number of samples of each; the best counts, because other load only adds time.
const TIMES: usize = 5;

/// The maximum cost of a call.
const PER_CALL: Duration = Duration::from_micros(10);

/// The maximum cost of planning `CALLS` calls with three dependencies each.
const PLAN: Duration = Duration::from_millis(250);

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("runs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), BoxError> {
    let reply = reply()?;
    let mut slow = Vec::new();
    for (name, has_log) in [("without a log", false), ("with a log", true)] {
        let time = best(|| run(&reply, has_log))? / CALLS;
        let micros = time.as_secs_f64() * 1e6;
        println!("{name}: {micros:.2} µs per call, {CALLS} calls");
        if time > PER_CALL {
            slow.push(name);
        }
    }
    for count in [CALLS, 10 * CALLS] {
        let time = best(|| plan(count))?;
        println!(
            "plan: {:.1} ms for {count} calls with three dependencies each",
            time.as_secs_f64() * 1e3
        );
        if count == CALLS && time > PLAN {
            slow.push("plan");
        }
    }
    match slow.as_slice() {
        [] => Ok(()),
        slow => Err(format!("slower than promised: {}", slow.join(", ")).into()),
    }
}

/// Returns the minimum of some times.
fn best(mut measured: impl FnMut() -> Result<Duration, BoxError>) -> Result<Duration, BoxError> {
    let mut best = Duration::MAX;
    for _ in 0..TIMES {
        best = best.min(measured()?);
    }
    Ok(best)
}

/// A reply with calls that do nothing.
fn reply() -> Result<String, BoxError> {
    let call = Call::Block {
        name: "nothing",
        id: None,
        dependencies: Vec::new(),
        arguments: Vec::new(),
    };
    let call = render(&call, &Dialect::block())?;
    let mut reply = String::new();
    for _ in 0..CALLS {
        write!(reply, "{call}")?;
    }
    Ok(reply)
}

/// Measures from the first piece of the reply to its results.
fn run(reply: &str, has_log: bool) -> Result<Duration, BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let path = std::env::temp_dir().join(format!("plaincall-runs-{}", std::process::id()));
    let time = runtime.block_on(async {
        let nothing = Tool::new("nothing", |(): (), _| async { Ok(String::new()) });
        let mut builder = Run::builder(Toolbox::new([nothing.effect(Effect::Read)])?);
        if has_log {
            builder = builder.log(Log::create(&path)?);
        }
        let mut run = builder.build()?;
        let begun = Instant::now();
        let mut turn = run.turn();
        for piece in reply.as_bytes().chunks(4096) {
            turn.feed(piece);
            turn.caught_up().await;
        }
        let results = turn.finish(Stop::Natural).await;
        let time = begun.elapsed();
        if !results.all_ok() || results.len() != CALLS as usize {
            return Err(format!("{} results", results.len()).into());
        }
        run.close().await?;
        Ok::<_, BoxError>(time)
    });
    if has_log {
        fs::remove_file(&path)?;
    }
    time
}

/// Plans calls that each depend on three earlier ones, and ends them as they start.
fn plan(count: u32) -> Result<Duration, BoxError> {
    let ids: Vec<String> = (0..count).map(|call| format!("call_{call}")).collect();
    let begun = Instant::now();
    let mut plan = Plan::new(Limits::default());
    let tool = plan.add_tool(plaincall_plan::Tool::default());
    plan.begin_turn(Order::Graph)?;
    let mut ended = 0;
    for (place, id) in (0..count).zip(&ids) {
        let call = plan.declare(id)?;
        let near = place.saturating_sub(1);
        let middle = place / 2;
        let far = place.saturating_sub(1000);
        let names = [near, middle, far].map(|place| ids.get(place as usize));
        let earlier = names.into_iter().flatten().filter(|_| place > 1000);
        plan.complete(call, tool, earlier)?;
        ended += end_all(&mut plan)?;
    }
    plan.end_turn(Reply::Complete)?;
    ended += end_all(&mut plan)?;
    let time = begun.elapsed();
    if ended != count {
        return Err(format!("{ended} calls have ended").into());
    }
    Ok(time)
}

fn end_all(plan: &mut Plan) -> Result<u32, BoxError> {
    let mut ended = 0;
    while let Some(action) = plan.next_action() {
        match action {
            Action::Ready(call) => plan.admit(call)?,
            Action::Start(call) => {
                end(plan, call)?;
                ended += 1;
            }
            other => return Err(format!("unexpected: {other:?}").into()),
        }
    }
    Ok(ended)
}

fn end(plan: &mut Plan, call: CallIndex) -> Result<(), BoxError> {
    plan.finish(call, Outcome::Ok)?;
    Ok(())
}
