//! The events of a run. As JSON, each event is one line of the log (`spec/log.md`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plaincall_prompt::few_shot::ShownCall;
use plaincall_reply::{Stop, Untrusted, untrusted::in_record};
use serde::{Deserialize, Serialize};

use crate::call_arguments::{ArgumentTexts, SubmittedArguments};
use crate::held::HeldReason;
use crate::milliseconds;
use crate::policy::Policy;
use crate::result::{CallResult, StatusCounts};
use crate::rules::Rules;
use crate::source::Source;
use crate::tool_policy::ToolBegin;
use crate::usage::Usage;

/// An event of a run (`spec/log.md`, "Events"). Times count from the start of the run; in JSON they are `t_ms`, in whole
/// milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run started. Every subscriber gets it first.
    Run(Box<RunBegin>),
    /// The run was resumed from its log.
    Resumed(Resumed),
    /// The log ended in a damaged line that may have been the start of a call of a tool that writes.
    DamagedEnd(DamagedEnd),
    /// The model reads examples of calls.
    Examples(ShownExamples),
    /// The model received an untrusted text.
    Untrusted(UntrustedText),
    /// The program sent the model a message.
    Message(Message),
    /// A turn started.
    Turn(TurnBegin),
    /// A part of the reply arrived.
    Text(Delta),
    /// A call appeared: its header was parsed, its text is still arriving.
    Call(Appeared),
    /// A call is complete and valid, and waits for its dependencies.
    Waiting(Completed),
    /// The call waits for approval.
    Ready(AwaitingApproval),
    /// The call was approved.
    Admitted(Admission),
    /// The tool started.
    Start(Started),
    /// A part of a subagent's reply arrived, or the reply ended.
    SubagentText(SubagentText),
    /// The tool failed and will be retried after a delay.
    BackOff(BackOff),
    /// The delay is over.
    Retry(CallRef),
    /// The call ended. Every call ends exactly once.
    Result(CallResult),
    /// All calls of the turn were cancelled, or one call.
    Cancel(Cancel),
    /// The reply ended; its calls may still run.
    ReplyEnd(ReplyEnd),
    /// The reply and all calls of the turn have ended.
    TurnEnd(TurnEnd),
    /// The log cannot be written, so no further call starts. Neither this nor any later event is in the log.
    LogFailed(LogFailed),
    /// The subscriber was too slow and lost events. Never in a log.
    Lagged(Lagged),
}

/// The settings of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunBegin {
    /// The version of the format, [`LOG_VERSION`](crate::log::LOG_VERSION).
    pub version: u32,
    /// The version of Plaincall that started the run.
    pub plaincall: String,
    /// The start of the run, in milliseconds since 1970 (UTC).
    pub began_unix_ms: u64,
    /// Limits and order.
    pub policy: Policy,
    /// The rules of the run. A resumed run uses its own rules instead.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub rules: Rules,
    /// The settings of the tools, by name.
    pub tools: BTreeMap<String, ToolBegin>,
    /// The working directory of the run, if a tool uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_directory: Option<String>,
    /// The run's scratch directory, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectoryBegin>,
    /// Data of the program: [`RunBuilder::note`](crate::RunBuilder::note).
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub note: serde_json::Value,
}

/// The run's scratch directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DirectoryBegin {
    /// Its path.
    pub path: String,
    /// Whether the directory is removed with the run.
    pub temporary: bool,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The user.
    User,
    /// The program.
    Program,
}

/// The origin of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdmittedBy {
    /// A rule of the run.
    Rule,
    /// An earlier answer for all calls of this tool.
    Always,
    /// The gate.
    Gate,
}

/// Events that a subscriber lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lagged {
    /// The number of events.
    pub count: u64,
}

/// Defines events: each has when it happened as its last field, and those of a call begin with that.
macro_rules! events {
    (
        $(#[$about:meta])*
        struct $name:ident of a call { $($own:tt)* }
        $($more:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            /// The index of the call in order of appearance, from 0, over the whole conversation.
            pub call: u32,
            /// Its id.
            pub id: Arc<str>,
            /// The name of its tool, as written.
            pub name: Arc<str>,
            $($own)*
            /// The time of the event.
            #[serde(rename = "t_ms", with = "milliseconds")]
            pub at: Duration,
        }
        events! { $($more)* }
    };
    (
        $(#[$about:meta])*
        struct $name:ident { $($own:tt)* }
        $($more:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            $($own)*
            /// The time of the event.
            #[serde(rename = "t_ms", with = "milliseconds")]
            pub at: Duration,
        }
        events! { $($more)* }
    };
    () => {};
}

events! {
    /// A call and a time.
    struct CallRef of a call {}

    /// The run was resumed: everything that was running was interrupted. The time in between does not count. With a call, only
    /// that one was interrupted, and the others continue.
    struct Resumed {
        /// The index of the only call that was interrupted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub call: Option<u32>,
        /// The settings of the tools from here on, by name, if any has changed or is new.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub tools: BTreeMap<String, ToolBegin>,
    }

    /// Replaces a damaged last line that may have been the start of a call of a tool that writes. Every such call that could
    /// have started there counts as started. The time is that of the line before it.
    struct DamagedEnd {
        /// The number of bytes that it replaces.
        pub bytes: usize,
    }

    /// The calls of the examples that the model reads as messages. They replace earlier ones.
    struct ShownExamples {
        /// The calls.
        pub calls: Arc<[ShownCall]>,
    }

    /// An untrusted text that the model received.
    struct UntrustedText {
        /// Its number, from 0.
        pub number: u32,
        /// Its name.
        pub name: Arc<str>,
        /// The part from which a call could be copied, if any: from the line of the first start marker.
        #[serde(with = "in_record", default, skip_serializing_if = "Option::is_none")]
        pub text: Option<Arc<Untrusted<'static>>>,
    }

    /// A message that the program sent to the model.
    struct Message {
        /// Its author.
        pub author: Author,
        /// The message as the model reads it.
        pub text: Arc<str>,
    }

    /// A turn was opened.
    struct TurnBegin {
        /// Its number, from 0.
        pub turn: u32,
        /// Its own limit of calls, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub calls: Option<u32>,
    }

    /// A part of the reply, as it arrived.
    struct Delta {
        /// Its text, or its bytes.
        #[serde(flatten)]
        pub source: Source,
    }

    /// A call whose header was parsed.
    struct Appeared of a call {
        /// The ids that it names as dependencies.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        pub dependencies: Arc<[String]>,
        /// Its arguments, if it was [submitted](crate::Turn::submit).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub submitted: Option<Arc<SubmittedArguments>>,
        /// The call whose tool submitted it, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub parent: Option<u32>,
    }

    /// A call that is complete.
    struct Completed of a call {
        /// The arguments for the tool.
        pub arguments: ArgumentTexts,
    }

    /// A call that waits for approval.
    struct AwaitingApproval of a call {
        /// The reason if the call is held. Then only the gate can approve it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub held: Option<HeldReason>,
    }

    /// An approved call.
    struct Admission of a call {
        /// The origin of the approval.
        pub by: AdmittedBy,
        /// The reason, if the gate stated one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<Arc<str>>,
        /// Whether all later calls of this tool are approved too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub always: bool,
        /// The arguments, if they were edited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub arguments: Option<ArgumentTexts>,
    }

    /// A started tool.
    struct Started of a call {
        /// The number of the attempt, from 1.
        pub attempt: u32,
    }

    /// A part of a reply in the conversation that a call runs.
    struct SubagentText of a call {
        /// Its text.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        pub text: Arc<str>,
        /// How the reply ended, if this is its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Stop>,
        /// The tokens of the reply, if this is its end and they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
    }

    /// A failed tool that will be retried.
    struct BackOff of a call {
        /// The error.
        pub error: Arc<str>,
        /// The delay.
        #[serde(rename = "wait_ms", with = "milliseconds")]
        pub wait: Duration,
    }

    /// All calls of the turn are cancelled, or one.
    struct Cancel {
        /// The call, if only one was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub call: Option<u32>,
        /// The reason: the start of a sentence that continues with "before the call was started".
        pub reason: Arc<str>,
        /// Whether the turn timed out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub timed_out: bool,
    }

    /// The end of a reply.
    struct ReplyEnd {
        /// How it ended.
        pub stop: Stop,
        /// Its tokens, if they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
    }

    /// The end of a turn.
    struct TurnEnd {
        /// Its number, from 0. A dropped turn may end after the next one has started.
        pub turn: u32,
        /// The number of calls with each status.
        pub counts: StatusCounts,
    }

    /// The log cannot be written.
    struct LogFailed {
        /// The error.
        pub error: Arc<str>,
    }
}

impl UntrustedText {
    /// The run state sets its number and the time.
    pub(crate) fn new(name: &str, text: Option<Untrusted<'static>>) -> Self {
        Self {
            number: 0,
            // Messages contain the name in the middle of a sentence.
            name: name.replace(char::is_control, " ").into(),
            text: text.map(Arc::new),
            at: Duration::ZERO,
        }
    }
}

impl RunEvent {
    /// Returns the cancellation of all calls, or of one. The run state sets the time.
    pub(crate) fn cancel(call: Option<u32>, reason: impl Into<Arc<str>>) -> Self {
        Self::Cancel(Cancel {
            call,
            reason: reason.into(),
            timed_out: false,
            at: Duration::ZERO,
        })
    }

    /// Returns the end of a reply. The run state sets the time.
    pub(crate) const fn reply_end(stop: Stop, usage: Option<Usage>) -> Self {
        let at = Duration::ZERO;
        Self::ReplyEnd(ReplyEnd { stop, usage, at })
    }
}

/// Defines what all events have, from the list of those about a call and the list of the others that have a time.
macro_rules! access {
    ($($of_call:ident)+; $($other:ident)+) => {
        impl RunEvent {
            /// The names of all events after the first in a log, as they are written here.
            pub(crate) const NAMES: &[&str] =
                &["Result", $(stringify!($of_call),)+ $(stringify!($other)),+];

            /// Returns the index of the call, if the event is about one.
            pub fn call(&self) -> Option<u32> {
                match self {
                    $(Self::$of_call(event) => Some(event.call),)+
                    Self::Result(event) => Some(event.call),
                    Self::Cancel(event) => event.call,
                    _ => None,
                }
            }

            /// Returns the time of the event since the start of the run.
            pub fn at(&self) -> Duration {
                match self {
                    $(Self::$of_call(event) => event.at,)+
                    $(Self::$other(event) => event.at,)+
                    Self::Result(event) => event.times.ended,
                    Self::Run(_) | Self::Lagged(_) => Duration::ZERO,
                }
            }

            /// Sets the time of the event.
            pub(crate) fn set_at(&mut self, at: Duration) {
                match self {
                    $(Self::$of_call(event) => event.at = at,)+
                    $(Self::$other(event) => event.at = at,)+
                    Self::Result(event) => event.times.ended = at,
                    Self::Run(_) | Self::Lagged(_) => {}
                }
            }
        }
    };
}

access! {
    Call Waiting Ready Admitted Start SubagentText BackOff Retry;
    Resumed DamagedEnd Examples Untrusted Message Turn Text Cancel ReplyEnd TurnEnd LogFailed
}
