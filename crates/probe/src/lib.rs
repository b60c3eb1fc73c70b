//! Compares ways in which a model can call tools: an experiment with controlled conditions.
//!
//! The ways ([`Arm`]) are the server's own tool calls, JSON in the prompt as programs do it by hand, and Plaincall's syntaxes.
//! Each gets the same tasks, tools, simulated world, limits and seeds. No model grades the result: a task is correct if the
//! world has changed exactly as requested and the answer contains what only the results reveal.
//!
//! ```
//! use plaincall_probe::{Arm, Probe, Reference, Verdict, tasks};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // A scripted model that was made for the emoji syntax.
//! let model = Reference::named("emoji").expect("a reference model");
//! let arms = ["block", "emoji"].map(|name| Arm::named(name).expect("an arm"));
//! let mut run = Probe::new(model).arms(arms).tasks(tasks().into_iter().take(8)).begin();
//! while let Some(attempt) = run.next().await {
//!     println!("{} {}: {}", attempt.arm, attempt.task, attempt.is_correct);
//! }
//! assert!(matches!(run.report().verdict, Verdict::Use { arm, .. } if arm == "emoji"));
//! # }
//! ```
//!
//! - [`Probe`] describes a comparison, [`Probing`] runs it, [`Report`] has the figures and the [`Verdict`].
//! - [`CaseProbe`] compares settings with a user's own tools and questions.
//! - [`Record`] stores attempts, one line of JSON each, so that an interrupted comparison can continue.
//! - [`SharedResult`] is a report with versions and settings, without secrets and texts.
//! - [`Reference`] models are scripted, with known skills.

mod arm;
mod attempt;
mod budget;
mod cases;
mod conversation;
mod handbook;
mod json_call;
mod json_prompt;
mod judge;
mod lenient_json;
mod observed;
mod operations;
mod probe;
mod record;
mod reference;
mod report;
mod shared_result;
mod task;
mod tool;
mod verdict;
mod world;

pub use arm::Arm;
pub use attempt::{Attempt, Author, Entry, TIMED_OUT};
pub use cases::{Case, CaseProbe, CaseReport, ExpectedCall, MissedCase, Setup, SetupResult};
pub use probe::{Probe, Probing};
pub use record::{Record, RecordError};
pub use reference::Reference;
pub use report::{ArmReport, Interval, Report, TaskReport, wilson};
pub use shared_result::{Settings, SharedResult};
pub use task::{Call, Task, task_version, tasks};
pub use verdict::Verdict;
