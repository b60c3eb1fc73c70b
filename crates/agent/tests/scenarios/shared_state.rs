//! The environment of a scenario: real tools, and a gate and a user with scripted answers.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall_agent::plaincall::gate::GateFuture;
use plaincall_agent::plaincall::policy::Retry;
use plaincall_agent::plaincall::schemars::{self, JsonSchema};
use plaincall_agent::plaincall::tool::Arguments;
use plaincall_agent::plaincall::{
    BoxError, Context, Decision, Effect, Gate, Request, Tool, ToolResult, Toolbox,
};
use plaincall_agent::{User, UserFuture};
use serde::Deserialize;
use tokio::sync::Barrier;
use tokio::time::sleep;

use crate::scenarios::live::Live;

/// The state that the tools, the gate and the user of one scenario share.
#[derive(Debug)]
pub(crate) struct SharedState {
    /// The text that `read` returns.
    pub(crate) files: Mutex<BTreeMap<String, String>>,
    /// The executed calls, with their arguments.
    pub(crate) ran: Mutex<Vec<String>>,
    gate: Mutex<VecDeque<String>>,
    user: Mutex<VecDeque<String>>,
    both: Barrier,
    pub(crate) tools: Live,
    pub(crate) people: Live,
}

/// Reads a file.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Read {
    path: String,
}

/// Writes a file.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Write {
    path: String,
    text: String,
}

/// Adds two numbers.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Add {
    a: i64,
    b: i64,
}

/// Returns this many lines.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Big {
    lines: usize,
}

/// Takes a word.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Word {
    word: String,
}

/// Takes a text.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Text {
    text: String,
}

impl SharedState {
    pub(crate) fn new(gate: &[String], user: &[String]) -> Arc<Self> {
        Arc::new(Self {
            files: Mutex::default(),
            ran: Mutex::default(),
            gate: Mutex::new(gate.iter().cloned().collect()),
            user: Mutex::new(user.iter().cloned().collect()),
            both: Barrier::new(2),
            tools: Live::default(),
            people: Live::default(),
        })
    }

    /// Sets the files, whose calls `spell` writes.
    pub(crate) fn fill(&self, files: &BTreeMap<String, String>, spell: impl Fn(&str) -> String) {
        let files = files.iter().map(|(path, text)| (path.clone(), spell(text)));
        self.files.lock().unwrap().extend(files);
    }

    /// The tools with these names, or all.
    pub(crate) fn toolbox(self: &Arc<Self>, names: Option<&[String]>) -> Toolbox {
        let wait = Duration::from_millis(2);
        let retry = Retry::attempts(3).waits(wait, wait);
        let all = [
            self.tool("read", |shared, read: Read, _| async move {
                let found = shared.files.lock().unwrap().get(&read.path).cloned();
                found.ok_or_else(|| format!("there is no file {}", read.path).into())
            }),
            self.tool("write", |shared, write: Write, _| async move {
                let mut files = shared.files.lock().unwrap();
                files.insert(write.path, write.text);
                Ok("written".to_owned())
            })
            .effect(Effect::Write)
            .body("text"),
            self.tool("add", |_, add: Add, _| async move {
                Ok((add.a + add.b).to_string())
            }),
            self.tool("big", |_, big: Big, _| async move {
                let lines = (0..big.lines).map(|line| format!("line {line} of a long result\n"));
                Ok(lines.collect::<Vec<_>>().concat())
            }),
            // Two of them meet, or neither continues: they run at the same time.
            self.tool("meet", |shared, word: Word, _| async move {
                shared.both.wait().await;
                Ok(format!("{} was there", word.word))
            }),
            self.tool("slow", |_, word: Word, _| async move {
                sleep(Duration::from_millis(15)).await;
                Ok(format!("{} at last", word.word))
            }),
            self.tool("hang", |_, _: Word, _| pending()),
            self.tool("short", |_, _: Word, _| pending())
                .timeout(Duration::from_millis(10)),
            self.tool(
                "fail",
                |_, text: Text, _| async move { Err(text.text.into()) },
            ),
            self.tool(
                "crash",
                |_, _: Word, _| async move { panic!("a tool panics") },
            ),
            self.tool("flaky", |shared, word: Word, _| async move {
                let ran = shared
                    .ran
                    .lock()
                    .unwrap()
                    .iter()
                    .filter(|ran| ran.starts_with("flaky"))
                    .count();
                if ran < 3 {
                    Err("not yet".into())
                } else {
                    Ok(format!("{} now", word.word))
                }
            })
            .retry(retry),
            // Its output depends on its dependencies.
            self.tool("join", |_, _: Word, context| async move {
                let outputs = context.dependencies().iter().map(|one| &*one.output);
                Ok(outputs.collect::<Vec<_>>().join("+"))
            }),
            self.tool("finish", |_, text: Text, _| async move { Ok(text.text) })
                .finishes(),
            self.tool("ask", |shared, text: Text, _| async move {
                shared.say(&text.text).await
            }),
        ];
        let is_wanted =
            |tool: &Tool| names.is_none_or(|names| names.iter().any(|name| name == tool.name()));
        Toolbox::new(all.into_iter().filter(is_wanted)).unwrap()
    }

    fn tool<A, F, R>(self: &Arc<Self>, name: &'static str, function: F) -> Tool
    where
        A: plaincall_agent::plaincall::tool::ToolArguments + 'static,
        F: Fn(Arc<Self>, A, Context) -> R + Send + Sync + Clone + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        let shared = Arc::clone(self);
        let spec = plaincall_agent::plaincall::tool::ToolSpec::of::<A>(name);
        Tool::raw(spec, move |arguments: Arguments, context| {
            let shared = Arc::clone(&shared);
            let function = function.clone();
            async move {
                let _live = shared.tools.one();
                let words = arguments.iter().map(|argument| argument.text.to_owned());
                let words: Vec<String> = std::iter::once(name.to_owned()).chain(words).collect();
                shared.ran.lock().unwrap().push(words.join(" "));
                let arguments = arguments.to::<A>()?;
                function(Arc::clone(&shared), arguments, context).await
            }
        })
        .effect(Effect::Read)
    }

    /// The user's next answer.
    async fn say(&self, question: &str) -> Result<String, BoxError> {
        let _live = self.people.one();
        let answer = self.user.lock().unwrap().pop_front();
        let answer = answer.unwrap_or_else(|| panic!("the user is asked: {question}"));
        match answer.split_once(": ") {
            Some(("error", why)) => Err(why.into()),
            _ if answer == "hang" => pending().await,
            _ => Ok(answer),
        }
    }
}

/// The gate.
pub(crate) struct WrittenGate(pub(crate) Arc<SharedState>);

impl Gate for WrittenGate {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let _live = self.0.people.one();
            let answer = self.0.gate.lock().unwrap().pop_front();
            let answer = answer.unwrap_or_else(|| panic!("the gate is asked about {request:?}"));
            let (word, rest) = answer.split_once([':', ' ']).unwrap_or((&answer, ""));
            match word {
                "allow" => Ok(Decision::Allow),
                "always" => Ok(Decision::Always),
                "deny" => Ok(Decision::deny(rest.trim())),
                "error" => Err(rest.trim().into()),
                "panic" => panic!("a gate panics"),
                "hang" => pending().await,
                "edit" => {
                    let pairs = rest.split(' ').map(|pair| pair.split_once('=').unwrap());
                    Ok(Decision::Edit {
                        arguments: Arguments::from_pairs(pairs)?,
                    })
                }
                _ => panic!("no answer of a gate: {answer}"),
            }
        })
    }
}

/// The user.
pub(crate) struct WrittenUser(pub(crate) Arc<SharedState>);

impl User for WrittenUser {
    fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a> {
        Box::pin(self.0.say(question))
    }
}
