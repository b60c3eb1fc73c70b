//! `ask_user` and `finish`: questions and the answer to the user.

use std::sync::Arc;
use std::time::Duration;

use plaincall::{Context, Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::user::User;

/// The time limit of a question.
const PATIENCE: Duration = Duration::from_hours(1);

/// Asks the user a question and returns the answer. Use it only for what you cannot find out or decide yourself.
#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// The question, with all the context that the user needs.
    #[schemars(example = &"Which of the two files shall I keep?")]
    question: String,
}

pub(super) fn ask(user: Arc<dyn User>) -> Tool {
    let name = BuiltinTool::AskUser.name();
    Tool::new(name, move |ask: Ask, _: Context| {
        let user = Arc::clone(&user);
        async move {
            let question = ask.question.trim();
            if question.is_empty() {
                return Err("the question is empty".into());
            }
            let answer = user.answer(question).await?;
            if answer.trim().is_empty() {
                return Ok("[empty answer; decide yourself]".to_owned());
            }
            Ok(answer)
        }
    })
    .effect(Effect::Read)
    .body("question")
    .timeout(PATIENCE)
    // One question at a time.
    .max_concurrent(1)
}

/// Finishes the task. Call it once, when everything is done.
#[derive(Deserialize, JsonSchema)]
struct Finish {
    /// The answer for the user.
    answer: String,
}

pub(super) fn finish() -> Tool {
    let name = BuiltinTool::Finish.name();
    Tool::new(name, |finish: Finish, _: Context| async move {
        if finish.answer.trim().is_empty() {
            return Err("the answer is empty; write the answer for the user".into());
        }
        Ok(finish.answer)
    })
    .effect(Effect::Read)
    .body("answer")
    .finishes()
}
