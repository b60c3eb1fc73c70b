//! Every entry point decides alike about the calls of the same replies.
//!
//! `table.rs` is the test, `entry_points.rs` the entry points, and `differences.rs` what they may do differently.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its helpers too"
)]

#[cfg(feature = "tables")]
mod arrow;
mod decision;
mod differences;
mod entry_points;
mod file;
mod gateway;
mod run;
mod table;
mod texts;
mod tools;

/// The builders and strict readers of the gateway's tests, where its modules look for them.
mod replies {
    pub(crate) use crate::chat_model as model;
}
mod messages {
    pub(crate) use crate::{messages_model as model, messages_reader as strict};
}
mod ollama {
    pub(crate) use crate::ollama_reader as strict;
}
mod responses {
    pub(crate) use crate::{responses_model as model, responses_reader as strict_reader};
}

macro_rules! of_gateway {
    ($($path:literal $name:ident)*) => {
        $(
            #[path = $path]
            #[allow(dead_code, reason = "the gateway's tests use all of it")]
            #[allow(clippy::too_many_lines, reason = "as there")]
            mod $name;
        )*
    };
}
of_gateway! {
    "../../../crates/gateway/tests/apis.rs" apis
    "../../../crates/gateway/tests/replies/model.rs" chat_model
    "../../../crates/gateway/tests/messages/model.rs" messages_model
    "../../../crates/gateway/tests/messages/strict.rs" messages_reader
    "../../../crates/gateway/tests/ollama/strict.rs" ollama_reader
    "../../../crates/gateway/tests/responses/model.rs" responses_model
    "../../../crates/gateway/tests/responses/strict_reader.rs" responses_reader
}
