//! All tests of the public interface of the crate, in one program.

mod absent;
mod binding;
mod few_shot;
mod invented;
mod message_tokens;
mod prompt;
mod repair;
mod schema_properties;
mod schema_vectors;
#[cfg(feature = "schemars")]
mod typed_tools;
