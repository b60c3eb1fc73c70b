//! Ask any model that can write text, with tools.

mod flow;
#[cfg(feature = "client")]
pub mod http;
pub mod model;

pub use plaincall;
