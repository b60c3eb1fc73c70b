//! The virtual object of a conversation: replies, calls, questions and the record.

use std::sync::Arc;
use std::time::Duration;

use plaincall::durable::{DurableRun, Step};
use plaincall::{
    AllowAll, BoxError, CallResult, Decision, Effect, Gate as _, ReadOnly, Request, Stop,
    TurnResults,
};
use plaincall_agent::Role;
use restate_sdk::context::{DurableFuture, DurableFuturesUnordered};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::call::{self, CallRequest, CallResponse};
use crate::definitions::Definitions;
use crate::model_step::{self, WholeReply};
use crate::question::{AnswerTo, FirstAnswersClient, Kept, Question, QuestionKind, TimedAnswer};
use crate::record::{self, DEFINITIONS, QUESTIONS, Record, Stored};
use crate::worker::{Worker, unix_ms};

/// The maximum number of replies to a question.
const TURNS: u32 = 50;

/// How long `forget` waits for a reply in progress, which may be one that was killed and is not in progress any more.
const PAUSE: Duration = Duration::from_secs(1);

/// The total size of outputs in a response, in bytes. Restate accepts values of 32 MiB.
const MOST_OUTPUT: usize = 8 << 20;

/// A question to the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The message of the user.
    pub message: String,
}

/// A reply that was written elsewhere, whose calls are run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The whole reply.
    pub reply: String,
}

/// A part of a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordPart {
    /// Its number, from 0.
    pub part: u32,
}

/// The end of a question or of a reply.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finished {
    /// The text of the last reply, without its calls.
    pub text: String,
    /// The results of all calls, in order. Of their outputs and errors, the first 8 MiB; the record has all.
    pub results: Vec<CallResult>,
}

/// The state of a conversation.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The questions that wait for an answer.
    pub questions: Vec<Question>,
    /// The reason why the worker that was asked for the status cannot continue the reply in progress, if so.
    pub problem: Option<String>,
}

pub(crate) struct Conversation(pub(crate) Worker);

#[object(name = "Conversation")]
impl Conversation {
    /// Asks the model, and runs the calls of its replies until it answers.
    #[handler]
    async fn ask(
        &self,
        context: ObjectContext<'_>,
        ask: Json<Ask>,
    ) -> Result<Json<Finished>, HandlerError> {
        let mut invocation = Invocation::begin(&self.0, &context).await?;
        let finished = invocation.ask(&ask.into_inner().message).await;
        invocation.end(finished)
    }

    /// Runs the calls of a reply.
    #[handler]
    async fn run(
        &self,
        context: ObjectContext<'_>,
        reply: Json<Reply>,
    ) -> Result<Json<Finished>, HandlerError> {
        let mut invocation = Invocation::begin(&self.0, &context).await?;
        let reply = WholeReply {
            text: reply.into_inner().reply,
            stop: Stop::EndOfFile,
            usage: None,
            unix_ms: invocation.began,
        };
        let finished = invocation.turn(&reply).await.map(|text| text.0);
        invocation.end(finished)
    }

    /// Returns the open questions, and whether this worker can continue the conversation.
    #[handler]
    async fn status(&self, context: SharedObjectContext<'_>) -> Result<Json<Status>, HandlerError> {
        let started = context.get::<Json<Definitions>>(DEFINITIONS).await?;
        let started = started.map(Json::into_inner);
        let stored = Stored::of(&context.get_keys().await?);
        let keys = stored.questions.iter();
        let asked: Vec<_> = keys
            .map(|(_, key)| context.get::<Json<Question>>(key))
            .collect();
        let mut questions = Vec::new();
        for question in asked {
            questions.extend(question.await?.map(Json::into_inner));
        }
        let problem = started.and_then(|started| self.0.definitions().check(&started).err());
        Ok(Json(Status { questions, problem }))
    }

    /// Answers a question.
    #[handler]
    async fn answer(
        &self,
        context: SharedObjectContext<'_>,
        answer: Json<AnswerTo>,
    ) -> Result<(), HandlerError> {
        let AnswerTo {
            question: number,
            answer,
        } = answer.into_inner();
        let refuse = |code, problem| TerminalError::new_with_code(code, problem);
        let key = record::question(number);
        // State is read by key, and the number of questions is written after a question. So it is read first: a question that is
        // stored between the two reads is not taken for a closed one.
        let asked = context.get::<u32>(QUESTIONS).await?.unwrap_or_default();
        if number >= asked {
            let problem =
                format!("there is no question {number}; the conversation has had {asked} so far");
            return Err(refuse(404, problem).into());
        }
        let Some(Json(question)) = context.get::<Json<Question>>(&key).await? else {
            let problem = format!("question {number} is closed; `status` lists the open questions");
            return Err(refuse(409, problem).into());
        };
        if let Err(answers) = question.kind.check(&answer) {
            let problem = format!("question {number} waits for one of {answers}");
            return Err(refuse(409, problem).into());
        }
        let started = context.get::<Json<Definitions>>(DEFINITIONS).await?;
        let tool = self.0.settings().tools().get(&question.name);
        if let (Some(Json(started)), Some(tool)) = (started, tool)
            && self.0.definitions().has(&question.name, &started)
            && let Err(problem) = answer.check(tool)
        {
            let problem = format!("{problem}; question {number} stays open");
            return Err(refuse(400, problem).into());
        }
        let answers = context.object_client::<FirstAnswersClient<'_>>(context.key());
        let kept = Kept {
            question: number,
            awakeable: question.awakeable.clone(),
            answer: answer.clone(),
        };
        if !answers.keep(Json(kept)).call().await? {
            let problem = format!("question {number} already has another answer, which counts");
            return Err(refuse(409, problem).into());
        }
        let unix_ms = context.run(|| async { Ok(unix_ms()) }).name("time").await?;
        context.resolve_awakeable(&question.awakeable, Json(TimedAnswer { answer, unix_ms }));
        Ok(())
    }

    /// Removes the conversation and the answers to its questions, unless a reply is in progress.
    #[handler]
    async fn forget(&self, context: SharedObjectContext<'_>) -> Result<(), HandlerError> {
        let started = context.get::<Json<Definitions>>(DEFINITIONS).await?;
        let conversation = context.object_client::<ConversationClient<'_>>(context.key());
        let cleared = conversation.clear().call();
        // If the reply was killed, nothing delays the other invocation.
        if started.is_some() {
            let clearing = cleared.invocation_handle().await?;
            let pause = || async {
                tokio::time::sleep(PAUSE).await;
                Ok(())
            };
            context.run(pause).name("pause").await?;
            clearing.cancel();
        }
        cleared.await.map_err(|_| {
            let problem =
                "a reply is in progress; cancel its invocation first, or answer its questions";
            TerminalError::new_with_code(409, problem).into()
        })
    }

    /// Removes the conversation between two replies.
    #[handler]
    async fn clear(&self, context: ObjectContext<'_>) -> Result<(), HandlerError> {
        let answers = context.object_client::<FirstAnswersClient<'_>>(context.key());
        answers.forget(u32::MAX).call().await?;
        context.clear_all();
        Ok(())
    }

    /// Returns the record as the lines of a log, for `plaincall show`.
    #[handler]
    async fn record(&self, context: SharedObjectContext<'_>) -> Result<Vec<u8>, HandlerError> {
        Ok(record::lines(&context, None).await?)
    }

    /// Returns one part of a record that is too long for one response.
    #[handler]
    async fn record_part(
        &self,
        context: SharedObjectContext<'_>,
        part: Json<RecordPart>,
    ) -> Result<Vec<u8>, HandlerError> {
        Ok(record::lines(&context, Some(part.into_inner().part)).await?)
    }
}

/// What a conversation waits for.
enum Woken {
    /// A call ended, or its invocation was lost.
    Called(u32, Result<Json<CallResponse>, TerminalError>),
    /// A person answered the question with this number.
    Answered(u32, Result<Vec<u8>, TerminalError>),
    /// The question with this number got no answer in time.
    Unanswered(u32),
    /// The delay before a retry is over.
    RetryDue(u32, Duration),
    TurnTimedOut,
}

type Waiting<'c> =
    DurableFuturesUnordered<std::pin::Pin<Box<dyn DurableFuture<Output = Woken> + Send + 'c>>>;

/// An invocation in progress.
struct Invocation<'c> {
    worker: &'c Worker,
    context: &'c ObjectContext<'c>,
    run: DurableRun,
    record: Record,
    messages: Vec<plaincall_agent::Message>,
    /// The start of this invocation, in milliseconds since 1970 (UTC).
    began: u64,
    /// The prefix of the idempotency keys of this invocation's calls.
    idempotency_key: String,
    /// The number of questions so far, and those that are open.
    asked: u32,
    questions: Vec<Question>,
    results: Vec<CallResult>,
}

/// What an invocation journals first.
#[derive(Serialize, Deserialize)]
struct Begin {
    definitions: Definitions,
    run: plaincall::events::RunBegin,
    unix_ms: u64,
    /// A random number: no other invocation has it.
    token: u64,
}

impl<'c> Invocation<'c> {
    async fn begin(
        worker: &'c Worker,
        context: &'c ObjectContext<'c>,
    ) -> Result<Self, HandlerError> {
        let note = json!({ "program": "plaincall-restate", "conversation": context.key() });
        let begin = Begin {
            definitions: worker.definitions().clone(),
            run: worker.settings().begin(note),
            unix_ms: unix_ms(),
            token: getrandom::u64()?,
        };
        let journaled = context.run(|| async move { Ok(Json(begin)) }).name("begin");
        let begin = journaled.await?.into_inner();
        // Restate tries again later, so the conversation is not lost.
        worker.definitions().check(&begin.definitions)?;
        let stored = Stored::of(&context.get_keys().await?);
        // All parts are requested before the first one arrives.
        let parts = stored.parts.iter().map(|(_, key)| context.get(key));
        let lines = record::joined(parts.collect(), usize::MAX).await?;
        let events = record::events(&lines.unwrap_or_default())?;
        let asked = context.get::<u32>(QUESTIONS).await?.unwrap_or_default();
        let settings = worker.settings();
        let run = if events.is_empty() {
            settings.start(begin.run)
        } else {
            settings.resume(&events)
        };
        let mut run = run.map_err(|error| {
            TerminalError::new_with_code(
                409,
                format!("the conversation cannot continue: {error}; nothing was run"),
            )
        })?;
        context.set(DEFINITIONS, Json(begin.definitions));
        // Those of an invocation that was killed.
        for (_, key) in &stored.questions {
            context.clear(key);
        }
        // Those that end a reply whose invocation was killed. The model reads their results too.
        let new = run.take_events();
        let dialect = worker.dialect();
        let all = events.iter().chain(&new);
        let messages = model_step::messages(worker.system(), all, &run, dialect)
            .map_err(TerminalError::from_error)?;
        let mut record = Record::after(&stored, events.len());
        record.add(context, new, true);
        Ok(Self {
            worker,
            context,
            record,
            messages,
            began: begin.unix_ms,
            idempotency_key: format!("{}/{:016x}", context.key(), begin.token),
            asked,
            questions: Vec::new(),
            results: Vec::new(),
            run,
        })
    }

    async fn ask(&mut self, message: &str) -> Result<String, TerminalError> {
        let model = self.worker.model_of_questions().ok_or_else(|| {
            TerminalError::new_with_code(
                400,
                "this worker has no model; start it with `--model`, or call `run` with a reply",
            )
        })?;
        self.run.message(message, self.run.since_start(self.began));
        model_step::add(&mut self.messages, Role::User, message);
        for _ in 0..TURNS {
            let request = self.worker.request(self.messages.clone());
            let model = Arc::clone(model);
            let reply = self.context.run(|| model_step::request(model, request));
            let reply = reply.retry_policy(model_step::retries()).name("reply");
            let reply = reply.await?.into_inner();
            model_step::add(&mut self.messages, Role::Assistant, &reply.text);
            let (text, results) = self.turn(&reply).await?;
            if results.is_empty() || results.is_last() {
                return Ok(text);
            }
            let results = results.message(self.worker.dialect());
            let results = results.map_err(TerminalError::from_error)?;
            model_step::add(&mut self.messages, Role::User, results.text());
        }
        let problem = format!("no answer within {TURNS} replies; ask again to continue");
        Err(TerminalError::new(problem))
    }

    /// Runs the calls of a reply. Returns its text and their results.
    async fn turn(&mut self, reply: &WholeReply) -> Result<(String, TurnResults), TerminalError> {
        let mut waiting = Waiting::new();
        let limit = self.run.policy().turn_timeout;
        let began = reply.unix_ms;
        if let Some(limit) = limit {
            waiting.push(Box::pin(
                self.context.sleep(limit).map(|_| Woken::TurnTimedOut),
            ));
        }
        let deadline = limit.map(|limit| began.saturating_add(milliseconds(limit)));
        let at = self.run.since_start(began);
        let text = self.run.turn(&reply.text, reply.stop, reply.usage, at);
        let mut cancelled = None;
        while !self
            .carry_out(&mut waiting, deadline, cancelled.is_some())
            .await
        {
            match waiting.next().await {
                Ok(Some((_, woken))) => self.wake(woken),
                Ok(None) => {
                    return Err(TerminalError::new(
                        "the turn waits for nothing; please report this",
                    ));
                }
                // Restate has cancelled the invocations of its calls too.
                Err(error) => {
                    self.run
                        .cancel("the conversation was cancelled", self.run.at());
                    for question in self.questions.clone() {
                        let reason = "the conversation was cancelled".to_owned();
                        self.answer(question.question, Err(reason));
                    }
                    cancelled = Some(error);
                }
            }
        }
        let results = self.run.results();
        self.results.extend(results.iter().cloned());
        cancelled.map_or(Ok((text, results)), Err)
    }

    /// Carries out the next steps of the run. Returns whether the turn has ended.
    async fn carry_out(
        &mut self,
        waiting: &mut Waiting<'c>,
        deadline: Option<u64>,
        is_cancelled: bool,
    ) -> bool {
        let (context, asked) = (self.context, self.asked);
        let (mut has_ended, mut starts) = (false, Vec::new());
        while let Some(step) = self.run.next_step() {
            match step {
                Step::TurnEnd => has_ended = true,
                Step::Start(start) => starts.push(start),
                Step::Forget(call) => self.close(|question| question.call == call),
                Step::Ask { request, must_ask } => {
                    let decision = if must_ask {
                        None
                    } else {
                        self.decision(&request).await
                    };
                    match decision {
                        Some(decision) => {
                            self.run.decide(request.call, Ok(decision), self.run.at());
                        }
                        None => self.question(waiting, &request, QuestionKind::Approval),
                    }
                }
                Step::Recover(request) if is_cancelled => {
                    let reason = Err("the conversation was cancelled".into());
                    self.run.recover(request.call, reason, self.run.at());
                }
                Step::Recover(request) => self.question(waiting, &request, QuestionKind::Recovery),
                Step::Wait { call, delay } => {
                    let due = self.run.at().saturating_add(delay);
                    let slept = context
                        .sleep(delay)
                        .map(move |_| Woken::RetryDue(call, due));
                    waiting.push(Box::pin(slept));
                }
                // The invocation of the call is cancelled, or ends at the same time limit.
                _ => {}
            }
        }
        // If this invocation is killed, the record shows which writes have started.
        let writes = starts.iter().any(|start| start.effect == Effect::Write);
        let events = self.run.take_events();
        let now = has_ended || writes || asked < self.asked;
        self.record.add(context, events, now);
        for start in starts {
            let call = start.call;
            let request = CallRequest {
                idempotency_key: format!("{}/{call}", self.idempotency_key),
                deadline,
                start: *start,
            };
            let called = call::request(self.worker, context, request).call();
            waiting.push(Box::pin(called.map(move |end| Woken::Called(call, end))));
        }
        has_ended
    }

    /// Decides about a call, or returns `None` if a person must.
    async fn decision(&self, request: &Request) -> Option<Decision> {
        let decision = if self.worker.approves_all() {
            AllowAll.decide(request).await
        } else {
            ReadOnly.decide(request).await
        };
        decision
            .ok()
            .filter(|decision| !matches!(decision, Decision::Deny { .. }))
    }

    fn question(&mut self, waiting: &mut Waiting<'c>, request: &Request, kind: QuestionKind) {
        let (context, number) = (self.context, self.asked);
        let (awakeable, answer) = context.awakeable::<Vec<u8>>();
        waiting.push(Box::pin(
            answer.map(move |answer| Woken::Answered(number, answer)),
        ));
        let slept = context.sleep(self.run.policy().gate_timeout);
        waiting.push(Box::pin(slept.map(move |_| Woken::Unanswered(number))));
        let question = Question::new(number, request, kind, awakeable);
        context.set(&record::question(number), Json(question.clone()));
        self.questions.push(question);
        self.asked += 1;
        context.set(QUESTIONS, self.asked);
    }

    /// Removes questions that need no answer any more.
    fn close(&mut self, is_one: impl Fn(&Question) -> bool) {
        for question in self.questions.extract_if(.., |question| is_one(question)) {
            self.context.clear(&record::question(question.question));
        }
    }

    fn wake(&mut self, woken: Woken) {
        match woken {
            Woken::Called(call, Ok(Json(response))) => {
                let at = self.run.since_start(response.unix_ms);
                if response.timed_out {
                    self.run.time_out(at);
                }
                match response.end {
                    Some(end) => self.run.end_call(call, end, at),
                    None => self.run.interrupt(call, at),
                }
            }
            // The invocation was killed. Its tool may have started.
            Woken::Called(call, Err(_)) => self.run.interrupt(call, self.run.at()),
            Woken::Answered(number, answer) => {
                self.answer(number, answer.map_err(|error| error.message().to_owned()));
            }
            Woken::Unanswered(number) => {
                let limit = self.run.policy().gate_timeout;
                self.answer(
                    number,
                    Err(format!("no answer within {} s", limit.as_secs())),
                );
            }
            Woken::RetryDue(call, due) => self.run.retry(call, due),
            Woken::TurnTimedOut => self.run.time_out(self.run.at()),
        }
    }

    /// Takes the JSON of an answer. An invalid one denies the call, or leaves its outcome unknown. One that comes too late has
    /// no effect.
    fn answer(&mut self, number: u32, json: Result<Vec<u8>, String>) {
        let mut questions = self.questions.iter();
        let question = questions.find(|question| question.question == number);
        let Some(&Question { call, .. }) = question else {
            return;
        };
        let answer = json.and_then(|json| {
            serde_json::from_slice::<TimedAnswer>(&json)
                .map_err(|error| format!("the answer is invalid: {error}"))
        });
        let at = answer
            .as_ref()
            .map_or(self.run.at(), |answer| self.run.since_start(answer.unix_ms));
        let answer = answer.map(|answer| answer.answer).map_err(BoxError::from);
        self.run.answer(call, answer, at);
        self.close(|question| question.question == number);
    }

    /// Stores the rest of the record, and returns the results.
    fn end(mut self, text: Result<String, TerminalError>) -> Result<Json<Finished>, HandlerError> {
        let events = self.run.take_events();
        self.record.add(self.context, events, true);
        self.close(|_| true);
        if self.asked > 0 {
            let key = self.context.key();
            let answers = self.context.object_client::<FirstAnswersClient<'_>>(key);
            answers.forget(self.asked).send();
        }
        self.context.clear(DEFINITIONS);
        let (mut results, mut bytes) = (self.results, 0);
        for result in &mut results {
            let length = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
            let output = length(&result.output);
            bytes += output + length(&result.error);
            if bytes > MOST_OUTPUT {
                result.whole_bytes = result.whole_bytes.or(Some(output as u64));
                (result.output, result.error) = (None, None);
            }
        }
        Ok(Json(Finished {
            text: text?,
            results,
        }))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
