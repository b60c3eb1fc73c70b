//! The virtual object of a conversation: replies, calls, questions and the record.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plaincall::durable::{DurableRun, Step};
use plaincall::{
    AllowAll, BoxError, CallResult, Decision, Effect, Gate as _, ReadOnly, Request, Stop,
};
use plaincall_agent::Finish;
use plaincall_agent::agent_loop::{AgentLoop, ReadReply, Turned};
use restate_sdk::context::{
    CallFuture as _, DurableFuture, DurableFuturesUnordered, InvocationHandle,
};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answering;
use crate::call::{self, CallRequest, CallResponse};
use crate::definitions::Definitions;
use crate::model_step::WholeReply;
use crate::open_questions;
use crate::question::{AnswerTo, FirstAnswersClient, Kept, Question, QuestionKind, TimedAnswer};
use crate::record::{self, DEFINITIONS, PROBLEM, QUESTIONS, Record, Stored};
use crate::worker::{Worker, unix_ms};

/// How long `forget` waits for a reply in progress.
const PAUSE: Duration = Duration::from_secs(1);

/// The difference of clocks that does not matter, and by how much at least the clock of a server is taken to be ahead that
/// differs more.
const SAME: Duration = Duration::from_secs(1);
const AHEAD: Duration = Duration::from_mins(1);

/// The total size of outputs in a response, in bytes. Restate accepts values of 32 MiB.
const MOST_OUTPUT: usize = 8 << 20;

/// A question to the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The message of the user.
    pub message: String,
}

/// A reply that was written elsewhere, whose calls are run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The whole reply.
    pub reply: String,
}

/// A part of a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordPart {
    /// Its number, from 0.
    pub part: u32,
}

/// The end of a question or of a reply.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finished {
    /// The answer, or for `run` the text of the reply without its calls.
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
    /// Why the worker that was asked for the status cannot continue the reply in progress, or what the model's server answered
    /// while requests to it are repeated.
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
            reason: None,
            usage: None,
            unix_ms: invocation.began,
        };
        let turned = invocation.turn(reply, None).await;
        let finished = turned.map(|turned| turned.read.text().to_owned());
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
        let problem = match problem {
            Some(problem) => Some(problem),
            None => context.get::<String>(PROBLEM).await?,
        };
        Ok(Json(Status { questions, problem }))
    }

    /// Answers a question.
    #[handler]
    async fn answer(
        &self,
        context: SharedObjectContext<'_>,
        answer: Json<AnswerTo>,
    ) -> Result<(), HandlerError> {
        Ok(answering::answer(&self.0, &context, answer.into_inner()).await?)
    }

    /// Removes the conversation and the answers to its questions, unless a reply is in progress.
    #[handler]
    async fn forget(&self, context: SharedObjectContext<'_>) -> Result<(), HandlerError> {
        let conversation = context.object_client::<ConversationClient<'_>>(context.key());
        let cleared = conversation.clear().call();
        // Without a reply in progress, nothing delays the other invocation.
        let clearing = cleared.invocation_handle().await?;
        let pause = || async {
            tokio::time::sleep(PAUSE).await;
            Ok(())
        };
        context.run(pause).name("pause").await?;
        clearing.cancel();
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
        record::close_questions(&context, &Stored::of(&context.get_keys().await?));
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
    /// The question with this number got no answer.
    Unanswered(u32, Limit),
    /// The delay before a retry is over.
    RetryDue(u32, Duration),
    /// The turn reached its time limit.
    TurnTimedOut(Limit),
}

/// The end of a time limit.
#[derive(Clone, Copy)]
struct Limit {
    /// In milliseconds since 1970 (UTC).
    until: u64,
    /// How far the clock of the server is ahead of that of this worker, as far as this limit has shown. Another worker may
    /// continue the conversation, so it does not count for later limits.
    ahead: Duration,
}

impl Limit {
    fn new(until: u64) -> Self {
        let ahead = Duration::ZERO;
        Self { until, ahead }
    }
}

type Pinned<'c> = Pin<Box<dyn DurableFuture<Output = Woken> + Send + 'c>>;
type Waiting<'c> = DurableFuturesUnordered<Pinned<'c>>;

/// An invocation in progress.
pub(crate) struct Invocation<'c> {
    pub(crate) worker: &'c Worker,
    pub(crate) context: &'c ObjectContext<'c>,
    pub(crate) run: DurableRun,
    record: Record,
    pub(crate) agent_loop: AgentLoop,
    /// The start of this invocation, in milliseconds since 1970 (UTC).
    pub(crate) began: u64,
    /// The prefix of the idempotency keys of this invocation's calls.
    idempotency_key: String,
    /// The number of questions so far, and those that are open.
    asked: u32,
    questions: Vec<Question>,
    results: Vec<CallResult>,
    /// The running calls, if the turn has a time limit.
    running: BTreeMap<u32, InvocationHandle>,
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
        context.set(DEFINITIONS, Json(begin.definitions.clone()));
        // Restate tries again later, so the conversation is not lost.
        worker.definitions().check(&begin.definitions)?;
        let keys = context.get_keys().await?;
        let stored = Stored::of(&keys);
        // All parts are requested before the first one arrives.
        let parts = stored.parts.iter().map(|(_, key)| context.get(key));
        let joined = record::joined(parts.collect(), usize::MAX).await?;
        let (lines, superseded) = joined.unwrap_or_default();
        // A kill prevented that they were removed.
        for part in superseded {
            context.clear(&stored.parts[part].1);
        }
        let events = record::events(&lines)?;
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
        if keys.iter().any(|key| key == PROBLEM) {
            context.clear(PROBLEM);
        }
        // Those of an invocation that was killed.
        record::close_questions(context, &stored);
        run.observe_examples(worker.shown_calls(), run.at());
        // Those that end a reply whose invocation was killed. The model reads their results too.
        let new = run.take_events();
        let mut agent_loop = worker.agent_loop();
        let all = events.iter().chain(&new);
        agent_loop
            .replay(all, run.received())
            .map_err(TerminalError::from_error)?;
        let mut record = Record::after(&stored, events.len());
        record.add(context, new, true);
        Ok(Self {
            worker,
            context,
            record,
            agent_loop,
            began: begin.unix_ms,
            idempotency_key: format!("{}/{:016x}", context.key(), begin.token),
            asked,
            questions: Vec::new(),
            results: Vec::new(),
            running: BTreeMap::new(),
            run,
        })
    }

    /// Runs the calls of a reply, and adds them to the conversation.
    pub(crate) async fn turn(
        &mut self,
        reply: WholeReply,
        calls: Option<u32>,
    ) -> Result<Turned, TerminalError> {
        let mut waiting = Waiting::new();
        let limit = self.run.policy().turn_timeout;
        let until = limit.map_or(u64::MAX, |limit| after(reply.unix_ms, limit));
        if let Some(limit) = limit {
            waiting.push(self.sleep(limit, Woken::TurnTimedOut(Limit::new(until))));
        }
        let at = self.run.since_start(reply.unix_ms);
        let items = self
            .run
            .turn(&reply.text, reply.stop, reply.usage, calls, at);
        let mut read = ReadReply::default();
        for item in &items {
            read.item(item, |call| self.run.call_of(call).unwrap_or(u32::MAX));
        }
        let mut cancelled = None;
        loop {
            let carried_out = self.carry_out(&mut waiting, cancelled.is_some()).await;
            let woken = match carried_out {
                Ok(true) => break,
                Ok(false) if waiting.is_empty() => {
                    let problem = "the turn waits for nothing; please report this";
                    return Err(TerminalError::new(problem));
                }
                Ok(false) => self.next(&mut waiting).await,
                Err(error) => Err(error),
            };
            // Restate has cancelled the invocations of its calls too.
            if let Err(error) = woken {
                self.run
                    .cancel("the conversation was cancelled", self.run.at());
                for question in self.questions.clone() {
                    let reason = "the conversation was cancelled".to_owned();
                    self.answer(question.question, Err(reason), self.run.at());
                }
                cancelled = Some(error);
            }
        }
        let results = self.run.results();
        self.results.extend(results.iter().cloned());
        if let Some(error) = cancelled {
            return Err(error);
        }
        let tools = self.worker.settings().tools();
        for result in &results {
            read.result(result, tools);
        }
        let added = self
            .agent_loop
            .add_turn(reply.text.clone(), results.to_vec());
        added.map_err(TerminalError::from_error)?;
        let mut finish = Finish::new(reply.stop);
        finish.reason = reply.reason;
        Ok(Turned {
            written: reply.text,
            usage: reply.usage,
            read,
            results,
            finish,
            end: None,
        })
    }

    /// Carries out the next steps of the run. Returns whether the turn has ended.
    async fn carry_out(
        &mut self,
        waiting: &mut Waiting<'c>,
        is_cancelled: bool,
    ) -> Result<bool, TerminalError> {
        let context = self.context;
        let (mut has_ended, mut starts, mut asks) = (false, Vec::new(), Vec::new());
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
                        None => asks.push((request, QuestionKind::Approval)),
                    }
                }
                Step::Recover(request) if is_cancelled => {
                    let reason = Err("the conversation was cancelled".into());
                    self.run.recover(request.call, reason, self.run.at());
                }
                Step::Recover(request) => asks.push((request, QuestionKind::Recovery)),
                Step::Wait { call, delay } => {
                    let due = self.run.at().saturating_add(delay);
                    waiting.push(self.sleep(delay, Woken::RetryDue(call, due)));
                }
                Step::Stop(call) => {
                    if let Some(invocation) = self.running.get(&call)
                        && !is_cancelled
                    {
                        invocation.cancel();
                    }
                }
                _ => {}
            }
        }
        // If this invocation is killed, the record shows which writes have started.
        let writes = starts.iter().any(|start| start.effect == Effect::Write);
        let events = self.run.take_events();
        self.record
            .add(context, events, has_ended || writes || !asks.is_empty());
        let mut called = Vec::new();
        for start in starts {
            let call = start.call;
            let request = CallRequest {
                idempotency_key: format!("{}/{call}", self.idempotency_key),
                start: *start,
            };
            called.push((call, call::request(self.worker, context, request).call()));
        }
        // All are requested before the server has started the first one, and before a cancellation may arrive.
        let mut done = Ok(());
        for (call, called) in called {
            if self.run.policy().turn_timeout.is_some() && done.is_ok() {
                let invocation = called.invocation_handle().await;
                done = invocation.map(|one| drop(self.running.insert(call, one)));
            }
            waiting.push(Box::pin(called.map(move |end| Woken::Called(call, end))));
        }
        for (request, kind) in asks {
            done = done.and(self.question(waiting, &request, kind).await);
        }
        done.map(|()| has_ended)
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

    async fn question(
        &mut self,
        waiting: &mut Waiting<'c>,
        request: &Request,
        kind: QuestionKind,
    ) -> Result<(), TerminalError> {
        let (context, number) = (self.context, self.asked);
        let (awakeable, answer) = context.awakeable::<Vec<u8>>();
        waiting.push(Box::pin(
            answer.map(move |answer| Woken::Answered(number, answer)),
        ));
        let limit = self.run.policy().gate_timeout;
        // If the conversation is cancelled now, the question is answered with the others.
        let now = self.now().await;
        let asked = now.as_ref().copied().unwrap_or_default();
        let until = after(asked, limit);
        waiting.push(self.sleep(limit, Woken::Unanswered(number, Limit::new(until))));
        let question = Question::new(number, request, kind, [asked, until], awakeable);
        // Before anyone can answer.
        let answers = context.object_client::<FirstAnswersClient<'_>>(context.key());
        answers.open(question.answer_key()).send();
        context.set(&record::question(number), Json(question.clone()));
        open_questions::add(context, &question);
        self.questions.push(question);
        self.asked += 1;
        context.set(QUESTIONS, self.asked);
        now.map(drop)
    }

    /// Removes questions that need no answer any more.
    fn close(&mut self, is_one: impl Fn(&Question) -> bool) {
        for question in self.questions.extract_if(.., |question| is_one(question)) {
            open_questions::remove(self.context, question.question);
            self.context.clear(&record::question(question.question));
        }
    }

    /// Waits until something happens.
    async fn next(&mut self, waiting: &mut Waiting<'c>) -> Result<(), TerminalError> {
        let Some((_, woken)) = waiting.next().await? else {
            return Ok(());
        };
        match woken {
            Woken::Called(call, end) => {
                self.running.remove(&call);
                self.end_call(call, end);
            }
            Woken::Answered(number, json) => {
                let answer = json.map_err(|error| error.message().to_owned());
                let answer = answer.and_then(|json| {
                    serde_json::from_slice(&json)
                        .map_err(|error| format!("the answer is invalid: {error}"))
                });
                self.answer(number, answer, self.run.at());
            }
            // Its sleep continues when it is closed.
            Woken::Unanswered(number, _) if self.open(number).is_none() => {}
            Woken::Unanswered(number, mut limit) => match self.rest(&mut limit).await? {
                Some(rest) => {
                    waiting.push(self.sleep(rest, Woken::Unanswered(number, limit)));
                }
                None => self.end_question(number, limit.until).await?,
            },
            Woken::RetryDue(call, due) => self.run.retry(call, due),
            Woken::TurnTimedOut(mut limit) => match self.rest(&mut limit).await? {
                Some(rest) => {
                    waiting.push(self.sleep(rest, Woken::TurnTimedOut(limit)));
                }
                None => self.run.time_out(self.run.since_start(limit.until)),
            },
        }
        Ok(())
    }

    fn end_call(&mut self, call: u32, end: Result<Json<CallResponse>, TerminalError>) {
        match end {
            Ok(Json(response)) => {
                let at = self.run.since_start(response.unix_ms);
                match response.end {
                    Some(end) => self.run.end_call(call, end, at),
                    None => self.run.interrupt(call, at),
                }
            }
            // The invocation was killed. Its tool may have started.
            Err(_) => self.run.interrupt(call, self.run.at()),
        }
    }

    /// Waits for a time. The server gets the time of the end by the clock of this worker, and compares it with its own clock.
    fn sleep(&self, time: Duration, then: Woken) -> Pinned<'c> {
        Box::pin(self.context.sleep(time).map(move |_| then))
    }

    /// Returns for how long the server must wait again, if the time is not over by the clock of this worker when it has waited.
    async fn rest(&self, limit: &mut Limit) -> Result<Option<Duration>, TerminalError> {
        let rest = Duration::from_millis(limit.until.saturating_sub(self.now().await?));
        if rest < SAME {
            return Ok(None);
        }
        limit.ahead += rest.max(AHEAD);
        Ok(Some(rest.saturating_add(limit.ahead)))
    }

    /// Returns the time in milliseconds since 1970 (UTC), from the journal.
    async fn now(&self) -> Result<u64, TerminalError> {
        let now = self.context.run(|| async { Ok(unix_ms()) });
        now.name("time").await
    }

    fn open(&self, number: u32) -> Option<&Question> {
        let mut questions = self.questions.iter();
        questions.find(|question| question.question == number)
    }

    /// Ends a question at its time limit, unless an answer was accepted that did not reach the conversation yet.
    async fn end_question(&mut self, number: u32, until: u64) -> Result<(), TerminalError> {
        let Some(question) = self.open(number) else {
            return Ok(());
        };
        let kept = Kept::of(question, None);
        let key = self.context.key();
        let answers = self.context.object_client::<FirstAnswersClient<'_>>(key);
        let answer = answers.keep(Json(kept)).call().await?.into_inner();
        let limit = self.run.policy().gate_timeout.as_secs();
        let answer = answer.map(|answer| TimedAnswer::new(answer, until));
        let answer = answer.ok_or_else(|| format!("no answer within {limit} s"));
        self.answer(number, answer, self.run.since_start(until));
        Ok(())
    }

    /// Takes an answer. An invalid one denies the call, or leaves its outcome unknown. One to a closed question has no effect.
    fn answer(&mut self, number: u32, answer: Result<TimedAnswer, String>, at: Duration) {
        let Some(&Question { call, .. }) = self.open(number) else {
            return;
        };
        let answered = answer.as_ref();
        let at = answered.map_or(at, |answer| self.run.since_start(answer.unix_ms));
        let answer = answer.map(|answer| answer.answer).map_err(BoxError::from);
        self.run.answer(call, answer, at);
        self.close(|question| question.question == number);
    }

    /// Stores the rest of the record, and returns the results.
    fn end(mut self, text: Result<String, TerminalError>) -> Result<Json<Finished>, HandlerError> {
        let events = self.run.take_events();
        self.record.add(self.context, events, true);
        self.record.join(self.context);
        self.close(|_| true);
        if self.asked > 0 {
            let key = self.context.key();
            let answers = self.context.object_client::<FirstAnswersClient<'_>>(key);
            answers.forget(self.asked).send();
        }
        self.context.clear(DEFINITIONS);
        self.context.clear(PROBLEM);
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

/// Returns a time in milliseconds since 1970 (UTC) so much later.
fn after(unix_ms: u64, time: Duration) -> u64 {
    unix_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
