//! The message history of a conversation.

use std::sync::Arc;

use plaincall::prompt::few_shot::FewShotMessage;
use plaincall::prompt::history::{ResultMessage, results};
use plaincall::syntax::DialectError;
use plaincall::{CallResult, Dialect};

use crate::model::{Message, Role};

/// How much of a shortened result is kept, in bytes.
const KEPT: usize = 400;
/// Results longer than this can be shortened, in bytes.
const LARGE: usize = 1000;

/// The system prompt, messages, replies and results.
#[derive(Clone, Debug)]
pub(crate) struct History {
    dialect: Dialect,
    system: Arc<str>,
    /// The messages of examples. They are not part of the conversation.
    examples: Vec<Message>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    /// A message to the model.
    Message(Arc<str>),
    /// A reply, byte for byte.
    Reply(Arc<str>),
    Results(Results),
}

#[derive(Clone, Debug)]
struct Results {
    whole: Vec<CallResult>,
    /// The shortened ones.
    short: Vec<Option<CallResult>>,
    text: Arc<str>,
}

impl Results {
    fn new(whole: Vec<CallResult>, dialect: &Dialect) -> Result<Self, DialectError> {
        let mut results = Self {
            short: vec![None; whole.len()],
            whole,
            text: "".into(),
        };
        results.render(dialect)?;
        Ok(results)
    }

    fn render(&mut self, dialect: &Dialect) -> Result<(), DialectError> {
        let all = self.whole.iter().zip(&self.short);
        let messages = all.map(|(whole, short)| short.as_ref().unwrap_or(whole).message());
        let messages: Vec<ResultMessage<'_>> = messages.collect();
        self.text = results(&messages, dialect)?.into_text().into();
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortened {
    pub(crate) results: usize,
    pub(crate) bytes: u64,
}

impl History {
    pub(crate) fn new(dialect: Dialect, system: String) -> Self {
        Self {
            dialect,
            system: system.into(),
            examples: Vec::new(),
            entries: Vec::new(),
        }
    }

    pub(crate) fn set_examples(&mut self, messages: &[FewShotMessage]) {
        let shown = messages.iter().map(|message| {
            let role = if message.is_of_model {
                Role::Assistant
            } else {
                Role::User
            };
            Message::new(role, &*message.text)
        });
        self.examples = shown.collect();
    }

    pub(crate) fn add_message(&mut self, text: Arc<str>) {
        self.entries.push(Entry::Message(text));
    }

    /// Returns `true` if a message with this text has no reply yet.
    pub(crate) fn has_unanswered(&self, text: &str) -> bool {
        let last = self.entries.iter().rev();
        let messages = last.map_while(|entry| match entry {
            Entry::Message(text) => Some(text),
            Entry::Reply(_) | Entry::Results(_) => None,
        });
        messages.into_iter().any(|message| **message == *text)
    }

    /// Adds a reply. An empty one is omitted: servers reject empty messages.
    pub(crate) fn reply(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.entries.push(Entry::Reply(text.into()));
        }
    }

    pub(crate) fn results(&mut self, results: Vec<CallResult>) -> Result<(), DialectError> {
        if results.is_empty() {
            return Ok(());
        }
        let results = Results::new(results, &self.dialect)?;
        self.entries.push(Entry::Results(results));
        Ok(())
    }

    /// The messages. After the system prompt, user and model alternate, as many servers require.
    pub(crate) fn messages(&self) -> Arc<[Message]> {
        let mut messages: Vec<Message> = Vec::with_capacity(self.entries.len() + 1);
        if !self.system.is_empty() {
            messages.push(Message::new(Role::System, Arc::clone(&self.system)));
        }
        messages.extend(self.examples.iter().cloned());
        for entry in &self.entries {
            let (role, text) = match entry {
                Entry::Message(text) | Entry::Results(Results { text, .. }) => (Role::User, text),
                Entry::Reply(text) => (Role::Assistant, text),
            };
            match messages.last_mut().filter(|last| last.role == role) {
                Some(last) => {
                    let line_end = if last.text.ends_with('\n') { "" } else { "\n" };
                    last.text = format!("{}{line_end}\n{text}", last.text).into();
                }
                None => messages.push(Message::new(role, Arc::clone(text))),
            }
        }
        messages.into()
    }

    /// Whether the last message awaits a reply.
    pub(crate) fn awaits_reply(&self) -> bool {
        matches!(
            self.entries.last(),
            Some(Entry::Message(_) | Entry::Results(_))
        )
    }

    pub(crate) fn bytes(&self) -> u64 {
        let entries = self.entries.iter().map(|entry| match entry {
            Entry::Message(text) | Entry::Results(Results { text, .. }) | Entry::Reply(text) => {
                text
            }
        });
        let examples = self.examples.iter().map(|message| &message.text);
        let bytes: usize = entries.chain(examples).map(|text| text.len()).sum();
        (bytes + self.system.len()) as u64
    }

    /// Shortens the oldest large results until `bytes` are removed. Results of the last turn, which the model has not read
    /// yet, are shortened only if fewer than `at_least` bytes were removed before. `shorten` keeps this many bytes.
    pub(crate) fn shorten(
        &mut self,
        bytes: u64,
        at_least: u64,
        shorten: impl Fn(&CallResult, usize) -> Option<CallResult>,
    ) -> Result<Shortened, DialectError> {
        let mut shortened = Shortened::default();
        let all = self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Results(results) => Some(results),
            Entry::Message(_) | Entry::Reply(_) => None,
        });
        let mut all = all.peekable();
        while let Some(results) = all.next() {
            let wanted = if all.peek().is_some() {
                bytes
            } else {
                at_least
            };
            if shortened.bytes >= wanted {
                continue;
            }
            let before = shortened.results;
            let length = results.text.len();
            for (whole, short) in results.whole.iter().zip(&mut results.short) {
                let output = whole.output.as_ref().map_or(0, |output| output.len());
                if short.is_none() && output > LARGE {
                    *short = shorten(whole, KEPT);
                    shortened.results += usize::from(short.is_some());
                }
            }
            if before != shortened.results {
                results.render(&self.dialect)?;
                let gone = length.saturating_sub(results.text.len());
                shortened.bytes += gone as u64;
            }
        }
        Ok(shortened)
    }

    pub(crate) fn restore(&mut self) -> Result<(), DialectError> {
        for entry in &mut self.entries {
            if let Entry::Results(results) = entry
                && results.short.iter().any(Option::is_some)
            {
                results.short.fill(None);
                results.render(&self.dialect)?;
            }
        }
        Ok(())
    }
}
