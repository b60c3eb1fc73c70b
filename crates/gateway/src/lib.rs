//! Native tool calls for any text model: the core of the gateway, and its server.
//!
//! A client speaks the `OpenAI` API with `tools`; the model's server sees plain text; the calls that the model writes come
//! back as native `tool_calls`, while it still writes.
//!
//! - [`translate()`]: a request with tools becomes one in words, and a [`ReplyPlan`].
//! - [`Reply`]: the model's answer, piece by piece, becomes the client's: a [`StreamedAnswer`] or a [`WholeAnswer`].
//! - [`ModelSettings`]: what is set for a model.
//!
//! - [`Exchange`]: the event stream of the model's server in, that of the client out.
//!
//! All of that does no I/O, reads no clock and keeps nothing from one request to the next. [`Gateway`] puts a server
//! around it, on a socket or in a program of one's own; it comes with the feature `server`, which is on unless it is turned
//! off. The types of `axum` that stand in its interface are those of [`axum`].

mod counts;
mod cut_mark;
mod exchange;
mod key;
mod offer;
mod offers;
mod outlet;
mod refusal;
mod reply;
#[cfg(feature = "server")]
mod server;
mod settings;
mod spoken;
mod translate;

#[cfg(feature = "server")]
pub use axum;
pub use counts::Counts;
pub use exchange::Exchange;
pub use key::Secret;
pub use offer::Offer;
pub use offers::Offers;
pub use outlet::Outlet;
pub use outlet::streamed::StreamedAnswer;
pub use outlet::whole::WholeAnswer;
#[cfg(feature = "server")]
pub use plaincall_wire::ReplayError;
pub use refusal::Refusal;
pub use reply::plan::ReplyPlan;
pub use reply::round::RepairRound;
pub use reply::{Flow, Next, Reply};
#[cfg(feature = "server")]
pub use server::replay::Replay;
#[cfg(feature = "server")]
pub use server::{
    Answered, ConfigError, Contents, Gateway, GatewayConfig, LocalModel, Observe, Report, Retries,
    ServerLimits, Timeouts, Upstream,
};
pub use settings::{ArgumentMode, Markers, ModelSettings, ReasoningSpan};
pub use translate::{Caller, Translation, translate};
