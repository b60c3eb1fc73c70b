//! The loop of the arms that do not use Plaincall: native calls, and JSON in the prompt. It is what programs write by hand,
//! with the same tools, limits and chances to correct a call as Plaincall's agent.

use std::collections::HashMap;
use std::sync::Arc;

use plaincall::{AllowAll, Run, Status, Stop, Toolbox, Turn};
use plaincall_agent::model::{
    Message, Model as _, ModelRequest, NativeCall, NativeMessage, NativeRequest, NativeTool, Piece,
    ReplyNext, Retrying,
};
use plaincall_agent::{Finish, ModelError, Retries, Role, Usage};
use serde_json::Value;

use crate::arm::Arm;
use crate::attempt::{CALLS, REPAIRS, REPLIES, SAME_FAILURE, THINK};
use crate::handbook;
use crate::json_call::{Found, find_calls};
use crate::json_prompt;
use crate::lenient_json;
use crate::observed::Shared;
use crate::world::World;

/// Bytes of a token, for an estimate.
const TOKEN_BYTES: usize = 4;

/// How often each call has failed, by its tool and its arguments.
type Failures = HashMap<(String, String), u32>;

/// The resources that an attempt used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) replies: u32,
    pub(crate) calls: u32,
    pub(crate) well_formed: u32,
    pub(crate) succeeded: u32,
    pub(crate) unclosed: u32,
    pub(crate) usage: Usage,
    pub(crate) is_estimated: bool,
}

/// Why an attempt has no answer.
pub(crate) enum Ended {
    Failed(String),
    Server(ModelError),
}

/// A reply of the model.
#[derive(Default)]
struct ModelReply {
    text: String,
    calls: Vec<NativeCall>,
    usage: Option<Usage>,
}

/// A call as data, or the reason why it is not a call.
struct Wanted {
    /// The id of a native call.
    id: String,
    name: String,
    arguments: Result<Value, String>,
}

struct History {
    is_native: bool,
    tools: Arc<[NativeTool]>,
    messages: Vec<NativeMessage>,
}

pub(crate) async fn play(
    model: Shared,
    world: &World,
    tools: Toolbox,
    arm: Arm,
) -> (Counts, Result<String, Ended>) {
    let mut counts = Counts::default();
    let ended = converse(model, world, tools, arm, &mut counts).await;
    (counts, ended)
}

async fn converse(
    model: Shared,
    world: &World,
    tools: Toolbox,
    arm: Arm,
    counts: &mut Counts,
) -> Result<String, Ended> {
    let is_native = arm.is_native();
    let mut retries = Retries::default();
    if is_native {
        // A server that cannot parse a call answers with an error each time.
        retries.max_retries = 1;
    }
    let model = Retrying::new(model, retries);
    let run = Run::builder(tools).gate(AllowAll).build();
    let mut run = run.map_err(|error| Ended::Failed(error.to_string()))?;
    let mut history = History::new(world, arm);
    let mut failures = Failures::new();
    let mut wrong = 0;
    while counts.replies < REPLIES {
        let written = reply(&model, &history, counts).await?;
        let wanted = wanted(&written, is_native, world);
        if wanted.is_empty() {
            return Ok(written.text);
        }
        history.messages.push(NativeMessage::Assistant {
            text: written.text,
            calls: written.calls,
        });
        let turn = run.turn();
        let (results, statuses) = execute(turn, wanted, is_native, counts, &mut failures).await?;
        history.messages.extend(results);
        let has = |status| statuses.contains(&status);
        wrong = match (has(Status::Ok), has(Status::Rejected)) {
            (true, _) => 0,
            (false, true) => wrong + 1,
            (false, false) => wrong,
        };
        if wrong > REPAIRS {
            let why = "the model's calls are still invalid after repair messages";
            return Err(Ended::Failed(why.to_owned()));
        }
    }
    Err(Ended::Failed(format!("no answer after {REPLIES} replies")))
}

/// Executes the calls of a reply, one after the other. Returns the messages with their results, and how they ended.
async fn execute(
    mut turn: Turn<'_>,
    wanted: Vec<Wanted>,
    is_native: bool,
    counts: &mut Counts,
    failures: &mut Failures,
) -> Result<(Vec<NativeMessage>, Vec<Status>), Ended> {
    let (mut messages, mut statuses) = (Vec::new(), Vec::new());
    let mut all = String::new();
    for (number, call) in wanted.into_iter().enumerate() {
        counts.calls += 1;
        if counts.calls > CALLS {
            return Err(Ended::Failed(format!("more than {CALLS} calls")));
        }
        let key = (call.name.clone(), format!("{:?}", call.arguments));
        let (status, mut text) = match call.arguments {
            Err(error) => (Status::Rejected, error),
            Ok(arguments) => {
                let result = turn.submit(&call.name, arguments).await;
                let text = result.error.or(result.output);
                (result.status, text.unwrap_or_default().to_string())
            }
        };
        counts.well_formed += u32::from(status != Status::Rejected);
        counts.succeeded += u32::from(status == Status::Ok);
        statuses.push(status);
        if status != Status::Ok {
            text.insert_str(0, "Error: ");
            let count = failures.entry(key).or_default();
            *count += 1;
            if *count >= SAME_FAILURE {
                let why = format!("the model repeats a failing call of `{}`", call.name);
                return Err(Ended::Failed(why));
            }
        }
        if is_native {
            let id = call.id;
            messages.push(NativeMessage::Result { id, text });
        } else {
            all.push_str(&json_prompt::result(number + 1, &call.name, &text));
        }
    }
    drop(turn.finish(Stop::Natural).await);
    if !is_native {
        messages.push(NativeMessage::User(all));
    }
    Ok((messages, statuses))
}

/// Asks for a reply, and counts it.
async fn reply(
    model: &Retrying,
    history: &History,
    counts: &mut Counts,
) -> Result<ModelReply, Ended> {
    let mut written = ModelReply::default();
    let mut reply = model.reply(history.request());
    let finish = loop {
        match reply.next().await {
            Some(Ok(ReplyNext::Piece(Piece::Text(text)))) => written.text.push_str(&text),
            Some(Ok(ReplyNext::Piece(Piece::Call(call)))) => written.calls.push(call),
            Some(Ok(ReplyNext::Piece(Piece::Usage(usage)))) => written.usage = Some(usage),
            Some(Ok(ReplyNext::Piece(_))) => {}
            Some(Ok(ReplyNext::Finish(finish))) => break finish,
            Some(Err(error)) => return Err(Ended::Server(error)),
            None => break Finish::new(Stop::Broken),
        }
    };
    counts.replies += 1;
    let calls = written.calls.iter();
    let output: usize = calls
        .map(|call| call.name.len() + call.arguments.len())
        .sum();
    let tokens = |bytes: usize| (bytes / TOKEN_BYTES) as u64;
    let usage = match written.usage {
        Some(usage) if usage.input > 0 => usage,
        _ => {
            counts.is_estimated = true;
            Usage::new(tokens(history.bytes()), tokens(output + written.text.len()))
        }
    };
    counts.usage.add(usage);
    if finish.stop == Stop::Length {
        return Err(Ended::Failed(
            "the model's reply was truncated by its length limit".to_owned(),
        ));
    }
    // Reasoning at the beginning is not part of the reply.
    if let Some(rest) = written.text.trim_start().strip_prefix(THINK)
        && let Some((_, rest)) = rest.split_once("</think>")
    {
        written.text = rest.to_owned();
    }
    Ok(written)
}

/// The calls of a reply.
fn wanted(written: &ModelReply, is_native: bool, world: &World) -> Vec<Wanted> {
    if !is_native {
        let is_tool = |name: &str| world.task.tools.iter().any(|tool| tool == name);
        let found = find_calls(&written.text, is_tool).into_iter();
        let found = found.map(|found| match found {
            Found::Call { name, arguments } => Wanted {
                id: String::new(),
                name,
                arguments: Ok(arguments),
            },
            Found::Invalid { error } => Wanted {
                id: String::new(),
                name: "invalid".to_owned(),
                arguments: Err(json_prompt::invalid(&error)),
            },
        });
        return found.collect();
    }
    let calls = written.calls.iter().map(|call| {
        let text = call.arguments.trim();
        let text = if text.is_empty() { "{}" } else { text };
        let arguments = lenient_json::parse(text);
        Wanted {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: arguments.map_err(|error| json_prompt::invalid(&error)),
        }
    });
    calls.collect()
}

impl History {
    fn new(world: &World, arm: Arm) -> Self {
        let is_native = arm.is_native();
        let task = &world.task;
        let mut system = handbook::system(task.is_agent_sized);
        let tools: Arc<[NativeTool]> = world.native_tools().into();
        if !is_native {
            system = json_prompt::system(&tools) + "\n" + &system;
        }
        let mut messages = vec![NativeMessage::System(system)];
        if arm.has_examples() {
            messages.extend(json_prompt::examples(&task.tools));
        }
        messages.push(NativeMessage::User(task.question.clone()));
        Self {
            is_native,
            tools,
            messages,
        }
    }

    fn request(&self) -> ModelRequest {
        if self.is_native {
            let mut request = ModelRequest::new([]);
            request.native = Some(Arc::new(NativeRequest::new(
                Arc::clone(&self.tools),
                self.messages.clone(),
            )));
            return request;
        }
        let messages = self.messages.iter().map(|message| match message {
            NativeMessage::System(text) => Message::new(Role::System, text.as_str()),
            NativeMessage::Assistant { text, .. } => Message::new(Role::Assistant, text.as_str()),
            NativeMessage::User(text) | NativeMessage::Result { text, .. } => {
                Message::new(Role::User, text.as_str())
            }
        });
        ModelRequest::new(messages.collect::<Vec<_>>())
    }

    fn bytes(&self) -> usize {
        let messages = self.messages.iter().map(|message| match message {
            NativeMessage::System(text)
            | NativeMessage::User(text)
            | NativeMessage::Result { text, .. } => text.len(),
            NativeMessage::Assistant { text, calls } => {
                let calls = calls.iter().map(|call| call.arguments.len());
                text.len() + calls.sum::<usize>()
            }
        });
        let mut bytes = messages.sum();
        if self.is_native {
            bytes += json_prompt::definitions(&self.tools).len();
        }
        bytes
    }
}
