//! Native tool calls for any text model: a proxy, and its core without I/O.
//!
//! Clients use the `OpenAI`, Anthropic or Ollama API with tools. The model server receives plain text, and the calls that the model writes
//! become native calls while the reply is streamed.
//!
//! - [`Gateway`] is the proxy, on a socket or inside your program (feature `server`, on by default).
//! - [`transport`] is the same for programs that send the requests themselves. It does no I/O, reads no clock and keeps no state
//!   between requests.
//! - [`ModelSettings`] configures how a model is prompted and its replies are parsed.

mod adapter;
mod api;
mod compiled;
mod constraint;
mod counts;
mod error;
mod exchange;
mod invalid_call_mark;
mod key;
mod reply;
#[cfg(feature = "server")]
pub mod server;
mod settings;
mod token_count;
mod tool_cache;
mod tools;
mod translate;
pub mod transport;
mod unreadable_call;

#[doc(hidden)]
pub mod translation {
    //! The core of the gateway, without I/O, for the tests and measurements of this workspace. It changes without notice; programs use
    //! [`transport`](crate::transport).
    //!
    //! - [`Adapter`] converts requests and replies as bytes.
    //! - [`translate()`] converts a request with tools to plain text, and returns a [`ReplyPlan`].
    //! - [`Reply`] converts the model's reply to a [`StreamedResponse`] or a [`CompleteResponse`].
    //! - [`Exchange`] does the same with the bytes of event streams.
    //! - [`TokenCount`] counts the tokens of a request.

    pub use crate::adapter::{Adapter, Ask, AskEnd, Asked, Host};
    pub use crate::api::ClientApi;
    pub use crate::api::chat::complete::CompleteResponse;
    pub use crate::api::chat::streamed::StreamedResponse;
    pub use crate::api::encoder::Encoder;
    pub use crate::exchange::Exchange;
    pub use crate::reply::plan::ReplyPlan;
    pub use crate::reply::repair_round::RepairRound;
    pub use crate::reply::{Flow, Next, Reply};
    pub use crate::token_count::TokenCount;
    pub use crate::tool_cache::ToolCache;
    pub use crate::tools::OfferedTools;
    pub use crate::translate::{Translation, translate};
}

pub use counts::Counts;
pub use error::GatewayError;
pub use key::Secret;
pub use plaincall_grammar::Constrain;
#[cfg(feature = "server")]
pub use server::{
    Body, ConfigError, Gateway, GatewayConfig, LocalModel, Observer, Replay, Report, Upstream,
};
pub use settings::{ArgumentMode, Markers, ModelSettings, PromptBudget, ToolMode};
