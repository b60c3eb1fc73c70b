//! The HTTP client of the agent and the gateway, for model servers, MCP servers and web pages.
//!
//! - TLS is `rustls` with `ring`; the system decides which certificates are trusted. On a system without certificates
//!   plain HTTP works, and every certificate is rejected.
//! - The environment is never read: no proxy is used unless [`HttpSettings::proxy`] names one.
//! - Redirects are not followed: a key must not go to another server.
//! - A request is sent again only if nothing of it was written, because a kept connection was closed.
//! - Every wait has a deadline, and every body a maximum length.

mod address;
mod client;
mod connect;
mod error;
mod rejections;
mod response;
mod retry_after;

pub use address::{base_url, check_address};
pub use client::{HttpClient, HttpSettings, Proxy};
pub use connect::check_certificates;
pub use error::{HttpError, HttpErrorKind, causes};
pub use http;
pub use hyper::body::Bytes;
pub use plaincall_wire::paths;
pub use rejections::Rejections;
pub use response::{HttpResponse, Waits};
pub use retry_after::retry_after;
