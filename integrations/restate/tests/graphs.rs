//! Random replies: graphs of calls in both syntaxes, valid and invalid.

use std::fmt::Write as _;
use std::path::Path;

use plaincall::{AllowAll, CallResult, Dialect, Run, Status, Stop};
use plaincall_agent::Role;
use plaincall_agent::model::{Scripted, ScriptedReply};
use plaincall_testkit::arbitrary_texts::Random;

use crate::tools::{self, Change};

/// The number of replies with calls in a conversation.
const TURNS: usize = 2;

/// A conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graph {
    pub(crate) seed: u64,
}

impl Graph {
    /// Returns whether the replies have the emoji syntax.
    pub(crate) fn is_emoji(self) -> bool {
        self.seed % 4 == 3
    }

    /// Returns the message that asks for it.
    pub(crate) fn message(self) -> String {
        format!("graph {}", self.seed)
    }

    /// Returns the reply of a turn.
    fn reply(self, turn: usize) -> String {
        if turn >= TURNS {
            return format!("graph {} is done", self.seed);
        }
        let random = &mut Random::new(self.seed * 7 + turn as u64 + 1);
        let is_emoji = self.is_emoji();
        let mut text = format!("Turn {turn}.\n");
        let count = 1 + random.below(if is_emoji { 6 } else { 10 });
        for number in 0..count {
            let tool = match random.below(20) {
                0 => "unknown-tool",
                1 => "forbidden",
                2..=7 => "append",
                8..=11 => "store",
                12 => "flaky",
                _ => "look",
            };
            let step = format!("{}.{turn}.{number}", self.seed);
            let ms = random.below(if tool == "append" { 150 } else { 30 });
            let fails = random.one_in(9);
            let ms = if random.one_in(25) {
                "soon".to_owned()
            } else {
                ms.to_string()
            };
            if is_emoji {
                let _ = writeln!(text, "🛠️[{tool} {step} {ms} {fails}]\n🛠️[/end]");
                continue;
            }
            let mut dependencies = Vec::new();
            for _ in 0..random.below(4) {
                // Earlier ones, often; later ones, itself, unknown ones and those of the turn before, sometimes.
                let other = random.below(count + 1);
                let turn = if random.one_in(6) { 0 } else { turn };
                if other < number || random.one_in(8) {
                    dependencies.push(format!("t{turn}c{other}"));
                }
            }
            let _ = write!(
                text,
                "!!!GADGET_START:{tool}:t{turn}c{number}:{}\n!!!ARG:step\n{step}\n!!!ARG:ms\n{ms}\n!!!ARG:fails\n{fails}\n!!!GADGET_END\n",
                dependencies.join(",")
            );
        }
        text
    }

    /// Returns the results of a run on one machine.
    pub(crate) async fn expected(self, effects: &Path) -> Vec<Outcome> {
        let toolbox = tools::toolbox(effects, Change::None);
        let run = Run::builder(toolbox).rules(tools::rules()).gate(AllowAll);
        let mut run = run.dialect(Dialect::auto().escaped()).build().unwrap();
        let mut outcomes = Vec::new();
        for turn in 0..TURNS {
            let mut current = run.turn();
            current.feed(self.reply(turn));
            outcomes.extend(current.finish(Stop::Natural).await.iter().map(Outcome::of));
        }
        outcomes
    }
}

/// What must be the same on one machine and on many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    call: u32,
    id: String,
    name: String,
    status: Status,
    /// Of a call that succeeded: a person who reports the outcome of an interrupted call does not know the rest.
    output: Option<String>,
    /// `None` for a skipped call, which names the first of its dependencies that failed in time.
    error: Option<String>,
}

impl Outcome {
    pub(crate) fn of(result: &CallResult) -> Self {
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            call: result.call,
            id: result.id.to_string(),
            name: result.name.to_string(),
            status: result.status,
            output: text(&result.output).filter(|_| result.status == Status::Ok),
            error: text(&result.error).filter(|_| result.status != Status::Skipped),
        }
    }
}

/// The model that writes the replies. Its answer depends on the conversation alone, so any worker gives it.
pub(crate) fn model() -> Scripted {
    Scripted::with(|_, request| {
        let messages = &request.messages;
        let asked = messages.iter().find(|message| message.role == Role::User);
        let seed = asked.and_then(|message| {
            let text = message.text.strip_prefix("graph ")?;
            text.lines().next()?.parse().ok()
        });
        let turn = messages
            .iter()
            .filter(|message| message.role == Role::Assistant);
        match seed {
            Some(seed) => ScriptedReply::new().text(Graph { seed }.reply(turn.count())),
            None => ScriptedReply::new().text("I can only write graphs."),
        }
    })
}
