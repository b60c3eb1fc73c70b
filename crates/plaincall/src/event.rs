//! What happens in a run, as it happens. As JSON each event is one line of the record (`spec/log.md`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Stop, Untrusted};
use serde::{Deserialize, Serialize};

use crate::call_arguments::{ArgumentTexts, SubmittedArguments};
use crate::held::HeldReason;
use crate::milliseconds;
use crate::policy::Policy;
use crate::result::{CallResult, StatusCounts};
use crate::rules::Rules;
use crate::source::Source;
use crate::tool_policy::ToolBegin;

/// Something that happened in a run (`spec/log.md`, "Events"). Times are counted from the beginning of the run; in the
/// record they are `t_ms`, in whole milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run begins, or somebody begins to listen: what holds for all of it.
    Run(Box<RunBegin>),
    /// The run was taken up again from its log.
    Resumed(Resumed),
    /// The log ended in a damaged line that may have been the start of a call of a tool that writes.
    DamagedEnd(DamagedEnd),
    /// The model was given a text from outside.
    Untrusted(UntrustedText),
    /// The program gave the model a message.
    Message(Message),
    /// A turn was opened.
    Turn(TurnBegin),
    /// The next piece of the reply has arrived.
    Text(Delta),
    /// A call has appeared: its header has been read, its text is still arriving.
    Call(Appeared),
    /// A call is complete and waits for what it depends on, or for a slot. Every complete call that is not wrong
    /// waits, if only for a moment.
    Waiting(Completed),
    /// Nothing but the gate stands in the call's way.
    Ready(AwaitingApproval),
    /// The gate has let the call pass.
    Admitted(Admission),
    /// The tool has been started.
    Start(Started),
    /// The tool has failed and will be started once more after a while.
    BackOff(BackOff),
    /// That while is over.
    Retry(CallRef),
    /// The call has ended; every call does, exactly once.
    Result(CallResult),
    /// All calls of the turn are cancelled, or one.
    Cancel(Cancel),
    /// The reply is over; its calls may still run.
    ReplyEnd(ReplyEnd),
    /// The turn is over and all its calls have ended.
    TurnEnd(TurnEnd),
    /// The log cannot be written any more, so nothing more is started. It is never in a log, and neither is any event
    /// that comes after it.
    LogFailed(LogFailed),
    /// Whoever listens was too slow, and so many events were lost to it. It is never in a log.
    Lagged(Lagged),
}

/// What holds for the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunBegin {
    /// The version of the record's form; [`LOG_VERSION`](crate::log::LOG_VERSION) in what is written now.
    pub version: u32,
    /// The version of Plaincall that began it.
    pub plaincall: String,
    /// When it began, in milliseconds since 1970 (UTC).
    pub began_unix_ms: u64,
    /// Limits and order.
    pub policy: Policy,
    /// The rules of the run. Where the run is taken up again, the rules that it has then count.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub rules: Rules,
    /// The tools and how they may run, by name.
    pub tools: BTreeMap<String, ToolBegin>,
    /// The directory in which the run was started, if a tool uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_directory: Option<String>,
    /// The run's scratch directory, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectoryBegin>,
    /// What the program that began the run wants to know again: [`RunBuilder::note`](crate::RunBuilder::note).
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub note: serde_json::Value,
}

/// The run's scratch directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryBegin {
    /// Where it is.
    pub path: String,
    /// Whether it goes away with the run.
    pub temporary: bool,
}

/// Whose words a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The user's.
    User,
    /// The program's own.
    Program,
}

/// Who let a call pass.
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

/// Events that were lost to a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lagged {
    /// How many.
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
        pub struct $name {
            /// The call's place in order of appearance, from 0, unique over the conversation.
            pub call: u32,
            /// Its id.
            pub id: Arc<str>,
            /// The name of its tool, as written.
            pub name: Arc<str>,
            $($own)*
            /// When it happened.
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
        pub struct $name {
            $($own)*
            /// When it happened.
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

    /// The run was taken up again. The time in which nothing ran is not counted.
    struct Resumed {}

    /// Takes the place of a damaged last line that may have been the start of a call of a tool that writes. Every such call
    /// that could have been started there counts as started. Its time is that of the line before it.
    struct DamagedEnd {
        /// How many bytes were there.
        pub bytes: usize,
    }

    /// A text from outside that the model was given.
    struct UntrustedText {
        /// Its number, from 0.
        pub number: u32,
        /// What it is called.
        pub name: Arc<str>,
        /// The part of it that a call could have been copied from, if there is any: from the line on that holds its first
        /// start marker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<Arc<Untrusted<'static>>>,
    }

    /// A message that the program gave the model.
    struct Message {
        /// Whose words it holds.
        pub author: Author,
        /// The message as the model reads it.
        pub text: Arc<str>,
    }

    /// A turn was opened.
    struct TurnBegin {
        /// Its number, from 0.
        pub turn: u32,
        /// How many calls it may hold, if it has a limit of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub calls: Option<u32>,
    }

    /// A piece of the reply, as it arrived.
    struct Delta {
        /// Its text, or its bytes.
        #[serde(flatten)]
        pub source: Source,
    }

    /// A call whose header has been read.
    struct Appeared of a call {
        /// The ids that it names as dependencies.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        pub dependencies: Arc<[String]>,
        /// Its arguments, if it was [submitted](crate::Turn::submit): no reply holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub submitted: Option<Arc<SubmittedArguments>>,
        /// The call whose tool has submitted it, if one has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub parent: Option<u32>,
    }

    /// A call that is complete.
    struct Completed of a call {
        /// The arguments as the tool gets them.
        pub arguments: ArgumentTexts,
    }

    /// A call that only the gate keeps from running.
    struct AwaitingApproval of a call {
        /// Why it is held, if it is. Then no rule and no earlier answer lets it pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub held: Option<HeldReason>,
    }

    /// A call that may run.
    struct Admission of a call {
        /// Who decided.
        pub by: AdmittedBy,
        /// Whether all later calls of this tool may run too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub always: bool,
        /// The arguments it runs with, if they are not those that were written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub arguments: Option<ArgumentTexts>,
    }

    /// A tool that has been started.
    struct Started of a call {
        /// Which start of the call it is, from 1.
        pub attempt: u32,
    }

    /// A tool that has failed and will be started again.
    struct BackOff of a call {
        /// What went wrong.
        pub error: Arc<str>,
        /// How long it waits.
        #[serde(rename = "wait_ms", with = "milliseconds")]
        pub wait: Duration,
    }

    /// All calls of the turn are cancelled, or one.
    struct Cancel {
        /// The call, if it is one alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub call: Option<u32>,
        /// Why, as the beginning of a sentence that goes on with "before the call was started".
        pub reason: Arc<str>,
        /// Whether it is because the time of the turn is over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub timed_out: bool,
    }

    /// The end of a reply.
    struct ReplyEnd {
        /// How it ended.
        pub stop: Stop,
    }

    /// The end of a turn.
    struct TurnEnd {
        /// Its number, from 0. A turn that was dropped may end after the next one has begun.
        pub turn: u32,
        /// How many calls of the turn ended how.
        pub counts: StatusCounts,
    }

    /// The log cannot be written any more.
    struct LogFailed {
        /// Why.
        pub error: Arc<str>,
    }
}

impl RunEvent {
    /// The call it is about, if it is about one.
    pub fn call(&self) -> Option<u32> {
        match self {
            Self::Call(event) => Some(event.call),
            Self::Waiting(event) => Some(event.call),
            Self::Ready(event) => Some(event.call),
            Self::Retry(event) => Some(event.call),
            Self::Admitted(event) => Some(event.call),
            Self::Start(event) => Some(event.call),
            Self::BackOff(event) => Some(event.call),
            Self::Result(event) => Some(event.call),
            Self::Cancel(event) => event.call,
            _ => None,
        }
    }

    /// When it happened, counted from the beginning of the run.
    pub fn at(&self) -> Duration {
        match self {
            Self::Run(_) | Self::Lagged(_) => Duration::ZERO,
            Self::Resumed(event) => event.at,
            Self::DamagedEnd(event) => event.at,
            Self::Untrusted(event) => event.at,
            Self::Message(event) => event.at,
            Self::Turn(event) => event.at,
            Self::Text(event) => event.at,
            Self::Call(event) => event.at,
            Self::Waiting(event) => event.at,
            Self::Ready(event) => event.at,
            Self::Retry(event) => event.at,
            Self::Admitted(event) => event.at,
            Self::Start(event) => event.at,
            Self::BackOff(event) => event.at,
            Self::Result(event) => event.times.ended,
            Self::Cancel(event) => event.at,
            Self::ReplyEnd(event) => event.at,
            Self::TurnEnd(event) => event.at,
            Self::LogFailed(event) => event.at,
        }
    }
}
