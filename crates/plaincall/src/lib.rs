//! Tool calling for any model that can write text.
//!
//! A model writes calls as plain text. This crate finds them while the text is still arriving, checks them, runs them
//! in dependency order and side by side while the model still writes, and hands the results back.
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
//! - [`Tool`]: a function of typed arguments, or a [`Command`]. [`Toolbox`]: tools with different names. [`read_tools`]
//!   reads commands, policy and rules from a file.
//! - [`Run`]: one conversation. [`Turn`]: one reply, fed with text, finished with its results.
//! - [`Policy`], [`ToolPolicy`]: limits and order of a run. [`Rules`]: what may run and what may not, as data.
//! - [`Gate`]: who decides about the rest. If nobody is asked, tools that [write](Effect::Write) may not.
//! - [`Run::observe_untrusted`]: texts from outside that the model was given. A call that it may have copied from one, or from a
//!   result, waits for the gate.
//! - [`RunEvents`] and [`Observer`]: what happens, as it happens; as JSON lines it is the record of a run.
//! - [`Log`]: the record in a file, from which a run is taken up again after a crash ([`RunBuilder::log`],
//!   [`Run::resume_turn`]). [`read_log`] reads it.
//!
//! Without the default feature `tokio` the crate has what is data: events and their log, results, rules, policies, gates.
//! The crates below are here as [`syntax`] (text to events and back), [`call`] (calls and tools as data) and [`plan`]
//! (what may start). How calls run is defined in the project's `spec/running.md`.

#![cfg_attr(
    not(feature = "tokio"),
    allow(dead_code, unused_imports, reason = "some of it only a run uses")
)]

mod call_arguments;
mod cut;
mod event;
mod gate;
mod held;
mod log;
mod milliseconds;
mod policy;
mod request;
mod result;
mod rules;
mod source;
mod tool_error;
mod tool_policy;

// What runs calls needs tokio.
#[cfg(feature = "tokio")]
mod capture;
#[cfg(feature = "tokio")]
mod command;
#[cfg(feature = "tokio")]
mod context;
#[cfg(feature = "tokio")]
mod definition;
#[cfg(feature = "tokio")]
mod driver;
#[cfg(feature = "tokio")]
mod events;
#[cfg(feature = "tokio")]
mod interpreted;
#[cfg(feature = "tokio")]
mod invocation;
#[cfg(feature = "tokio")]
mod process;
#[cfg(feature = "tokio")]
mod process_input;
#[cfg(feature = "tokio")]
mod read_result;
#[cfg(feature = "tokio")]
mod replay;
#[cfg(feature = "tokio")]
mod resident;
#[cfg(feature = "tokio")]
mod run;
#[cfg(feature = "tokio")]
mod run_directory;
#[cfg(feature = "tokio")]
mod run_error;
#[cfg(feature = "tokio")]
mod run_state;
#[cfg(feature = "tokio")]
mod submit;
#[cfg(feature = "tokio")]
mod template;
#[cfg(feature = "tokio")]
mod tool;
#[cfg(feature = "tokio")]
mod toolbox;
#[cfg(feature = "tokio")]
mod tools_file;
#[cfg(feature = "tokio")]
mod trace;
#[cfg(feature = "tokio")]
mod turn;
#[cfg(feature = "tokio")]
mod typed;
#[cfg(feature = "tokio")]
mod whole_results;
#[cfg(feature = "tokio")]
mod work;

pub use plaincall_call as call;
pub use plaincall_plan as plan;
pub use plaincall_syntax as syntax;
pub use schemars;

pub use call::{
    Arguments, CallError, Effect, Limits, Parameter, ParameterKind, Stop, ToolSpec, Unclosed,
};
pub use call_arguments::{ArgumentTexts, SubmittedArguments};
pub use event::{
    Admission, AdmittedBy, Appeared, Author, AwaitingApproval, BackOff, CallRef, Cancel, Completed,
    DamagedEnd, Delta, DirectoryBegin, Lagged, LogFailed, Message, ReplyEnd, Resumed, RunBegin,
    RunEvent, Started, TurnBegin, TurnEnd, UntrustedText,
};
pub use gate::{AllowAll, Decision, Gate, GateFuture, ReadOnly, Recovery, RecoveryFuture};
pub use held::HeldReason;
pub use log::{LOG_VERSION, LineEncoder, LogError, Record, TornTail, read_log};
pub use plan::{Declared, RejectReason, dependency_faults};
pub use policy::{Echoes, Order, Policy, Writes};
pub use request::Request;
pub use result::{Because, CallResult, Cause, Link, Status, StatusCounts, Times, TurnResults};
pub use rules::{Pattern, Rule, Rules, Verdict};
pub use source::{Bytes, Source};
pub use syntax::Dialect;
pub use tool_error::{BoxError, Failure, ToolResult};
pub use tool_policy::{Dependents, Retry, ToolBegin, ToolPolicy};

#[cfg(feature = "tokio")]
pub use {
    command::{Command, CommandError, CommandPlace, CommandProblem, DEFAULT_OUTPUT_LIMIT},
    context::{Context, DependencyResult},
    events::{EVENT_QUEUE, Observer, RunEvents},
    interpreted::Interpreted,
    log::{Log, Storage},
    plaincall_config::{FileError, Problem},
    replay::Unfinished,
    run::{Canceller, Run, RunBuilder},
    run_directory::{Directories, RemovedFiles},
    run_error::{CloseError, ResumeError, RunError},
    submit::Submitted,
    tool::Tool,
    toolbox::{Toolbox, ToolboxError},
    tools_file::{ToolsFile, read_tools},
    turn::{Turn, TurnEvent},
    typed::{ToolArguments, ToolFuture},
};
#[cfg(feature = "tokio")]
#[doc(hidden)]
pub use {
    invocation::is_always_seen,
    process::Program,
    resident::{Resident, ResidentEnd},
};

/// The quick start of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The Rust examples of the document.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-tools.md")]
pub struct WritingTools;

/// The examples of the document.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/observing.md")]
pub struct Observing;

/// The example of the document.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/talking-to-a-model.md")]
pub struct TalkingToAModel;
