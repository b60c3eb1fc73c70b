//! Ask any model that can write text, with tools.

mod agent;
mod answer;
mod asking;
#[cfg(feature = "builtin")]
pub mod builtin;
mod conversation;
mod event;
mod flow;
mod history;
#[cfg(feature = "client")]
pub mod http;
mod key;
mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
pub mod probe;
mod session;
mod user;

pub use agent::{Agent, AgentBuilder};
pub use answer::{AgentError, AgentErrorKind, Answer, Progress};
pub use asking::Asking;
pub use conversation::Conversation;
pub use event::AgentEvent;
pub use limits::{AgentLimits, WithoutCall};
#[cfg(feature = "http")]
pub use model::{Anthropic, Key, OpenAi};
pub use model::{
    Finish, Message, Model, ModelError, ModelErrorKind, Replay, Retries, Role, Scripted, Usage,
};
pub use user::{User, UserFuture};

pub use plaincall;

/// The example of the document.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/mcp.md")]
pub struct McpDocument;
