//! Tool calling for any model that can write text.
//!
//! A model writes calls as plain text. This crate finds them while the text is still arriving, checks them, runs them
//! in dependency order and side by side while the model still writes, and hands the results back.
//!
//! ```
//! use plaincall::{BoxError, Effect, ParameterKind, Run, Stop, Tool, Toolbox};
//!
//! #[derive(serde::Deserialize)]
//! struct Add { a: i64, b: i64 }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), BoxError> {
//!     let add = Tool::new("Add", |add: Add, _| async move { Ok((add.a + add.b).to_string()) })
//!         .parameter("a", ParameterKind::Integer)
//!         .parameter("b", ParameterKind::Integer)
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
//! - [`Tool`]: a function of typed arguments, or a [`Command`]; [`read_tools`] reads commands from a file.
//!   [`Toolbox`]: tools with different names.
//! - [`Run`]: one conversation. [`Turn`]: one reply, fed with text, finished with its results.
//! - [`Gate`]: who decides whether a call may run. If nobody is asked, tools that [write](Effect::Write) may not.
//! - [`RunEvents`]: what happens, as it happens; as JSON lines it is the record of a run.
//!
//! The crates below are here as [`syntax`] (text to events and back) and [`call`] (calls and tools as data). How calls
//! run is defined in the project's `spec/running.md`.

mod capture;
mod command;
mod context;
mod driver;
mod event;
mod gate;
mod invocation;
mod process;
mod result;
mod run;
mod template;
mod tool;
mod toolbox;
mod tools_file;
mod turn;
mod work;

pub use plaincall_call as call;
pub use plaincall_syntax as syntax;

pub use call::{Arguments, Effect, Limits, Parameter, ParameterKind, ToolSpec, Unclosed};
pub use command::{Command, CommandError, CommandPlace, CommandProblem, DEFAULT_OUTPUT_LIMIT};
pub use context::{Context, DependencyResult};
pub use event::{Appeared, Moment, RunEvent, RunEvents, TurnEnd};
pub use gate::{AllowAll, Decision, Gate, GateFuture, ReadOnly, Request};
pub use plaincall_plan::Order;
pub use result::{Because, CallResult, Cause, Link, Status, StatusCounts, Times, TurnResults};
pub use run::{Canceller, CloseError, DEFAULT_CONCURRENT, Run, RunBuilder, RunError};
pub use syntax::Dialect;
pub use tool::{BoxError, DEFAULT_TIMEOUT, Failure, Tool, ToolResult};
pub use toolbox::{Toolbox, ToolboxError};
pub use tools_file::{Mistake, ToolsFileError, read_tools};
pub use turn::{Stop, Turn};

/// The quick start of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The Rust examples of the document.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/creating-tools.md")]
pub struct CreatingTools;
