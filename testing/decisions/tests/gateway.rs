//! The gateway, in each API.

use plaincall_gateway::translation::{Adapter, AskEnd, ClientApi, Flow};
use plaincall_gateway::{ModelSettings, Secret, ToolMode};
use plaincall_syntax::{Dialect, Syntax};
use serde_json::{Value, json};

use crate::apis::{asked, calls, request};
use crate::decision::{Decision, Seen};
use crate::replies::model::Stream;
use crate::responses::model::completion;
use crate::texts::Reply;
use crate::tools::Tools;

/// An API of clients, and whether the response is streamed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) mode: ToolMode,
    pub(crate) api: ClientApi,
    pub(crate) is_streamed: bool,
}

/// The adapters for each mode and syntax, which keep the prompts of the tools.
pub(crate) struct Adapters(Vec<(ToolMode, Syntax, Adapter)>);

impl Adapters {
    pub(crate) fn new() -> Self {
        let mut adapters = Vec::new();
        for mode in [ToolMode::Text, ToolMode::Native] {
            for (syntax, dialect) in [
                (Syntax::Block, Dialect::block()),
                (Syntax::Emoji, Dialect::emoji()),
            ] {
                let mut settings = ModelSettings::default();
                settings.mode = mode;
                settings.dialect = dialect;
                adapters.push((mode, syntax, Adapter::new(Secret::new("secret"), settings)));
            }
        }
        Self(adapters)
    }

    fn of(&self, mode: ToolMode, syntax: Syntax) -> &Adapter {
        let mut adapters = self.0.iter();
        let found = adapters.find(|one| (one.0, one.1) == (mode, syntax));
        &found.expect("all modes and syntaxes").2
    }
}

/// The model server's answer, with this reply.
fn answer(form: Form, reply: &Reply) -> Vec<u8> {
    if form.is_streamed {
        let characters: Vec<char> = reply.text.chars().collect();
        let pieces: Vec<String> = characters
            .chunks(5)
            .map(|piece| piece.iter().collect())
            .collect();
        let stream = Stream::new().texts(pieces.iter().map(|piece| &**piece));
        return match reply.finish {
            Some(reason) => stream.finish(reason).done().0,
            None => stream.done().0,
        };
    }
    let answer = completion(&reply.text, reply.finish.unwrap_or_default());
    let mut answer: Value = serde_json::from_slice(&answer).unwrap();
    answer["choices"][0]["finish_reason"] = json!(reply.finish);
    answer.to_string().into_bytes()
}

/// Sends the reply to the client, again in each repair round.
pub(crate) fn sent(tools: &Tools, form: Form, reply: &Reply) -> Seen {
    let adapter = tools.gateway.of(form.mode, reply.syntax);
    let body = request(form.api, &json!({"stream": form.is_streamed}));
    let mut asked = asked(adapter, form.api, &body);
    let answer = answer(form, reply);
    let (mut bytes, mut repair) = (Vec::new(), None);
    loop {
        for piece in answer.chunks(1000) {
            if asked.feed(piece) == Flow::Stop {
                break;
            }
        }
        let end = asked.end(None);
        bytes.append(&mut asked.take());
        if end != AskEnd::Again {
            break;
        }
        let body: Value = serde_json::from_slice(asked.body()).unwrap();
        let last = body["messages"].as_array().unwrap().last().unwrap();
        // A message about a reply without calls lists no problems.
        let lines = last["content"].as_str().unwrap().lines();
        let lines = lines.skip_while(|line| *line != "Problems:").skip(1);
        let problems: Vec<String> = lines
            .map_while(|line| line.strip_prefix("- "))
            .map(str::to_owned)
            .collect();
        repair.get_or_insert(problems);
    }
    // Nothing is sent of a complete response with an error.
    let calls = if bytes.is_empty() {
        Vec::new()
    } else {
        calls(form.api, &bytes, form.is_streamed)
    };
    let decisions = calls.into_iter();
    let decisions = decisions.map(|(name, arguments)| Decision::runs(&name, Some(arguments)));
    Seen {
        decisions: decisions.collect(),
        problems: repair.unwrap_or_default(),
    }
}
