//! Questions to the model, which the agent loop decides about.

use std::time::Duration;

use plaincall::reply::Untrusted;
use plaincall_agent::agent_loop::{Effect, Next};
use plaincall_agent::model::ModelRequest;
use plaincall_agent::{AgentErrorKind, Model};
use restate_sdk::prelude::*;

use crate::conversation::Invocation;
use crate::model_step::{self, Failed, WholeReply};
use crate::record::PROBLEM;
use crate::stopper::Stopper;

/// Why a question has no answer.
enum NoAnswer {
    Loop(AgentErrorKind),
    Restate(TerminalError),
}

impl From<AgentErrorKind> for NoAnswer {
    fn from(kind: AgentErrorKind) -> Self {
        Self::Loop(kind)
    }
}

impl From<TerminalError> for NoAnswer {
    fn from(error: TerminalError) -> Self {
        Self::Restate(error)
    }
}

impl Invocation<'_> {
    pub(crate) async fn ask(&mut self, message: &str) -> Result<String, TerminalError> {
        let model = self.worker.model_of_questions().ok_or_else(|| {
            TerminalError::new_with_code(
                400,
                "this worker has no model; start it with `--model`, or call `run` with a reply",
            )
        })?;
        self.agent_loop.begin_untimed();
        self.agent_loop.add_question(message);
        self.record_additions(self.run.since_start(self.began));
        let answer = self.answer_of(&**model).await;
        self.record_additions(self.run.at());
        answer.map_err(|error| match error {
            NoAnswer::Loop(kind) => TerminalError::new(self.agent_loop.error(kind).to_string()),
            NoAnswer::Restate(error) => error,
        })
    }

    /// Asks the model until the agent loop has its answer.
    async fn answer_of(&mut self, model: &dyn Model) -> Result<String, NoAnswer> {
        loop {
            self.agent_loop.begin_turn()?;
            let mut request = self.agent_loop.request(self.run.received())?;
            let reply = loop {
                match self.reply(model, request).await? {
                    Some(reply) => break reply,
                    None => request = self.agent_loop.shorter_request(self.run.received())?,
                }
            };
            let calls = Some(self.agent_loop.calls_left());
            let turned = self.turn(reply, calls).await?;
            let next = self.agent_loop.evaluate(turned, self.run.received());
            self.record_additions(self.run.at());
            // The user is never asked.
            if let Next::Answer(answer) = next? {
                return Ok(answer.text);
            }
        }
    }

    /// Records what the agent loop added to the conversation.
    fn record_additions(&mut self, at: Duration) {
        for effect in self.agent_loop.take_effects() {
            match effect {
                Effect::Untrusted { name, text } => {
                    self.run.observe_untrusted(&name, &Untrusted::new(text), at);
                }
                Effect::Message { author, text } => self.run.message(author, text, at),
                _ => {}
            }
        }
    }

    /// Requests a reply of the model, several times if it fails. Meanwhile, the state has the problem. Returns `None` if the
    /// conversation is too long.
    async fn reply(
        &self,
        model: &dyn Model,
        request: ModelRequest,
    ) -> Result<Option<WholeReply>, TerminalError> {
        let mut requests = 0;
        loop {
            let context: &ObjectContext<'_> = self.context;
            let request = self.worker.constrained(request.clone());
            let stopper = Stopper::default();
            let request = |stop| model_step::request(model, request, stop);
            let step = context.run(|| stopper.work(request)).name("reply");
            requests += 1;
            let (problem, after) = match stopper.step(step, context.awakeable::<()>()).await? {
                ended @ (Ok(_) | Err(Failed::TooLong)) => {
                    if requests > 1 {
                        context.clear(PROBLEM);
                    }
                    return Ok(ended.ok());
                }
                Err(Failed::Cancelled) => {
                    return Err(TerminalError::new_with_code(409, "cancelled"));
                }
                Err(Failed::Refused(problem)) => return Err(TerminalError::new(problem)),
                Err(Failed::Repeated { problem, after }) => (problem, after),
            };
            let Some(delay) = model_step::delay(requests, after) else {
                let problem = format!("{problem}; the model was asked {requests} times");
                return Err(TerminalError::new(problem));
            };
            let seconds = delay.as_secs();
            let waits = format!("{problem}; the model is asked again after {seconds} s");
            context.set(PROBLEM, waits);
            context.sleep(delay).await?;
        }
    }
}
