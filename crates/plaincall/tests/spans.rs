//! The spans of a run, as a subscriber sees them (`docs/observing.md`).
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall::{
    Canceller, Effect, Run, Stop, Tool, ToolResult, Toolbox, TurnResults, policy::Retry,
};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Instrument as _, Subscriber, info_span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// A closed span: its name, its parent and its fields.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    parent: Option<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// Keeps all spans, in the order in which they close.
#[derive(Clone, Default)]
struct Spans {
    closed: Arc<Mutex<Vec<Seen>>>,
    hidden: &'static str,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.name() != self.hidden
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut seen = Seen {
            name: span.name(),
            parent: span.parent().map(|parent| parent.name()),
            ..Seen::default()
        };
        attributes.record(&mut seen);
        span.extensions_mut().insert(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(span.extensions_mut().get_mut::<Seen>().unwrap());
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let seen = span.extensions().get::<Seen>().unwrap().clone();
        self.closed.lock().unwrap().push(seen);
    }
}

impl Spans {
    /// Returns one line for each closed span: parent, name, and the fields that vary.
    fn shown(&self) -> String {
        let mut shown = String::new();
        for seen in self.closed.lock().unwrap().iter() {
            let field = |name: &str| seen.fields.get(name).map(String::as_str);
            let name = field("otel.name").unwrap_or(seen.name);
            let _ = write!(shown, "{} > {name}", seen.parent.unwrap_or("-"));
            for name in [
                "gen_ai.tool.call.id",
                "plaincall.call",
                "plaincall.attempt",
                "error.type",
                "otel.status_code",
            ] {
                if let Some(value) = field(name) {
                    let _ = write!(shown, " {value}");
                }
            }
            shown.push('\n');
        }
        shown
    }
}

fn toolbox() -> Toolbox {
    let wait = |(): (), _| async {
        sleep(Duration::from_secs(10)).await;
        ToolResult::Ok(String::new())
    };
    let tries = AtomicU32::new(0);
    let third = move |(): (), _| {
        let is_third = tries.fetch_add(1, Ordering::Relaxed) == 2;
        std::future::ready(if is_third {
            Ok(String::new())
        } else {
            Err("not yet".into())
        })
    };
    let tools = [
        Tool::new("fine", |(): (), _| async {
            info_span!("inner").in_scope(|| Ok("a secret".to_owned()))
        }),
        Tool::new("fail", |(): (), _| async { Err("a secret".into()) }),
        Tool::new("panic", |(): (), _| async { panic!("a secret") }),
        Tool::new(
            "panic-at-once",
            |(): (), _| -> std::future::Ready<ToolResult> { panic!("a secret") },
        ),
        Tool::new("wait", wait),
        Tool::new("short", wait).timeout(Duration::from_secs(1)),
        Tool::new("third", third).retry(Retry::attempts(3)),
    ];
    Toolbox::new(tools.map(|tool| tool.effect(Effect::Read))).unwrap()
}

async fn play(run: &mut Run, calls: &str) -> TurnResults {
    let mut turn = run.turn();
    for call in calls.split_whitespace() {
        let (tool, id) = call.split_once(':').unwrap();
        turn.feed(format!("!!!GADGET_START:{tool}:{id}\n!!!GADGET_END\n"));
    }
    turn.finish(Stop::Natural).await
}

/// Runs calls on a separate clock and returns all spans, each when it was closed.
fn check(spans: &Spans, calls: &str, cancel: fn(Canceller), expected: &str) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::with_default(subscriber, || {
        runtime.block_on(async {
            let mut run = Run::builder(toolbox())
                .policy(plaincall::Policy::default().concurrent(1))
                .build()
                .unwrap();
            cancel(run.canceller());
            play(&mut run, calls).instrument(info_span!("caller")).await;
            run.close().await.unwrap();
        });
    });
    assert_eq!(spans.shown(), expected, "{calls}");
    let closed = spans.closed.lock().unwrap();
    closed.clone()
}

fn check_calls(calls: &str, expected: &str) -> Vec<Seen> {
    check(&Spans::default(), calls, drop, expected)
}

#[test]
fn a_span_has_the_tool_but_no_texts() {
    let closed = check_calls(
        "fine:a",
        "execute_tool > inner\nplaincall.turn > execute_tool fine a 0 1\ncaller > plaincall.turn\n- > caller\n",
    );
    let expected = [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.call.id", "a"),
        ("gen_ai.tool.name", "fine"),
        ("gen_ai.tool.type", "function"),
        ("otel.name", "execute_tool fine"),
        ("plaincall.attempt", "1"),
        ("plaincall.call", "0"),
    ];
    assert_eq!(
        closed[1].fields,
        expected
            .map(|(name, value)| (name, value.to_owned()))
            .into()
    );
}

#[test]
fn failures_say_of_which_kind_they_are() {
    for (tool, kind) in [
        ("fail", "tool_error"),
        ("panic", "panic"),
        ("panic-at-once", "panic"),
        ("short", "timeout"),
    ] {
        let closed = check_calls(
            &format!("{tool}:a"),
            &format!(
                "plaincall.turn > execute_tool {tool} a 0 1 {kind} ERROR\ncaller > plaincall.turn\n- > caller\n"
            ),
        );
        let texts = format!("{closed:?}");
        assert!(!texts.contains("secret"), "{texts}");
    }
}

#[test]
fn a_cancelled_call_has_a_cancelled_span() {
    let cancel = |canceller: Canceller| {
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            canceller.cancel();
        });
    };
    // The second never runs, so it has no span.
    check(
        &Spans::default(),
        "wait:a fine:b",
        cancel,
        "plaincall.turn > execute_tool wait a 0 1 cancelled ERROR\ncaller > plaincall.turn\n- > caller\n",
    );
}

#[test]
fn each_attempt_is_a_span() {
    check_calls(
        "third:a",
        "plaincall.turn > execute_tool third a 0 1 tool_error ERROR\n\
         plaincall.turn > execute_tool third a 0 2 tool_error ERROR\n\
         plaincall.turn > execute_tool third a 0 3\ncaller > plaincall.turn\n- > caller\n",
    );
}

#[test]
fn without_turns_the_spans_of_tools_lie_below_the_caller() {
    let spans = Spans {
        hidden: "plaincall.turn",
        ..Spans::default()
    };
    check(
        &spans,
        "fail:a",
        drop,
        "caller > execute_tool fail a 0 1 tool_error ERROR\n- > caller\n",
    );
}

#[test]
fn nothing_happens_without_a_subscriber() {
    let spans = Spans {
        hidden: "execute_tool",
        ..Spans::default()
    };
    check(
        &spans,
        "panic:a fail:b",
        drop,
        "caller > plaincall.turn\n- > caller\n",
    );
}
