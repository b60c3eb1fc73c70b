//! `finish`: the model says that it is done.

use plaincall::{Context, Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;

/// Ends the work. Call it once, when all that was asked for is done.
#[derive(Deserialize, JsonSchema)]
struct Finish {
    /// The answer for the user.
    answer: String,
}

pub(super) fn tool() -> Tool {
    let name = BuiltinTool::Finish.name();
    Tool::new(name, |finish: Finish, _: Context| async move {
        if finish.answer.trim().is_empty() {
            return Err("the answer is empty; write what the user is to read".into());
        }
        Ok(finish.answer)
    })
    .effect(Effect::Read)
    .body("answer")
    .finishes()
}
