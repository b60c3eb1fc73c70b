//! Random agents that depend only on a seed: a model on the task and the number of the reply, the tools and the gate on the
//! call. So a resumed conversation must continue like one that was never interrupted.
//!
//! The task of the agent that the user asks is `m`. A call has a tag: the task, the number of the reply, and a letter. The tag
//! of a subagent's call is its task.

use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plaincall_agent::model::{Finish, Model, ModelRequest, Reply, Role, Usage};
use plaincall_agent::plaincall::schemars::{self, JsonSchema};
use plaincall_agent::plaincall::syntax::{Call, Syntax, render};
use plaincall_agent::plaincall::{
    Decision, Dialect, Effect, Gate, Log, Policy, Request, RunEvent, Stop, Tool, Toolbox,
    gate::GateFuture, policy::Writes,
};
use plaincall_agent::{Agent, AgentLimits};
use plaincall_testkit::arbitrary_texts::Random;
use serde::Deserialize;
use tokio::time::sleep;

use crate::scenarios::changed::{Change, Changes};

/// The task of the agent that the user asks.
pub(super) const MAIN: &str = "m";
/// The tool that must not be started twice.
pub(super) const WRITES: &str = "write";
/// The other tools.
const READS: &[(&str, Effect)] = &[
    ("quick", Effect::Read),
    ("slow", Effect::Read),
    ("again", Effect::Idempotent),
];

/// The agents of a conversation, and their environment.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) seed: u64,
    pub(super) directory: PathBuf,
    /// The moment within a subagent at which the process can be killed.
    pub(super) killed_at: Option<usize>,
    /// Whether nothing more happens in the part of it that reaches the moment.
    pub(super) stalls: bool,
    pub(super) moments: AtomicUsize,
    /// How tools change when the conversation is resumed: each time in another way.
    pub(super) changes: &'static [Change],
    pub(super) round: u64,
}

/// A reply of a model.
struct Script {
    text: String,
    stop: Stop,
    usage: Option<Usage>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Work {
    tag: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct OtherWork {
    tag: String,
    hurry: Option<bool>,
}

/// Returns whether a call belongs to a subagent.
pub(super) fn is_nested(tag: &str) -> bool {
    tag.len() > MAIN.len() + 2
}

/// Returns whether a tool is a subagent.
pub(super) fn is_agent(name: &str) -> bool {
    matches!(name, "helper" | "leader")
}

impl Program {
    /// Returns random numbers about something.
    fn random(&self, about: &str) -> Random {
        Random::new(self.seed ^ hash(about))
    }

    fn dialect(&self) -> Dialect {
        match self.random("dialect").below(3) {
            0 => Dialect::emoji(),
            1 => Dialect::block()
                .start("<<<START:")
                .end("<<<END:")
                .arg("@param:"),
            _ => Dialect::block(),
        }
    }

    /// Records what happens.
    async fn happens(&self, what: &str, is_nested: bool) {
        let journal = self.directory.join("journal");
        let mut journal = OpenOptions::new().append(true).open(journal).unwrap();
        journal.write_all(format!("{what}\n").as_bytes()).unwrap();
        if is_nested && self.killed_at == Some(self.moments.fetch_add(1, Ordering::Relaxed)) {
            File::create(self.directory.join("hangs")).unwrap();
            if self.stalls {
                pending::<()>().await;
            }
        }
    }

    /// Returns a reply to a task.
    fn script(&self, agent: &str, task: &str, number: usize) -> Script {
        let dialect = self.dialect();
        let mut random = self.random(&format!("reply {number} to {task}"));
        let least = usize::from(agent != "helper");
        let mut text = format!("Reply {number} to {task}.\n");
        if number >= least + self.random(task).below(3) {
            let (stop, usage) = (Stop::Natural, None);
            text.push_str("That is all.\n");
            return Script { text, stop, usage };
        }
        let names: &[&str] = match agent {
            "main" => &["helper", "leader", "quick", WRITES],
            "leader" => &["helper", "helper", "slow", WRITES],
            _ => &["quick", "slow", "again", WRITES, WRITES],
        };
        let mut before: Option<(&str, String)> = None;
        for letter in "abc"[..=random.below(3)].chars() {
            let mut name = names[random.below(names.len())];
            if task == MAIN && number == 0 && letter == 'a' {
                name = names[random.below(2)];
            }
            let mut tag = format!("{task}{number}{letter}");
            match random.below(12) {
                // An interrupted turn of the main agent gets no repair message.
                0 if agent != "main" => name = "unknown",
                // The same call again.
                1 | 2 if !is_agent(name) => (name, tag) = before.take().unwrap_or((name, tag)),
                _ => {}
            }
            let depends = before.is_some() && random.below(4) == 0;
            let earlier = format!("i{number}{}", char::from(letter as u8 - 1));
            let id = format!("i{number}{letter}");
            let call = if dialect.syntax() == Some(Syntax::Emoji) {
                let (raw_args, body) = if is_agent(name) {
                    ("", &*tag)
                } else {
                    (&*tag, "")
                };
                Call::Emoji {
                    name,
                    raw_args,
                    body,
                }
            } else {
                Call::Block {
                    name,
                    id: Some(&id),
                    dependencies: depends.then_some(&*earlier).into_iter().collect(),
                    arguments: vec![(if is_agent(name) { "task" } else { "tag" }, &*tag)],
                }
            };
            text.push_str(&render(&call, &dialect).unwrap());
            if random.below(2) == 0 {
                text.push_str("And more.\n");
            }
            before = (!is_agent(name)).then_some((name, tag));
        }
        Script {
            text,
            stop: [Stop::Natural, Stop::Length, Stop::Broken][random.below(12).saturating_sub(9)],
            usage: (random.below(2) == 0).then(|| Usage::new(300, random.below(50) as u64)),
        }
    }

    /// Runs the conversation to its end, from where its log ends. Writes the answer.
    pub(super) async fn converse(self: &Arc<Self>) {
        let log = Log::open(self.directory.join("log")).unwrap();
        let mut history = log.history().iter();
        let is_asked = history.any(|event| matches!(event, RunEvent::Message(_)));
        let mut random = self.random(&format!("changes {}", self.round));
        let names: Vec<&str> = READS
            .iter()
            .map(|(name, _)| *name)
            .chain([WRITES])
            .collect();
        let changes = Changes::after(log.history(), &names, self.changes, &mut random);
        let agent = self.agent(&changes);
        let mut talk = agent.session(log, serde_json::Value::Null).await.unwrap();
        let answer = if is_asked {
            talk.resume().answer().await
        } else {
            talk.ask(MAIN).await
        };
        talk.close().await.unwrap();
        let answer = answer.map_or_else(|error| error.to_string(), |answer| answer.text);
        std::fs::write(self.directory.join("answer"), answer).unwrap();
    }

    fn agent(self: &Arc<Self>, changes: &Changes) -> Agent {
        let tool = |name: &'static str, effect| {
            let program = Arc::clone(self);
            let work = move |tag: String| {
                let program = Arc::clone(&program);
                async move { program.work(name, &tag).await }
            };
            let tool = match changes.of(name) {
                Change::Schema => Tool::new(name, move |other: OtherWork, _| {
                    let _ = other.hurry;
                    work(other.tag)
                }),
                _ => Tool::new(name, move |one: Work, _| work(one.tag)),
            };
            changes.apply(tool.effect(effect))
        };
        let reads = READS.iter().map(|&(name, effect)| tool(name, effect));
        let tools = reads.chain([tool(WRITES, Effect::Write)]).flatten();
        let tools = Toolbox::new(tools).unwrap();
        let agent = |name| {
            let program = Arc::clone(self);
            let agent = Agent::builder(Scripted { name, program });
            agent.tools(tools.clone())
        };
        let mut random = self.random("settings");
        let mut limits = AgentLimits::default();
        match random.below(4) {
            0 => limits.turns = [1, 2, 3][random.below(3)],
            1 => limits.calls = [0, 1, 2, 3, 4][random.below(5)],
            2 => limits.tokens = Some(600 + random.below(3000) as u64),
            _ => {}
        }
        let helper = agent("helper").limits(limits).build().unwrap();
        let leader = agent("leader").subagent("helper", "Helps.", helper.clone());
        let policy = Policy::default()
            .concurrent([0, 1, 2, 32][random.below(4)])
            .writes([Writes::AtOnce, Writes::AtEndOfTurn][random.below(2)])
            .result_limit([200, 64 << 10][random.below(2)]);
        agent("main")
            .subagent("helper", "Helps.", helper)
            .subagent("leader", "Leads.", leader.build().unwrap())
            .dialect(self.dialect())
            .policy(policy)
            .gate(TagGate(Arc::clone(self)))
            .build()
            .unwrap()
    }

    async fn work(&self, name: &str, tag: &str) -> plaincall_agent::plaincall::ToolResult {
        self.happens(&format!("start {tag} {name}"), is_nested(tag))
            .await;
        let mut random = self.random(&format!("{name} {tag}"));
        sleep(Duration::from_millis(match name {
            "slow" => 20,
            _ => random.below(4) as u64,
        }))
        .await;
        self.happens(&format!("end {tag}"), is_nested(tag)).await;
        match random.below(8) {
            0 => Err("it fails".into()),
            1 => Ok("long ".repeat(300)),
            2 => Ok(String::new()),
            _ => Ok(format!("{tag} is done")),
        }
    }
}

/// A model of an agent.
struct Scripted {
    name: &'static str,
    program: Arc<Program>,
}

impl Model for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let mut messages = request.messages.iter();
        let first = messages.find(|one| one.role == Role::User).unwrap();
        let task = first.text.split(char::is_whitespace).next().unwrap();
        let task = task.to_owned();
        let replies = request.messages.iter();
        let number = replies.filter(|one| one.role == Role::Assistant).count();
        let read: Vec<String> = request.messages[1..]
            .iter()
            .map(|one| format!("{:?}: {}", one.role, one.text))
            .collect();
        let program = Arc::clone(&self.program);
        let script = program.script(self.name, &task, number);
        Reply::new(move |out| async move {
            let is_nested = task != MAIN;
            let read = serde_json::to_string(&read).unwrap();
            let ask = format!("ask {task} {number} {read}");
            program.happens(&ask, is_nested).await;
            let mut random = program.random(&format!("pace of {task} {number}"));
            let longest = [5, 40, 2000][random.below(3)];
            let mut rest = &*script.text;
            while !rest.is_empty() {
                let mut at = longest.min(rest.len());
                while !rest.is_char_boundary(at) {
                    at += 1;
                }
                let (piece, behind) = rest.split_at(at);
                out.text(piece.to_owned()).await;
                rest = behind;
                if random.below(8) == 0 {
                    sleep(Duration::from_millis(2)).await;
                }
            }
            program
                .happens(&format!("said {task} {number}"), is_nested)
                .await;
            if let Some(usage) = script.usage {
                out.usage(usage).await;
            }
            Ok(Finish::new(script.stop))
        })
    }
}

/// Denies some calls.
struct TagGate(Arc<Program>);

impl Gate for TagGate {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let arguments = &request.arguments;
            let tag = arguments.get("tag").or(arguments.get("task"));
            let tag = tag.unwrap_or_default();
            let what = format!("gate {tag}");
            self.0.happens(&what, is_nested(tag)).await;
            Ok(match self.0.random(&what).below(10) {
                0 => Decision::deny("not this one"),
                _ => Decision::Allow,
            })
        })
    }
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
