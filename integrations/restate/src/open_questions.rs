//! The open questions of all conversations.
//!
//! State belongs to a conversation, so one object has a copy of all open questions. A question is added after it is stored in its
//! conversation, and removed before it is removed there, so none is left behind when an invocation is killed.
#![allow(clippy::unused_async, reason = "handlers are async")]

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::question::{Question, QuestionKind};

/// The key of the only object.
const ALL: &str = "all";

/// An open question, without the arguments of its call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// The key of the conversation.
    pub conversation: String,
    /// The number of the question in the conversation.
    pub question: u32,
    /// The name of the tool.
    pub name: String,
    /// What is asked.
    pub kind: QuestionKind,
    /// When it was asked, in milliseconds since 1970 (UTC).
    pub asked_unix_ms: u64,
    /// Until when an answer counts.
    pub until_unix_ms: u64,
}

/// A question that is closed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Closed {
    conversation: String,
    question: u32,
}

pub(crate) struct OpenQuestions;

#[object(name = "OpenQuestions")]
impl OpenQuestions {
    /// Returns the open questions of all conversations.
    #[handler]
    async fn list(
        &self,
        context: SharedObjectContext<'_>,
    ) -> Result<Json<Vec<OpenQuestion>>, HandlerError> {
        let keys = context.get_keys().await?;
        let stored: Vec<_> = keys.iter().map(|key| context.get(key)).collect();
        let mut questions: Vec<OpenQuestion> = Vec::new();
        for question in stored {
            questions.extend(question.await?.map(Json::into_inner));
        }
        questions.sort_by_key(|question| question.asked_unix_ms);
        Ok(Json(questions))
    }

    #[handler]
    async fn add(
        &self,
        context: ObjectContext<'_>,
        question: Json<OpenQuestion>,
    ) -> Result<(), HandlerError> {
        let question = question.into_inner();
        let key = key(&question.conversation, question.question);
        context.set(&key, Json(question));
        Ok(())
    }

    #[handler]
    async fn remove(
        &self,
        context: ObjectContext<'_>,
        closed: Json<Closed>,
    ) -> Result<(), HandlerError> {
        let closed = closed.into_inner();
        context.clear(&key(&closed.conversation, closed.question));
        Ok(())
    }
}

fn key(conversation: &str, question: u32) -> String {
    format!("{question} {conversation}")
}

/// Adds a question of a conversation.
pub(crate) fn add(context: &ObjectContext<'_>, question: &Question) {
    let all = context.object_client::<OpenQuestionsClient<'_>>(ALL);
    let question = OpenQuestion {
        conversation: context.key().to_owned(),
        question: question.question,
        name: question.name.clone(),
        kind: question.kind,
        asked_unix_ms: question.asked_unix_ms,
        until_unix_ms: question.until_unix_ms,
    };
    all.add(Json(question)).send();
}

/// Removes a question of a conversation.
pub(crate) fn remove(context: &ObjectContext<'_>, question: u32) {
    let all = context.object_client::<OpenQuestionsClient<'_>>(ALL);
    let conversation = context.key().to_owned();
    let closed = Closed {
        conversation,
        question,
    };
    all.remove(Json(closed)).send();
}
