//! Durable runs of Plaincall on [Restate](https://restate.dev). `docs/durable.md` starts from nothing.
//!
//! A conversation is a virtual object, and each call is an invocation of a service. Restate journals what happens, so any
//! worker can continue a conversation after another one was killed. [`DurableRun`](plaincall::durable::DurableRun) decides
//! what happens next, from the journal alone.
//!
//! ```no_run
//! use plaincall::{Effect, Tool, Toolbox, durable::DurableSettings};
//! use plaincall_restate::Worker;
//!
//! /// Adds two numbers.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), plaincall::BoxError> {
//!     let add = Tool::new("add", |add: Add, _| async move { Ok((add.a + add.b).to_string()) });
//!     let tools = Toolbox::new([add.effect(Effect::Read)])?;
//!     let worker = Worker::new(DurableSettings::new(tools)?)?;
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:9080").await?;
//!     worker.serve(listener, async { let _ = tokio::signal::ctrl_c().await; }).await;
//!     Ok(())
//! }
//! ```

mod answering;
mod asking;
mod call;
mod conversation;
mod definitions;
mod model_step;
mod open_questions;
mod question;
mod record;
mod serve;
mod stopper;
mod worker;

pub use conversation::{Ask, Finished, RecordPart, Reply, Status};
pub use open_questions::OpenQuestion;
pub use question::{AnswerTo, Question, QuestionKind};
pub use worker::Worker;
