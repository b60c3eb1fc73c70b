//! Ask any model that can write text, with tools.
//!
//! The model writes text and calls; the calls run while it writes; their results go back to it, until it answers.
//!
//! ```no_run
//! use plaincall_agent::plaincall::{BoxError, Dialect, Effect, Tool, Toolbox};
//! use plaincall_agent::{Agent, OpenAi};
//!
//! /// Says how the weather is.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Weather {
//!     /// A town.
//!     place: String,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), BoxError> {
//!     let weather = Tool::new("weather", |asked: Weather, _| async move {
//!         Ok(format!("Rain in {}.", asked.place))
//!     });
//!     let tools = Toolbox::new([weather.effect(Effect::Read)])?;
//!     let model = OpenAi::new("http://localhost:11434/v1", "qwen3");
//!     let dialect = Dialect::block().start("<<<START:").end("<<<END:").arg("@param:");
//!     let agent = Agent::builder(model).tools(tools).dialect(dialect).build()?;
//!     let answer = agent.ask("Do I need an umbrella in Bergen?").await?;
//!     println!("{answer}");
//!     Ok(())
//! }
//! ```
//!
//! - [`Agent`]: a model with its tools. [`Conversation`]: kept and continued, also over a crash
//!   ([`Agent::session`]). [`AgentStream`]: a question that is worked on, its [events](AgentEvent) and its [`Answer`].
//! - [`Model`]: what is asked. `OpenAi` and `Anthropic` ask servers (feature `http`); [`Replay`] and [`Scripted`] say
//!   what was recorded or written down: for demos, and for tests of tools and agents.
//! - [`AgentLimits`], [`OnNoToolCall`], [`Retries`]: how far it may go, and what a reply without a call means.
//! - `mcp` (feature `mcp`): tools of MCP servers, and tools for MCP clients. `builtin` (feature `builtin`): files below a
//!   directory, commands, pages. [`probe`]: which syntax a model writes best.
//!
//! Tools, gates, rules and records are those of [`plaincall`]. How the work goes is defined in the project's
//! `spec/agent.md`.

mod agent;
mod agent_loop;
mod answer;
#[cfg(feature = "builtin")]
pub mod builtin;
mod conversation;
mod event;
mod flow;
mod history;
mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
pub mod probe;
mod session;
mod settings;
mod text;
mod user;

pub use agent::{Agent, AgentBuilder};
pub use agent_loop::AgentStream;
pub use answer::{AgentError, AgentErrorKind, Answer, Progress};
pub use conversation::Conversation;
pub use event::AgentEvent;
pub use limits::{AgentLimits, OnNoToolCall};
#[cfg(any(feature = "http", feature = "mcp"))]
pub use model::Key;
#[cfg(feature = "http")]
pub use model::{Anthropic, OpenAi};
pub use model::{
    Finish, Message, Model, ModelError, ModelErrorKind, Replay, Retries, Role, Scripted, Usage,
};
pub use user::{User, UserFuture};

pub use plaincall;
/// How servers are asked.
#[cfg(feature = "client")]
pub use plaincall_http as http;

/// The example of the document.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/mcp.md")]
pub struct McpDocument;

/// The programs of the document.
#[cfg(all(doctest, feature = "http", feature = "builtin"))]
#[doc = include_str!("../../../docs/agents-in-rust.md")]
pub struct AgentsDocument;
