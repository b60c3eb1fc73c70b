//! An agent loop with tools for any model that writes text.
//!
//! Calls run while the model writes them, and their results go back to the model until it answers.
//!
//! ```no_run
//! use plaincall_agent::plaincall::{BoxError, Dialect, Effect, Tool, Toolbox};
//! use plaincall_agent::{Agent, OpenAi};
//!
//! /// Returns the current weather.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Weather {
//!     /// The name of a town.
//!     place: String,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), BoxError> {
//!     let weather = Tool::new("weather", |weather: Weather, _| async move {
//!         Ok(format!("Rain in {}.", weather.place))
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
//! - [`Agent`]: a model with its tools. [`Conversation`]: keeps history, and resumes from a log
//!   ([`Agent::session`]). [`AgentStream`]: the [events](AgentEvent) of a question, and its [`Answer`].
//! - [`Model`]: implemented by `OpenAi` and `Anthropic` (feature `http`), and by [`Replay`] and [`Scripted`] for tests.
//! - [`AgentLimits`], [`OnNoToolCall`], [`Retries`]: limits, the meaning of a reply without a call, and retries.
//! - `mcp` (feature `mcp`): tools of MCP servers, and a server for MCP clients. `builtin` (feature `builtin`): tools for
//!   files, shell commands and web pages.
//!
//! Tools, gates, rules and logs come from [`plaincall`]. The project's `spec/agent.md` defines the agent loop.
//!
//! # Platforms
//!
//! Unix and Windows. The feature `builtin` needs Unix, and is a compile error elsewhere: the file tools open paths without following
//! links, and `run_command` needs a Unix shell.

#[cfg(all(feature = "builtin", not(unix)))]
compile_error!(
    "the feature `builtin` of plaincall-agent needs Unix, because file tools open paths without following links and \
     `run_command` needs a Unix shell; disable it for this target"
);

mod agent;
pub mod agent_loop;
mod agent_run;
mod answer;
mod budget;
#[cfg(all(feature = "builtin", unix))]
pub mod builtin;
mod conversation;
mod event;
mod flow;
mod given;
mod grammar;
mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
mod session;
mod settings;
mod subagent;
mod text;
mod user;

pub use agent::{Agent, AgentBuilder};
pub use agent_run::AgentStream;
pub use answer::{AgentError, AgentErrorKind, Answer, Progress};
pub use conversation::Conversation;
pub use event::AgentEvent;
pub use given::GivenMessage;
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
/// The HTTP client.
#[cfg(feature = "client")]
pub use plaincall_http as http;

/// Tests the example of the document.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/mcp.md")]
pub struct McpDocument;

/// Tests the programs of the document.
#[cfg(all(doctest, feature = "http", feature = "builtin"))]
#[doc = include_str!("../../../docs/agents-in-rust.md")]
pub struct AgentsDocument;
