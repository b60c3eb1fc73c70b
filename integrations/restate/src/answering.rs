//! The handler that takes the answer of a person.

use restate_sdk::prelude::*;

use crate::definitions::Definitions;
use crate::question::{AnswerTo, FirstAnswersClient, Kept, Question, TimedAnswer};
use crate::record::{self, DEFINITIONS, QUESTIONS};
use crate::worker::{Worker, unix_ms};

/// Checks an answer, keeps it if it is the first one, and gives it to the conversation.
pub(crate) async fn answer(
    worker: &Worker,
    context: &SharedObjectContext<'_>,
    given: AnswerTo,
) -> Result<(), TerminalError> {
    let AnswerTo {
        question: number,
        answer,
    } = given;
    let refuse = |code, problem| TerminalError::new_with_code(code, problem);
    let key = record::question(number);
    // State is read by key, and the number of questions is written after a question. So it is read first: a question that is
    // stored between the two reads is not taken for a closed one.
    let asked = context.get::<u32>(QUESTIONS).await?.unwrap_or_default();
    if number >= asked {
        let problem =
            format!("there is no question {number}; the conversation has had {asked} so far");
        return Err(refuse(404, problem));
    }
    let is_closed = || {
        let problem = format!("question {number} is closed; `status` lists the open questions");
        refuse(409, problem)
    };
    let stored = context.get::<Json<Question>>(&key).await?;
    let question = stored.ok_or_else(is_closed)?.into_inner();
    if let Err(answers) = question.kind.check(&answer) {
        let problem = format!("question {number} waits for one of {answers}");
        return Err(refuse(409, problem));
    }
    let started = context.get::<Json<Definitions>>(DEFINITIONS).await?;
    let tool = worker.settings().tools().get(&question.name);
    if let (Some(Json(started)), Some(tool)) = (started, tool)
        && worker.definitions().has(&question.name, &started)
        && let Err(problem) = answer.check(tool)
    {
        let problem = format!("{problem}; question {number} stays open");
        return Err(refuse(400, problem));
    }
    let now = context.run(|| async { Ok(unix_ms()) });
    let unix_ms = now.name("time").await?;
    if unix_ms > question.until_unix_ms {
        let problem = format!("the time limit of question {number} is over");
        return Err(refuse(409, problem));
    }
    let answers = context.object_client::<FirstAnswersClient<'_>>(context.key());
    let kept = Kept::of(&question, Some(answer.clone()));
    let first = answers.keep(Json(kept)).call().await?.into_inner();
    if first.ok_or_else(is_closed)? != answer {
        let problem = format!("question {number} already has another answer, which counts");
        return Err(refuse(409, problem));
    }
    let answer = TimedAnswer::new(answer, unix_ms);
    context.resolve_awakeable(&question.awakeable, Json(answer));
    Ok(())
}
