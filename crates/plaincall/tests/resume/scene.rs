//! Scenes: tools that count their starts, a gate that decides by the ids of the calls, and replies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall::gate::{GateFuture, RecoveryFuture};
use plaincall::policy::{Dependents, Retry};
use plaincall::tool::Arguments;
use plaincall::{
    Decision, Dialect, Effect, Gate, Log, Policy, Recovery, Request, Run, RunBuilder, Stop, Tool,
    ToolResult, Toolbox,
};
use tokio::time::sleep;

/// The events in one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Facts>>);

#[derive(Debug, Default)]
struct Facts {
    starts: BTreeMap<u32, u32>,
    asked: Vec<u32>,
    settled: Vec<u32>,
}

impl Seen {
    /// Returns the number of starts of the call.
    pub(crate) fn starts(&self, call: u32) -> u32 {
        let facts = self.0.lock().unwrap();
        facts.starts.get(&call).copied().unwrap_or(0)
    }

    pub(crate) fn all_starts(&self) -> u32 {
        self.0.lock().unwrap().starts.values().sum()
    }

    /// Returns the calls about which the gate was asked whether they may run.
    pub(crate) fn asked(&self) -> Vec<u32> {
        self.0.lock().unwrap().asked.clone()
    }

    /// Returns the calls about whose outcome the gate was asked.
    pub(crate) fn settled(&self) -> Vec<u32> {
        self.0.lock().unwrap().settled.clone()
    }
}

/// Decides by the prefix of the id, approves no echo unless the id allows it, and gives the same answer about every
/// interrupted call.
struct Person {
    seen: Seen,
    recovery: Recovery,
}

impl Gate for Person {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        self.seen.0.lock().unwrap().asked.push(request.call);
        Box::pin(async move {
            sleep(Duration::from_millis(1)).await;
            let word = request.id.split('_').next();
            if let Some(held) = request.held.as_ref().filter(|_| word != Some("allow")) {
                return Ok(Decision::deny(format!("it {held}")));
            }
            Ok(match word {
                Some("deny") => Decision::deny("not today"),
                Some("always") => Decision::Always,
                Some("edit") => Decision::Edit {
                    arguments: Arguments::from_pairs([
                        ("text", " 007 \nand more "),
                        ("list/0", "true"),
                        ("list/1", ""),
                    ])?,
                },
                Some("wrong") => Decision::Edit {
                    arguments: Arguments::from_pairs([("txet", "x")])?,
                },
                _ => Decision::Allow,
            })
        })
    }

    fn recover<'a>(&'a self, request: &'a Request) -> RecoveryFuture<'a> {
        self.seen.0.lock().unwrap().settled.push(request.call);
        Box::pin(async {
            sleep(Duration::from_millis(1)).await;
            Ok(self.recovery.clone())
        })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Say {
    text: String,
    #[serde(default)]
    list: Vec<String>,
}

pub(crate) fn toolbox(seen: &Seen) -> Toolbox {
    let tool = |name: &str, effect: Effect, ms: u64, ends_well: bool| {
        let seen = seen.clone();
        // It shows the text in another form.
        let is_veiled = name == "veil";
        Tool::new(name, move |say: Say, context| {
            let mut facts = seen.0.lock().unwrap();
            *facts.starts.entry(context.call()).or_default() += 1;
            let before = context.dependencies().iter();
            let before: Vec<String> = before.map(|one| one.output.to_string()).collect();
            async move {
                sleep(Duration::from_millis(ms)).await;
                let mut text = format!("{}{}{}", before.concat(), say.text, say.list.join(","));
                if is_veiled {
                    context.observe_untrusted(&text);
                    "veiled".clone_into(&mut text);
                }
                let result: ToolResult = if ends_well {
                    Ok(text)
                } else {
                    Err(text.into())
                };
                result
            }
        })
        .positional(["text"])
        .effect(effect)
    };
    let retry = Retry::attempts(3);
    Toolbox::new([
        tool("look", Effect::Read, 3, true),
        tool("veil", Effect::Read, 3, true),
        tool("slow", Effect::Read, 40, true),
        tool("put", Effect::Idempotent, 5, true),
        tool("send", Effect::Write, 3, true),
        tool("fail", Effect::Write, 3, false),
        tool("flaky", Effect::Read, 2, false).retry(retry),
        tool("guess", Effect::Read, 2, false).dependents(Dependents::Fallback("instead".into())),
        tool("two", Effect::Idempotent, 4, true).max_concurrent(2),
        tool("alone", Effect::Write, 4, true).exclusive(),
        tool("done", Effect::Read, 2, true).finishes(),
    ])
    .unwrap()
}

/// One reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The texts that the model gets before it: names and texts.
    pub(crate) untrusted: Vec<(&'static str, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) stop: Stop,
    /// The run is cancelled after the piece with this number.
    pub(crate) cancel_after: Option<usize>,
}

impl Reply {
    pub(crate) fn new<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let pieces = pieces.into_iter();
        Self {
            untrusted: Vec::new(),
            pieces: pieces.map(|piece| piece.as_ref().to_vec()).collect(),
            stop: Stop::Natural,
            cancel_after: None,
        }
    }

    /// Returns calls in one line, `id=tool<dependency,dependency`; each is a piece.
    pub(crate) fn of(calls: &str) -> Self {
        let calls = calls.split_whitespace().map(|call| {
            let (call, dependencies) = call.split_once('<').unwrap_or((call, ""));
            let (id, tool) = call.split_once('=').unwrap();
            format!(
                "!!!GADGET_START:{tool}:{id}:{dependencies}\n!!!ARG:text\n{id};\n!!!GADGET_END\n"
            )
        });
        Self::new(calls)
    }

    pub(crate) fn emoji(tools: &str) -> Self {
        let calls = tools.split_whitespace().enumerate();
        Self::new(calls.map(|(place, tool)| format!("🛠️[{tool} t{place}]🛠️[/end]\n")))
    }

    pub(crate) fn untrusted(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.untrusted.push((name, text.into()));
        self
    }

    pub(crate) fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    pub(crate) fn cancel_after(mut self, piece: usize) -> Self {
        self.cancel_after = Some(piece);
        self
    }
}

/// A conversation that runs, is interrupted and is resumed.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) policy: Policy,
    pub(crate) dialect: Dialect,
    pub(crate) replies: Vec<Reply>,
    pub(crate) same: Same,
}

/// The parts that do not depend on where the log is truncated, if no write was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Same {
    /// The complete results.
    Ends,
    /// Statuses and outputs; the order of several causes depends on timing.
    Outputs,
    /// Timing affects how calls end.
    Nothing,
}

impl Scene {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            policy: Policy::default(),
            dialect: Dialect::auto(),
            replies: replies.into_iter().collect(),
            same: Same::Ends,
        }
    }

    pub(crate) fn builder(&self, seen: &Seen, log: Log, recovery: Recovery) -> RunBuilder {
        let gate = Person {
            seen: seen.clone(),
            recovery,
        };
        Run::builder(toolbox(seen))
            .policy(self.policy)
            .dialect(self.dialect.clone())
            .gate(gate)
            .log(log)
    }
}
