//! Converts the model's reply to a reply with native tool calls: a state machine without I/O.
//!
//! ```text
//!           push, whole                     finish reason, or a call that is not allowed here
//! Reading ───────────────► Reading  ─────────────────────────────────────► Settled ──end──► Next
//!    ▲                        │ an error in the stream                       │ an invalid call, or none,
//!    │                        └────────────────────────────────► Settled     │ and none has been sent
//!    └──────────────────────────── the next round ◄──────────────────────────┘
//! ```

mod calls;
mod holding_sink;
mod native;
mod native_calls;
mod open_call;
pub(crate) mod plan;
mod repair_reason;
pub(crate) mod repair_round;
mod round;
mod text;
pub(crate) mod untrusted;

use std::sync::{Arc, Weak};
use std::time::Duration;

use plaincall_reply::{ReplyReader, Stop};
use plaincall_tool::Arguments;
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ChunkChoice, Delta, ReasoningField, Usage,
    api_finish_reason, read_error,
};

use crate::api::encoder::Encoder;
use crate::counts::Counts;
use crate::error::GatewayError;
use crate::key::{CallIds, Secret};
use crate::reply::calls::Before;
use crate::reply::holding_sink::HoldingSink;
use crate::reply::native::Native;
use crate::reply::open_call::Opened;
use crate::reply::plan::{ReplyMode, ReplyPlan};
use crate::reply::repair_reason::{as_text, only_reasoning, without_call};
use crate::reply::repair_round::RepairRound;
use crate::reply::round::Round;
use crate::tools::Choice;

/// Converts a model's reply and writes it with an [`Encoder`] in pieces.
///
/// [`push`](Self::push) takes a chunk of the model server, [`whole`](Self::whole) a complete answer, and [`end`](Self::end) the
/// result of the stream. The output depends only on the text and the seed, not on how the text is split into chunks.
///
/// ```
/// use plaincall_gateway::{ModelSettings, Secret};
/// use plaincall_gateway::translation::{Next, Reply, StreamedResponse, ToolCache, Translation, translate};
/// use plaincall_wire::openai::ChatCompletionChunk;
///
/// let body = br#"{"messages":[{"role":"user","content":"Add."}],"tools":[{"type":"function","function":{"name":"add",
///     "parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]}"#;
/// let secret = Secret::new("secret");
/// let translated = translate(plaincall_wire::read(body)?, &ModelSettings::default(), &secret, &ToolCache::new());
/// let Ok(Translation::Changed { plan, .. }) = translated else { panic!("it offers a tool") };
///
/// let answer = StreamedResponse::new("chatcmpl-1", 0, false);
/// let mut reply = Reply::new(*plan, Secret::new("random bytes"), Box::new(answer));
/// for data in [
///     r#"{"choices":[{"delta":{"content":"!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END"}}]}"#,
///     r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
/// ] {
///     reply.push(ChatCompletionChunk::read(data)?.expect("a chunk"));
/// }
/// assert_eq!(reply.end(Ok(())), Next::Done);
/// let bytes = String::from_utf8(reply.encoder_mut().take()).expect("text");
/// assert!(bytes.contains(r#""type":"function","function":{"name":"add","arguments":""}"#));
/// assert!(bytes.contains(r#"{"index":0,"function":{"arguments":"{\"a\":5}"}}"#));
/// assert!(bytes.contains(r#""finish_reason":"tool_calls""#));
/// # Ok::<(), plaincall_wire::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reply {
    plan: Arc<ReplyPlan>,
    reader: ReplyReader<Arc<ReplyPlan>>,
    ids: CallIds,
    round: Round,
    native: Native,
    repairs: u32,
    sent: u64,
    last_id: String,
    /// The text that has been sent, while a repair is possible.
    content: String,
    reasoning_name: ReasoningField,
    spent: Option<Usage<'static>>,
    usage: Option<Usage<'static>>,
    /// The rounds whose usage is unknown, because their requests were cancelled, and their estimated tokens.
    cancelled_rounds: u64,
    cancelled_tokens: u64,
    settled: Option<Next>,
    /// The finish reason of the first reply, if it is an answer without a call: it is the answer if a repair round fails.
    first_reason: Option<String>,
    /// The beginning of a call at the end of the first reply.
    first_header: String,
    /// Whether a text has been sent, or a refusal.
    has_text: bool,
    /// Whether the first reply has reasoning.
    has_reasoning: bool,
    /// Whether the answer of the model server is not streamed.
    is_whole: bool,
    counts: Counts,
    /// Alive as long as the request. `None` if that is not known.
    client: Option<Weak<()>>,
    out: HoldingSink,
}

/// The finish reason of a reply that the model server could not complete.
const ERROR_REASON: &str = "error";

/// The maximum number of chunks after the end of a reply, where the usage is. Limits servers that never end their stream.
const MAX_LATE: u32 = 16;

/// The estimated length of a token, in bytes.
const TOKEN: usize = 4;

/// How long to wait for the usage after the end of a reply ([`Flow::UsageOnly`]), without the time that the client needs to read.
pub const USAGE_WAIT: Duration = Duration::from_secs(5);

/// The longest reply, in bytes, with its reasoning and its calls. An open call is kept in memory.
const MAX_TEXT: usize = 64 << 20;

/// Whether the caller should continue reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flow {
    /// Keep reading.
    Continue,
    /// The reply is complete. Only its usage may follow: wait for it at most [`USAGE_WAIT`].
    UsageOnly,
    /// Stop reading: the request to the model server can be cancelled.
    Stop,
}

/// The next step after an answer of the model has ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Next {
    /// The reply is complete.
    Done,
    /// Repair the reply: send the same request with these messages appended, and feed the answer to the same [`Reply`].
    Repair(RepairRound),
    /// The reply ends with an error.
    Failed(GatewayError),
}

impl Reply {
    /// Creates a reply that is read by this plan and written by this encoder. Call ids are derived from the seed, which must be random
    /// and used only once.
    pub fn new(mut plan: ReplyPlan, seed: Secret, encoder: Box<dyn Encoder + Send>) -> Self {
        let taken = std::mem::take(&mut plan.taken);
        let plan = Arc::new(plan);
        Self {
            reader: plan.compiled.reader.with_tools(Arc::clone(&plan)),
            ids: CallIds::new(seed, taken),
            round: Round::new(&plan),
            native: Native::new(&plan),
            repairs: 0,
            sent: 0,
            last_id: String::new(),
            content: String::new(),
            reasoning_name: ReasoningField::ReasoningContent,
            spent: None,
            usage: None,
            cancelled_rounds: 0,
            cancelled_tokens: 0,
            settled: None,
            first_reason: None,
            first_header: String::new(),
            has_text: false,
            has_reasoning: false,
            is_whole: false,
            counts: plan.counts,
            client: None,
            out: HoldingSink::new(
                encoder,
                plan.mode == ReplyMode::Calls && !plan.streams_arguments(),
            ),
            plan,
        }
    }

    pub(crate) fn encoder(&self) -> &dyn Encoder {
        &*self.out.out
    }

    /// Returns the encoder, for example to take its output.
    pub fn encoder_mut(&mut self) -> &mut dyn Encoder {
        &mut *self.out.out
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn add_counts(&mut self, more: Counts) {
        self.counts += more;
    }

    /// Handles the next chunk of the model server.
    pub fn push(&mut self, mut chunk: ChatCompletionChunk<'_>) -> Flow {
        if chunk.is_error() {
            let error = read_error(plaincall_wire::write(&chunk).as_bytes());
            return self.fail(GatewayError::from_answer(error));
        }
        if let Some(usage) = chunk.usage.take() {
            self.usage = Some(usage.into_owned());
        }
        if let Some(settled) = &self.settled {
            if *settled == Next::Done && chunk.choices().is_empty() {
                // Other fields of this chunk are sent with the usage.
                self.out.out.carry(&chunk);
            }
            return self.late();
        }
        let ours = |number: Option<u64>| number.unwrap_or_default() == 0;
        let mut choices = chunk.choices().iter().filter(|choice| ours(choice.index));
        let failed = choices.find(|choice| is_failed(choice) && choice.content().is_empty());
        if let Some(error) = failed.map(failure) {
            return self.fail(error);
        }
        for choice in chunk.choices.iter_mut().flatten() {
            // They contain the model's text with its markers.
            choice.logprobs = None;
            native_calls::convert_old_call(choice);
        }
        if self.repairs == 0 {
            self.out.out.begin(&chunk);
            self.out.out.carry(&chunk);
        }
        for choice in chunk.choices().iter().filter(|choice| ours(choice.index)) {
            let delta = choice.delta.as_ref();
            if delta.is_some_and(|one| one.reasoning.is_some() && one.reasoning_content.is_none()) {
                self.reasoning_name = ReasoningField::Reasoning;
            }
            let is_native = self.plan.mode == ReplyMode::Native;
            if !choice.calls().is_empty() && !is_native {
                return self.fail(native::unexpected_call());
            }
            self.think(&choice.thought());
            self.decline(delta.and_then(|delta| delta.refusal.as_deref()));
            let content = choice.content();
            let calls = choice.calls().iter().map(native_calls::length);
            let others = choice.thought().len() + calls.sum::<usize>();
            if self.read_content(&content, others) == Flow::Stop {
                return Flow::Stop;
            }
            if is_native {
                self.native_calls(choice.calls());
                if self.is_settled() {
                    return Flow::Stop;
                }
            }
            if is_failed(choice) {
                return self.fail(failure(choice));
            }
            if let Some(reason) = choice.finished() {
                self.finish(Some(reason));
            }
        }
        self.flow()
    }

    /// Handles a chunk that has only this text, after an equal one with another text ([`push`](Self::push)).
    pub(crate) fn push_text(&mut self, text: &str) -> Flow {
        if self.is_settled() {
            return self.late();
        }
        match self.read_content(text, 0) {
            Flow::Stop => Flow::Stop,
            _ => self.flow(),
        }
    }

    /// Returns whether the caller should continue reading after a chunk.
    fn flow(&self) -> Flow {
        if self.is_settled() {
            Flow::UsageOnly
        } else {
            Flow::Continue
        }
    }

    /// Counts a chunk after the end of the reply.
    fn late(&mut self) -> Flow {
        self.round.late += 1;
        if self.round.late >= MAX_LATE {
            Flow::Stop
        } else {
            Flow::UsageOnly
        }
    }

    /// Reads a piece of the model's text, with the length of what comes with it. Returns [`Flow::Stop`] if the reply has ended.
    fn read_content(&mut self, text: &str, others: usize) -> Flow {
        self.round.has_choice = true;
        self.round.length += text.len() + others;
        if self.round.length > MAX_TEXT {
            let message = format!("the model's reply exceeds {MAX_TEXT} bytes");
            return self.fail(GatewayError::upstream(message));
        }
        if self.fails_without_client() {
            return Flow::Stop;
        }
        match self.read(text) {
            Some(before) => {
                self.end_before(before);
                Flow::Stop
            }
            None => Flow::Continue,
        }
    }

    /// Returns whether a repair round is possible or pending, so that the request is still needed.
    pub(crate) fn may_ask_again(&self) -> bool {
        match self.settled {
            Some(Next::Repair(_)) => true,
            Some(_) => false,
            None => {
                let is_known = self.round.written.is_some();
                self.may_repair() && is_known && self.repairs < self.plan.repair_rounds
            }
        }
    }

    /// Returns whether the reply keeps untrusted texts of the request, to detect calls copied from them.
    #[cfg(feature = "server")]
    pub(crate) fn keeps_texts(&self) -> bool {
        !self.plan.untrusted.is_empty()
    }

    /// Returns what the request must keep alive: once it is dropped, the rest of the reply is not read.
    #[cfg(feature = "server")]
    pub(crate) fn client(&mut self) -> Arc<()> {
        let client = Arc::new(());
        self.client = Some(Arc::downgrade(&client));
        client
    }

    /// Returns whether no one waits for the reply any longer.
    fn is_abandoned(&self) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|client| client.strong_count() == 0)
    }

    /// Ends the reply with an error if no one waits for it any longer. Returns whether it has.
    fn fails_without_client(&mut self) -> bool {
        let is_abandoned = self.is_abandoned();
        if is_abandoned {
            self.fail(GatewayError::upstream("the client has disconnected"));
        }
        is_abandoned
    }

    /// Returns whether invalid calls are repaired, if no call has been sent before.
    #[cfg(feature = "server")]
    pub(crate) fn plans_repair(&self) -> bool {
        self.plan.may_repair()
    }

    #[cfg(feature = "server")]
    pub(crate) fn is_translated(&self) -> bool {
        self.plan.mode != ReplyMode::Native
    }

    /// Returns whether a call or a repair round keeps the client waiting.
    pub(crate) fn is_holding(&self) -> bool {
        let is_held = matches!(self.round.open, Some(Opened::Held)) || self.native.is_holding();
        let is_holding = self.out.is_holding() || is_held;
        !self.is_settled() && (is_holding || self.repairs > 0)
    }

    /// Returns whether the result of the round is known, so that only the usage may follow.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled.is_some()
    }

    /// Handles a complete answer of the model server.
    pub fn whole(&mut self, completion: &ChatCompletion<'_>) -> Next {
        let error = completion.unknown.get("error").cloned();
        let Some(choice) = completion.choices().first() else {
            let chunk = ChatCompletionChunk {
                object: completion.object.clone(),
                usage: completion.usage.clone(),
                error,
                unknown: completion.unknown.clone(),
                ..ChatCompletionChunk::default()
            };
            self.push(chunk);
            return self.end(Ok(()));
        };
        self.is_whole = true;
        let message = choice.message.clone().unwrap_or_default();
        let delta = Delta {
            content: message.content,
            refusal: message.refusal,
            reasoning_content: message.reasoning_content,
            reasoning: message.reasoning,
            tool_calls: message.tool_calls,
            unknown: message.unknown,
            ..Delta::default()
        };
        let chunk = ChatCompletionChunk {
            choices: Some(vec![ChunkChoice {
                delta: Some(delta),
                finish_reason: choice.finish_reason.clone(),
                ..ChunkChoice::default()
            }]),
            id: completion.id.clone(),
            created: completion.created.clone(),
            model: completion.model.clone(),
            usage: completion.usage.clone(),
            error,
            ..ChatCompletionChunk::default()
        };
        self.push(chunk);
        self.end(Ok(()))
    }

    /// Ends the answer of the model server. `Ok` means that it ended with `[DONE]` or after a finish reason. An error is ignored if
    /// the reply is complete already. After [`Next::Repair`], the reply is ready for the next answer.
    pub fn end(&mut self, end: Result<(), GatewayError>) -> Next {
        let end = match end {
            Ok(()) if !self.round.has_choice => Err(no_choices()),
            end => end,
        };
        match (&self.settled, end) {
            (None, Ok(())) => self.finish(None),
            (None, Err(error)) => {
                self.fail(error);
            }
            (Some(_), _) => {}
        }
        let usage = self.usage.take();
        if let Some(usage) = &usage {
            match &mut self.spent {
                Some(spent) => spent.add(usage),
                None => self.spent = Some(usage.clone()),
            }
        }
        let next = self.settled.take().unwrap_or(Next::Done);
        match &next {
            Next::Repair(_) => {
                if usage.is_none() {
                    self.cancelled_rounds += 1;
                    self.cancelled_tokens += (self.round.length / TOKEN) as u64;
                }
                self.repairs += 1;
                self.counts.repair_rounds += 1;
                self.reader.begin_reply();
                self.plan.untrusted.begin_reply();
                self.round = Round::new(&self.plan);
                self.native = Native::new(&self.plan);
                return next;
            }
            Next::Done => {
                if let Some(mut spent) = self.spent.take() {
                    spent.add(
                        &usage
                            .map(|usage| self.cancelled(&usage))
                            .unwrap_or_default(),
                    );
                    self.out.out.usage(&spent);
                }
            }
            Next::Failed(_) => self.out.release(),
        }
        self.settled = Some(next.clone());
        next
    }

    /// Estimates the usage of the rounds that were cancelled by that of the last round.
    fn cancelled(&self, last: &Usage<'_>) -> Usage<'static> {
        let prompts = last.prompt_tokens.unwrap_or_default();
        let prompts = prompts.saturating_mul(self.cancelled_rounds);
        let tokens = self.cancelled_tokens;
        Usage {
            prompt_tokens: last.prompt_tokens.map(|_| prompts),
            completion_tokens: last.completion_tokens.map(|_| tokens),
            total_tokens: last.total_tokens.map(|_| prompts.saturating_add(tokens)),
            ..Usage::default()
        }
    }

    /// Ends the reply with an error, unless it is complete already. If a repair round fails before a call has been sent, the first
    /// reply is the answer, unless it has an invalid call: its text alone would look complete.
    fn fail(&mut self, error: GatewayError) -> Flow {
        if self.is_settled() {
            return Flow::Stop;
        }
        let first = self.first_reason.take();
        let first = first.filter(|_| self.sent == 0 && !self.is_abandoned());
        if let Some(reason) = first {
            self.counts.failed_repairs += 1;
            let header = std::mem::take(&mut self.first_header);
            if !header.is_empty() {
                self.out.content(&header);
            }
            self.complete(&reason);
        } else {
            self.end_native_text(false);
            self.settled = Some(Next::Failed(error));
        }
        Flow::Stop
    }

    /// Returns whether an invalid call leads to a repair rather than the end of the reply.
    fn may_repair(&self) -> bool {
        self.plan.may_repair() && self.sent == 0
    }

    fn think(&mut self, thought: &str) {
        if thought.is_empty() {
            return;
        }
        self.end_native_text(true);
        if self.repairs == 0 {
            self.has_reasoning = true;
            self.flush();
            self.round.text.gap();
            self.out.reasoning(self.reasoning_name, thought);
        }
    }

    fn decline(&mut self, refusal: Option<&str>) {
        if let Some(refusal) = refusal.filter(|refusal| !refusal.is_empty()) {
            self.end_native_text(true);
            self.flush();
            self.has_text = true;
            self.out.refusal(refusal);
        }
    }

    /// Reads a piece of the model's text. Returns the reason if the reply ends before a call.
    fn read(&mut self, text: &str) -> Option<Before> {
        match self.plan.mode {
            ReplyMode::Calls => return self.read_calls(text),
            ReplyMode::Native => self.native_text(text),
            ReplyMode::Text if text.is_empty() => {}
            ReplyMode::Text => self.out.content(text),
        }
        None
    }

    /// Returns whether the model may call, and has not done so yet: its text may contain a near miss.
    fn lacks_call(&self) -> bool {
        let may_call = self.plan.mode != ReplyMode::Text && self.plan.choice != Choice::None;
        may_call && self.sent == 0
    }

    fn begin_sent(&mut self, name: &str) -> u64 {
        let index = self.sent;
        self.sent += 1;
        self.last_id = self.ids.next();
        let name = self.plan.offer.original(name);
        self.out.call(index, &self.last_id, name);
        index
    }

    fn send_call(&mut self, name: &str, arguments: &Arguments) {
        let index = self.begin_sent(name);
        self.out.arguments(index, &arguments.to_value().to_string());
        self.out.end_call();
    }

    fn flush(&mut self) {
        if let Some(Opened::Streamed(call)) = &mut self.round.open {
            call.flush(&mut self.out);
        }
        if let Some(text) = self.round.text.take() {
            self.send_text(&text);
        }
    }

    /// Sends the text before a call or the end of the reply.
    fn end_text(&mut self) {
        self.flush();
        if let Some(text) = self.round.text.take_rest() {
            self.send_text(&text);
        }
    }

    fn send_text(&mut self, text: &str) {
        if self.repairs == 0 {
            self.has_text |= !text.trim().is_empty();
            self.out.content(text);
        }
        // The text of a repair round is sent only if the round contains no call.
        if self.may_repair() && self.repairs > 0 {
            self.round.answer.push_str(text);
        } else if self.may_repair() && self.round.written.is_some() {
            self.content.push_str(text);
        }
    }

    /// Handles the end of the model's reply, with or without a finish reason.
    fn finish(&mut self, reason: Option<&str>) {
        // Some servers send the finish reason twice.
        if self.is_settled() {
            return;
        }
        let mut api_reason = reason.map(api_finish_reason);
        let ended = reason.map_or(Stop::Broken, Stop::from_finish_reason);
        let mut is_truncated = match api_reason {
            None => self.round.open.is_some() || self.native.calls.is_last(),
            Some("content_filter") => true,
            // The model server's calls have no end marker: with an unknown reason, the last one may be truncated.
            Some("length") if self.plan.mode == ReplyMode::Native => true,
            Some(_) => ended == Stop::Length,
        };
        // After a stop sequence, a call of the model server is complete only if its arguments are. A client's own has the reason `stop`.
        let is_own_stop = self.plan.stops_anywhere && api_reason == Some("stop");
        let is_cut = is_truncated || reason.is_some() && (is_own_stop || ended == Stop::Broken);
        self.end_native_calls(is_cut);
        if self.plan.mode == ReplyMode::Native && self.round.has_truncated_call && !is_truncated {
            // Some servers report another reason if the limit truncated a call.
            (is_truncated, api_reason) = (true, Some("length"));
        }
        self.round.stop = match ended {
            _ if is_truncated => Stop::Length,
            Stop::Natural if !self.plan.stops_anywhere => Stop::Natural,
            _ => Stop::Broken,
        };
        self.end_native_text(!is_cut && !is_truncated);
        let end = if is_truncated { "length" } else { "stop" };
        for item in self.reader.finish(self.round.stop).items {
            if let Some(before) = self.take(item) {
                return self.end_before(before);
            }
        }
        self.flush();
        self.settle(api_reason.unwrap_or(end));
    }

    fn settle(&mut self, reason: &str) {
        self.end_text();
        let round = &mut self.round;
        self.counts.invented_results += round.text.invented();
        let is_truncated = round.stop == Stop::Length;
        // After a call, it is the beginning of one that is invalid.
        let mut header = round.header.take().filter(|_| self.sent == 0);
        if is_truncated && header.take().is_some() {
            round.has_truncated_call = true;
            self.counts.truncated_calls += 1;
        }
        let has_text = self.has_text || self.repairs > 0;
        if round.has_truncated_call && self.sent == 0 && has_text && !self.out.out.is_continued() {
            self.fail(truncated_call(reason));
            return;
        }
        let round = &mut self.round;
        if round.started == 0
            && !round.has_truncated_call
            && self.counts.disallowed_calls == 0
            && let Some(blank) = round.text.take_blank()
        {
            self.send_text(&blank);
        }
        if self.lacks_call() {
            let written = self.round.written.as_deref().unwrap_or_default();
            let repair = match self.plan.mode {
                ReplyMode::Native => {
                    let message = self.native.near_miss();
                    message.and_then(|message| as_text(message, written, &self.plan))
                }
                _ => without_call(written, &self.plan, self.repairs),
            };
            let is_empty = self.has_reasoning && !self.has_text && header.is_none();
            let is_first = self.repairs == 0 && self.may_ask_again();
            let repair = repair.or_else(|| (is_empty && is_first).then(only_reasoning));
            let is_near_miss = repair.as_ref().is_some_and(|repair| repair.is_near_miss);
            self.counts.near_misses += u64::from(is_near_miss);
            // In native mode, what is not a call is text.
            let may_be_text = self.plan.mode == ReplyMode::Native && !self.may_ask_again();
            let may_repair = self.may_repair() && !is_truncated && !may_be_text;
            if let Some(repair) = repair.filter(|_| may_repair) {
                if self.repairs == 0 && !repair.is_missing {
                    self.first_reason = Some(reason.to_owned());
                    self.first_header = header.unwrap_or_default();
                }
                return self.repair(repair);
            }
        }
        if let Some(header) = header {
            self.send_text(&header);
        }
        if self.lacks_call() {
            self.send_answer();
        }
        self.complete(reason);
    }

    /// Completes the reply with a finish reason.
    fn complete(&mut self, reason: &str) {
        self.counts.missing_calls += u64::from(self.plan.choice.is_required() && self.sent == 0);
        self.out.finish(match reason {
            "tool_calls" | "function_call" if self.sent == 0 => "stop",
            _ if self.sent == 0 || self.round.stop == Stop::Length => reason,
            _ => "tool_calls",
        });
        self.settled = Some(Next::Done);
    }
}

/// Returns whether the model server could not complete this choice.
fn is_failed(choice: &ChunkChoice<'_>) -> bool {
    let reason = choice.finished();
    reason.is_some_and(|reason| reason.eq_ignore_ascii_case(ERROR_REASON))
}

/// The error of a choice that ended with one.
fn failure(choice: &ChunkChoice<'_>) -> GatewayError {
    match choice.unknown.get("error").filter(|error| !error.is_null()) {
        Some(error) => GatewayError::from_answer(read_error(error.text().as_bytes())),
        None => GatewayError::upstream(format!(
            "the model server ended its reply with the finish reason `{ERROR_REASON}`"
        )),
    }
}

/// The error of a reply with text that was truncated in its first call.
fn truncated_call(reason: &str) -> GatewayError {
    let advice = match reason {
        "length" => "; allow longer replies (`max_tokens`), or a longer context",
        _ => "",
    };
    let message = format!(
        "the model's reply was truncated in a tool call, with the finish reason `{reason}`{advice}"
    );
    GatewayError::model(message, "truncated_tool_call")
}

fn no_choices() -> GatewayError {
    GatewayError::upstream("the model server returned no choices")
}
