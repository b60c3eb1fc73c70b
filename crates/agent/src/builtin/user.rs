//! `ask_user` and `finish`: what a model says to the person for whom it works.

use std::sync::Arc;
use std::time::Duration;

use plaincall::{Context, Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::user::User;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_hours(1);

/// Asks the user a question and returns the answer. Only for what you cannot find out or decide yourself.
#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// The question, with all that the user needs to answer it.
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
                return Err("the question is empty; write what you want to know".into());
            }
            let answer = user.answer(question).await?;
            if answer.trim().is_empty() {
                return Ok("[the user gave an empty answer; decide yourself]".to_owned());
            }
            Ok(answer)
        }
    })
    .effect(Effect::Read)
    .body("question")
    .timeout(PATIENCE)
    // A person is asked one thing at a time.
    .max_concurrent(1)
}

/// Ends the work. Call it once, when all that was asked for is done.
#[derive(Deserialize, JsonSchema)]
struct Finish {
    /// The answer for the user.
    answer: String,
}

pub(super) fn finish() -> Tool {
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
