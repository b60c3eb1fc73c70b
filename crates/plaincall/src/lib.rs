//! Tool calling for any model that can write text.
//!
//! A model writes tool calls as plain text. This crate finds them while the text is still arriving, validates them, runs
//! them in dependency order, concurrently with the rest of the reply, and returns the results.
//!
//! ```
//! use plaincall::{BoxError, Effect, Run, Stop, Tool, Toolbox};
//!
//! /// Adds two numbers.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), BoxError> {
//!     let add = Tool::new("Add", |add: Add, _| async move { Ok((add.a + add.b).to_string()) })
//!         .effect(Effect::Read);
//!     let mut run = Run::new(Toolbox::new([add])?)?;
//!
//!     let mut turn = run.turn();
//!     for delta in ["Let me add.\n!!!GADGET_START:Ad", "d\n!!!ARG:a\n19\n!!!ARG:b\n23\n!!!GADGET_END\n"] {
//!         turn.feed(delta); // as the model writes
//!     }
//!     let results = turn.finish(Stop::Natural).await;
//!     assert_eq!(results[0].output.as_deref(), Some("42"));
//!     Ok(())
//! }
//! ```
//!
//! - [`Tool`]: a function with typed arguments, or a [`Command`]. [`Toolbox`]: a set of tools. [`read_tools`] reads
//!   commands, policy and rules from a file.
//! - [`Run`]: a conversation, configured with [`RunBuilder`]. [`Turn`]: one reply, from its first text to its results.
//! - [`Policy`], [`policy::ToolPolicy`]: limits and order of calls. [`Rules`]: what may run, as data.
//! - [`Gate`]: decides about calls that no rule decides about. Default: calls of tools that [write](Effect::Write) are denied.
//! - [`Run::observe_untrusted`]: records untrusted text that the model reads. A call that the model may have copied from it,
//!   or from a result, waits for the gate.
//! - [`RunEvents`] and [`Observer`]: events of a run.
//! - [`Log`]: the events as JSON lines in a file, from which a run can be resumed after a crash ([`Run::resume_turn`]).
//!
//! # Features
//!
//! - `tokio` (default): everything that runs calls. Without it, the crate has only data: events and their log, results,
//!   rules, policies and gates.
//! - `tracing`: spans for turns and calls.
//!
//! # Platforms
//!
//! Unix and Windows. Commands run in process groups, on Windows in job objects; scripts for `sh -c` need Unix. Without the feature
//! `tokio`, the crate also works on targets such as `wasm32-unknown-unknown`.
//!
//! The crates below are re-exported as [`syntax`] (text to events and back), [`reply`] (text to decided calls), [`prompt`] (texts
//! for a model), [`plan`] (the call graph) and [`names`]; the definitions of tools are in [`tool`]. `spec/running.md` in the repository defines how calls run.

#![cfg_attr(
    not(feature = "tokio"),
    allow(dead_code, unused_imports, reason = "used only to run calls")
)]

mod call_arguments;
mod cut;
mod event;
pub mod gate;
mod held;
pub mod log;
mod milliseconds;
pub mod policy;
mod request;
pub mod result;
pub mod rules;
mod source;
mod tool_error;
mod tool_policy;

#[cfg(feature = "tokio")]
mod attempt;
#[cfg(feature = "tokio")]
pub mod command;
#[cfg(feature = "tokio")]
mod context;
#[cfg(feature = "tokio")]
mod definition;
#[cfg(feature = "tokio")]
mod driver;
#[cfg(feature = "tokio")]
pub mod durable;
#[cfg(feature = "tokio")]
mod observers;
#[cfg(feature = "tokio")]
pub mod private;
#[cfg(feature = "tokio")]
pub mod process;
#[cfg(feature = "tokio")]
mod received;
#[cfg(feature = "tokio")]
mod replay;
#[cfg(feature = "tokio")]
pub mod run;
#[cfg(feature = "tokio")]
mod run_directory;
#[cfg(feature = "tokio")]
mod run_error;
#[cfg(feature = "tokio")]
mod run_state;
#[cfg(feature = "tokio")]
mod submit;
#[cfg(feature = "tokio")]
pub mod tool;
#[cfg(feature = "tokio")]
mod toolbox;
#[cfg(feature = "tokio")]
pub mod tools_file;
#[cfg(feature = "tokio")]
mod trace;
#[cfg(feature = "tokio")]
mod turn;
mod usage;
#[cfg(feature = "tokio")]
mod whole_results;

pub use plaincall_names as names;
pub use plaincall_plan as plan;
pub use plaincall_prompt as prompt;
pub use plaincall_reply as reply;
pub use plaincall_syntax as syntax;
#[cfg(not(feature = "tokio"))]
pub use plaincall_tool as tool;
pub use schemars;

pub use event::RunEvent;
pub use gate::{AllowAll, Decision, Gate, ReadOnly, Recovery};
pub use policy::Policy;
pub use request::Request;
pub use result::{CallResult, Status, TurnResults};
pub use rules::Rules;
pub use syntax::Dialect;
pub use tool_error::{BoxError, ToolResult};
pub use {names::Effect, reply::Stop};

#[cfg(feature = "tokio")]
pub use {
    command::Command,
    context::Context,
    log::Log,
    observers::{Observer, RunEvents},
    received::Received,
    run::{Canceller, Run, RunBuilder, RunError},
    submit::Submitted,
    tool::Tool,
    toolbox::{Toolbox, ToolboxError},
    tools_file::{ToolsFile, read_tools},
    turn::{Turn, TurnEvent},
};

/// The data of each [`RunEvent`].
pub mod events {
    pub use crate::call_arguments::{ArgumentTexts, SubmittedArguments};
    pub use crate::event::{
        Admission, AdmittedBy, Appeared, Author, AwaitingApproval, BackOff, CallRef, Cancel,
        Completed, DamagedEnd, Delta, DirectoryBegin, Lagged, LogFailed, Message, ReplyEnd,
        Resumed, RunBegin, ShownExamples, Started, SubagentText, TurnBegin, TurnEnd, UntrustedText,
    };
    pub use crate::held::HeldReason;
    #[cfg(feature = "tokio")]
    pub use crate::observers::EVENT_QUEUE;
    pub use crate::source::{Bytes, Source};
    pub use crate::tool_policy::ToolBegin;
    pub use crate::usage::Usage;
}

/// The Rust examples in documents.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools-in-rust.md")]
#[doc = include_str!("../../../docs/observing.md")]
#[doc = include_str!("../../../docs/talking-to-a-model.md")]
pub struct Documents;
