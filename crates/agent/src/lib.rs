//! Ask any model that can write text, with tools.

mod flow;
pub mod model;

pub use plaincall;
