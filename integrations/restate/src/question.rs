//! Questions to a person: approvals, and the outcomes of interrupted calls.
//!
//! A question takes its first answer. A conversation reads it when its worker is there, maybe much later, so an object of its own
//! keeps the first answers until then. Another answer to the same question is refused.
#![allow(clippy::unused_async, reason = "handlers are async")]

use plaincall::Request;
use plaincall::durable::Answer;
use restate_sdk::prelude::*;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A question of a conversation that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The number of the question in the conversation, from 0.
    pub question: u32,
    /// The index of the call.
    pub call: u32,
    /// The id of the call.
    pub id: String,
    /// The name of its tool.
    pub name: String,
    /// Its arguments, as an object.
    pub arguments: Value,
    /// What is asked.
    pub kind: QuestionKind,
    /// When it was asked, in milliseconds since 1970 (UTC).
    pub asked_unix_ms: u64,
    /// Until when an answer counts. Then an approval is denied, and a recovery ends as `unknown`.
    pub until_unix_ms: u64,
    /// The reason if the call is held: it may have been copied from untrusted text, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The Restate awakeable that takes the answer.
    pub awakeable: String,
}

/// What a question asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuestionKind {
    /// Whether the call may run: `allow`, `allow_always`, `edit` or `deny`.
    Approval,
    /// What became of a call that was interrupted while it may have been running: `done`, `not_done`, `run_again` or `unknown`.
    Recovery,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnswerTo {
    /// The number of the question.
    pub question: u32,
    /// The answer.
    #[serde(flatten, deserialize_with = "strict")]
    pub answer: Answer,
}

/// Reads an answer. An unknown field is an error: it could be a reason or arguments with a wrong name.
fn strict<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Answer, D::Error> {
    let fields = Value::Object(Map::deserialize(deserializer)?);
    let answer = Answer::deserialize(&fields).map_err(D::Error::custom)?;
    let known = serde_json::to_value(&answer).map_err(D::Error::custom)?;
    let mut names = fields.as_object().into_iter().flat_map(Map::keys);
    match names.find(|name| known.get(name).is_none()) {
        Some(name) => Err(D::Error::custom(format!(
            "unknown field `{name}` of the answer {}",
            known["answer"]
        ))),
        None => Ok(answer),
    }
}

/// An answer with the time at which a worker received it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TimedAnswer {
    #[serde(flatten, deserialize_with = "strict")]
    pub(crate) answer: Answer,
    /// In milliseconds since 1970 (UTC).
    #[serde(default)]
    pub(crate) unix_ms: u64,
}

impl TimedAnswer {
    pub(crate) fn new(answer: Answer, unix_ms: u64) -> Self {
        Self { answer, unix_ms }
    }
}

/// An answer to keep.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The key of the question.
    question: String,
    /// `None` closes the question.
    answer: Option<Answer>,
}

impl Kept {
    pub(crate) fn of(question: &Question, answer: Option<Answer>) -> Self {
        let question = question.answer_key();
        Self { question, answer }
    }
}

/// The first answers to the questions of a conversation. An open question without an answer has the state `None`, a closed one none.
pub(crate) struct FirstAnswers;

#[object(name = "ConversationAnswers")]
impl FirstAnswers {
    /// Opens the question with this key.
    #[handler]
    async fn open(&self, context: ObjectContext<'_>, question: String) -> Result<(), HandlerError> {
        context.set(&question, Json(None::<Answer>));
        Ok(())
    }

    /// Keeps an answer, unless there is one or the question is closed, also by `forget`. Returns the one that counts.
    #[handler]
    async fn keep(
        &self,
        context: ObjectContext<'_>,
        kept: Json<Kept>,
    ) -> Result<Json<Option<Answer>>, HandlerError> {
        let Kept { question, answer } = kept.into_inner();
        let first = context.get::<Json<Option<Answer>>>(&question).await?;
        let Some(Json(None)) = first else {
            return Ok(first.unwrap_or(Json(None)));
        };
        match &answer {
            Some(answer) => context.set(&question, Json(Some(answer.clone()))),
            None => context.clear(&question),
        }
        Ok(Json(answer))
    }

    /// Forgets the answers to the questions before this number, which are closed.
    #[handler]
    async fn forget(&self, context: ObjectContext<'_>, number: u32) -> Result<(), HandlerError> {
        for key in context.get_keys().await? {
            let question = key.split(' ').next().unwrap_or_default();
            if question
                .parse()
                .is_ok_and(|question: u32| question < number)
            {
                context.clear(&key);
            }
        }
        Ok(())
    }
}

impl QuestionKind {
    /// Checks that this is an answer to a question of this kind.
    ///
    /// # Errors
    /// Returns the possible answers.
    pub(crate) fn check(self, answer: &Answer) -> Result<(), &'static str> {
        match (self, answer.is_recovery()) {
            (Self::Approval, true) => Err("`allow`, `allow_always`, `edit` or `deny`"),
            (Self::Recovery, false) => Err("`done`, `not_done`, `run_again` or `unknown`"),
            _ => Ok(()),
        }
    }
}

impl Question {
    /// Returns the key of its answer. A conversation that was forgotten has the same numbers again, but not the same awakeables.
    pub(crate) fn answer_key(&self) -> String {
        format!("{} {}", self.question, self.awakeable)
    }

    pub(crate) fn new(
        question: u32,
        request: &Request,
        kind: QuestionKind,
        [asked_unix_ms, until_unix_ms]: [u64; 2],
        awakeable: String,
    ) -> Self {
        Self {
            question,
            call: request.call,
            id: request.id.to_string(),
            name: request.name.to_string(),
            arguments: request.arguments.to_value(),
            kind,
            asked_unix_ms,
            until_unix_ms,
            held: request.held.as_ref().map(ToString::to_string),
            awakeable,
        }
    }
}
