//! Messages that a conversation begins with (`spec/agent.md` 1).

use plaincall::prompt::history::{PastCall, ResultMessage, Status, TurnPart, history, results};
use plaincall::reply::Untrusted;
use plaincall::syntax::DialectError;
use plaincall::tool::{CallExample, ToolLookup as _};

use crate::conversation::Conversation;

/// A message that a conversation begins with: [`Agent::conversation_from`](crate::Agent::conversation_from).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenMessage {
    is_of_model: bool,
    text: String,
    calls: Vec<(String, CallExample)>,
}

impl GivenMessage {
    /// Creates a message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            is_of_model: false,
            text: text.into(),
            calls: Vec::new(),
        }
    }

    /// Creates a message of the model. Markers in its text are escaped; [`call`](Self::call) adds calls.
    pub fn model(text: impl Into<String>) -> Self {
        Self {
            is_of_model: true,
            ..Self::user(text)
        }
    }

    /// Adds a call of a tool to a message of the model. Its result follows the message.
    pub fn call(mut self, tool: impl Into<String>, call: CallExample) -> Self {
        self.calls.push((tool.into(), call));
        self
    }
}

impl Conversation {
    /// Adds a message. Nothing runs.
    pub(crate) fn add_given(&mut self, given: &GivenMessage) -> Result<(), DialectError> {
        if !given.is_of_model {
            self.agent_loop.add_untrusted("the user", None, &given.text);
            self.carry_out();
            return Ok(());
        }
        let text = TurnPart::Claimed(Untrusted::new(given.text.as_str()));
        let calls = given.calls.iter().map(|(name, call)| {
            let name = Untrusted::new(name.as_str());
            TurnPart::Called(match call.arguments.as_object() {
                Some(arguments) => PastCall::new(name, arguments),
                None => PastCall::from_text(name, Untrusted::new(call.arguments.to_string())),
            })
        });
        let parts: Vec<TurnPart<'_>> = [text].into_iter().chain(calls).collect();
        let toolbox = self.tools();
        let find = |name: &str| toolbox.find(name).map(|(_, tool)| tool);
        let written = history(&parts, self.dialect(), find)?.into_text();
        self.agent_loop.history.reply(written);
        let mut ended = Vec::new();
        for (name, call) in &given.calls {
            let output = call.result.as_deref().unwrap_or_default();
            let from = format!("the result of a given call of {name}");
            self.run.observe_untrusted(&from, &Untrusted::new(output));
            let result = ResultMessage::new(Untrusted::new(name.as_str()), Untrusted::new(""));
            let output = Untrusted::new(output);
            ended.push(result.status(Status::Ok).output(output));
        }
        if !ended.is_empty() {
            let text = results(&ended, self.dialect())?.into_text();
            self.agent_loop.history.add_message(text.into());
        }
        Ok(())
    }
}
