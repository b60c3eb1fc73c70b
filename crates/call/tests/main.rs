//! All tests of the public interface of the crate, in one program.

mod absent;
mod assembly;
mod binding;
mod calls;
mod coerce;
#[cfg(feature = "jsonschema")]
mod costly_schemas;
mod decimals;
mod decisions;
mod definitions;
mod echo_steps;
mod few_shot;
mod ids;
mod invented;
mod json_stream;
mod json_stream_cost;
mod key_patterns;
mod may_run;
mod message_tokens;
mod other_definitions;
mod problems;
mod prompt;
mod properties;
mod repair;
mod reply_chunks;
mod rescue;
mod schema_properties;
mod schema_vectors;
mod typed;
#[cfg(feature = "schemars")]
mod typed_tools;
mod usable_tools;
