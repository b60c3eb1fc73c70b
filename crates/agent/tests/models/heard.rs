//! What comes of a reply.

use plaincall_agent::model::{
    Finish, Message, Model, ModelError, ModelRequest, Piece, Reply, ReplyNext, RetryEvent, Role,
    Usage,
};

/// All that a reply told.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) pieces: usize,
    pub(crate) usage: Option<Usage>,
    pub(crate) retries: Vec<RetryEvent>,
    pub(crate) end: Option<Result<Finish, ModelError>>,
}

impl Heard {
    /// Reads a reply to its end.
    pub(crate) async fn all(mut reply: Reply) -> Self {
        let mut heard = Self::default();
        while let Some(next) = reply.next().await {
            match next {
                Ok(ReplyNext::Piece(piece)) => heard.take(piece),
                Ok(ReplyNext::Finish(finish)) => heard.end = Some(Ok(finish)),
                Err(error) => heard.end = Some(Err(error)),
            }
        }
        heard
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
            Piece::Retry(told) => self.retries.push(told),
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

/// Asks it.
pub(crate) async fn ask(model: &impl Model) -> Heard {
    Heard::all(model.reply(question())).await
}

/// What was heard, in one line: thoughts in (), the text, the end in <>, the tokens read, cached and written in {}.
pub(crate) fn told(heard: &Heard) -> String {
    let usage = heard.usage.map_or(String::new(), |usage| {
        format!(" {{{} {} {}}}", usage.input, usage.cached, usage.output)
    });
    let end = match heard.end.as_ref().expect("an end") {
        Ok(finish) => {
            let reason = finish.reason.as_deref().unwrap_or("-");
            format!("<{:?} {reason}>", finish.stop)
        }
        Err(error) => format!("<{:?}>", error.kind),
    };
    format!("({}){} {end}{usage}", heard.reasoning, heard.text)
}
