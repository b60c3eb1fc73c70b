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
//! - [`Policy`]: limits and order of a run. [`Rules`]: what may run and what may not, as data.
//! - [`Gate`]: who decides about the rest. If nobody is asked, tools that [write](Effect::Write) may not.
//! - [`Run::hear`]: texts from outside that the model was given. A call that it may have copied from one, or from a
//!   result, waits for the gate.
//! - [`RunEvents`] and [`Observer`]: what happens, as it happens; as JSON lines it is the record of a run.
//! - [`Log`]: the record in a file, from which a run is taken up again after a crash ([`RunBuilder::log`],
//!   [`Run::go_on`]). [`read_log`] reads it.
//! - [`Policy`], [`ToolPolicy`], [`Rules`]: limits, order and permissions as data.
//!
//! The crates below are here as [`syntax`] (text to events and back) and [`call`] (calls and tools as data). How calls
//! run is defined in the project's `spec/running.md`.

mod capture;
mod command;
mod conductor;
mod context;
mod cut;
mod definition;
mod driver;
mod event;
mod events;
mod gate;
mod held;
mod interpreted;
mod invocation;
mod log;
mod policy;
mod process;
mod process_input;
mod read_result;
mod replay;
mod resident;
mod result;
mod rules;
mod run;
mod run_directory;
mod run_error;
mod source;
mod submit;
mod template;
mod tool;
mod tool_policy;
mod toolbox;
mod tools_file;
mod trace;
mod turn;
mod typed;
mod whole_results;
mod work;

pub use plaincall_call as call;
pub use plaincall_syntax as syntax;
pub use schemars;

pub use call::{
    Arguments, CallError, Effect, Limits, Parameter, ParameterKind, Stop, ToolSpec, Unclosed,
};
#[doc(hidden)]
pub use command::is_always_seen;
pub use command::{Command, CommandError, CommandPlace, CommandProblem, DEFAULT_OUTPUT_LIMIT};
pub use context::{Context, DependencyResult};
pub use event::{
    Admission, AdmittedBy, Appeared, ArgumentTexts, AtGate, BackOff, Cancel, Completed, DamagedEnd,
    Delta, DirectoryBegin, Heard, LogFailed, Missed, Moment, Over, Resumed, RunBegin, RunEvent,
    Started, Teller, Told, TurnBegin, TurnEnd,
};
pub use events::{EVENT_QUEUE, Observer, RunEvents};
pub use gate::{
    AllowAll, Decision, Gate, GateFuture, ReadOnly, Request, Settlement, SettlementFuture,
};
pub use held::HeldReason;
pub use interpreted::Interpreted;
pub use log::{LOG_VERSION, LineEncoder, Log, LogError, Record, Storage, TornTail, read_log};
pub use plaincall_config::{FileError, Problem};
pub use plaincall_plan::{Declared, Order, RejectReason, dependency_faults};
pub use policy::{
    DEFAULT_CONCURRENT, DEFAULT_DEPENDENCY_LIMIT, DEFAULT_DEPENDENCY_TOTAL, DEFAULT_GATE_TIMEOUT,
    DEFAULT_HEARD_LIMIT, DEFAULT_RESULT_LIMIT, Echoes, Policy, Writes,
};
#[doc(hidden)]
pub use process::Program;
pub use replay::{ResumeError, Unfinished};
#[doc(hidden)]
pub use resident::{Resident, ResidentEnd};
pub use result::{Because, CallResult, Cause, Link, Status, StatusCounts, Times, TurnResults};
pub use rules::{Pattern, Rule, Rules, Verdict};
pub use run::{Canceller, Run, RunBuilder};
pub use run_directory::{Directories, RemovedFiles};
pub use run_error::{CloseError, RunError};
pub use source::{Bytes, Source};
pub use submit::{Submitted, SubmittedArguments};
pub use syntax::Dialect;
pub use tool::{BoxError, Failure, Tool, ToolResult};
pub use tool_policy::{DEFAULT_TIMEOUT, Dependents, Retry, ToolBegin, ToolPolicy};
pub use toolbox::{Toolbox, ToolboxError};
pub use tools_file::{ToolsFile, read_tools};
pub use turn::Turn;
pub use typed::{ToolArguments, ToolFuture};

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
