//! All tests of the public interface of the crate, in one program.

mod assembly;
mod calls;
mod decisions;
mod echo_steps;
mod ids;
mod json_stream;
mod json_stream_cost;
mod may_run;
mod problems;
mod properties;
mod reply_chunks;
mod rescue;
mod typed;
