//! Native tool calls for any text model: the core of the gateway, and its server.
//!
//! A client speaks the `OpenAI` API with `tools`; the model server sees plain text; the calls that the model writes come
//! back as native `tool_calls`, while it still writes.
//!
//! - [`translate()`]: a request with tools becomes one in words, and a [`ReplyPlan`].
//! - [`Reply`]: the model's answer, piece by piece, becomes the client's: a [`StreamedResponse`] or a [`CompleteResponse`].
//! - [`ModelSettings`]: the settings of a model.
//! - [`Exchange`]: converts the event stream of the model server to that of the client.
//!
//! This core does no I/O, reads no clock and keeps no state between requests. With the default feature `server`, [`Gateway`]
//! is a server around it, on a socket or inside your program.

mod compiled;
mod counts;
mod error;
mod exchange;
mod invalid_call_mark;
mod key;
mod reply;
#[cfg(feature = "server")]
mod server;
mod settings;
mod sink;
mod tool_cache;
mod tools;
mod translate;

#[cfg(feature = "server")]
pub use axum;
pub use counts::Counts;
pub use error::GatewayError;
pub use exchange::Exchange;
pub use key::Secret;
#[cfg(feature = "server")]
pub use plaincall_wire::ReplayError;
pub use reply::plan::ReplyPlan;
pub use reply::round::RepairRound;
pub use reply::{Flow, Next, Reply};
#[cfg(feature = "server")]
pub use server::replay::Replay;
#[cfg(feature = "server")]
pub use server::{
    Answered, ConfigError, Contents, Gateway, GatewayConfig, LocalModel, Observer, Report, Retries,
    ServerLimits, Timeouts, Upstream,
};
pub use settings::{ArgumentMode, Markers, ModelSettings, ReasoningSpan};
pub use sink::ResponseSink;
pub use sink::complete::CompleteResponse;
pub use sink::streamed::StreamedResponse;
pub use tool_cache::ToolCache;
pub use tools::OfferedTools;
pub use translate::{Caller, Translation, translate};
