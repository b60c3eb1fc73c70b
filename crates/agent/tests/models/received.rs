//! Collected replies.

use plaincall_agent::model::{
    Finish, Message, Model, ModelError, ModelRequest, Piece, Reply, ReplyNext, RetryEvent, Role,
    Usage,
};

/// The content of a reply.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Received {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) pieces: usize,
    pub(crate) usage: Option<Usage>,
    pub(crate) retries: Vec<RetryEvent>,
    pub(crate) end: Option<Result<Finish, ModelError>>,
}

impl Received {
    /// Reads a reply to its end.
    pub(crate) async fn all(mut reply: Reply) -> Self {
        let mut received = Self::default();
        while let Some(next) = reply.next().await {
            match next {
                Ok(ReplyNext::Piece(piece)) => received.take(piece),
                Ok(ReplyNext::Finish(finish)) => received.end = Some(Ok(finish)),
                Err(error) => received.end = Some(Err(error)),
            }
        }
        received
    }

    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => {
                self.pieces += 1;
                self.text += &text;
            }
            Piece::Reasoning(text) => {
                self.pieces += 1;
                self.reasoning += &text;
            }
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Retry(retry) => self.retries.push(retry),
            other => panic!("what is {other:?}?"),
        }
    }

    pub(crate) fn finish(&self) -> &Finish {
        self.end.as_ref().unwrap().as_ref().unwrap()
    }

    pub(crate) fn error(&self) -> &ModelError {
        self.end.as_ref().unwrap().as_ref().unwrap_err()
    }
}

/// A question.
pub(crate) fn question() -> ModelRequest {
    ModelRequest::new([
        Message::new(Role::System, "Be brief."),
        Message::new(Role::User, "Hi."),
    ])
}

/// Sends the question.
pub(crate) async fn ask(model: &impl Model) -> Received {
    Received::all(model.reply(question())).await
}

/// Returns a reply on one line: reasoning in (), the text, the end in <>, the tokens read, cached and written in {}.
pub(crate) fn summary(received: &Received) -> String {
    let usage = received.usage.map_or(String::new(), |usage| {
        format!(" {{{} {} {}}}", usage.input, usage.cached, usage.output)
    });
    let end = match received.end.as_ref().expect("an end") {
        Ok(finish) => {
            let reason = finish.reason.as_deref().unwrap_or("-");
            format!("<{:?} {reason}>", finish.stop)
        }
        Err(error) => format!("<{:?}>", error.kind),
    };
    format!("({}){} {end}{usage}", received.reasoning, received.text)
}
