//! What is set for a model.

use plaincall_call::Unclosed;
use plaincall_syntax::{Dialect, DialectError};

/// How a model is compiled to and its replies are given to clients. The default works for a model of which nothing is
/// known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSettings {
    /// The dialect, without escape and key, which the gateway adds, and without reasoning markers.
    pub dialect: Dialect,
    /// Whether the markers carry a key.
    pub markers: Markers,
    /// What stands around reasoning in the text, if the model writes any there.
    pub reasoning: Option<ReasoningSpan>,
    /// When the arguments of a call are sent.
    pub arguments: ArgumentMode,
    /// What happens to calls without an end marker.
    pub unclosed: Unclosed,
    /// How many hidden rounds of repair a reply may take.
    pub repair_rounds: u32,
    /// Whether messages of the role `developer` go to the model as `system`, the older name that all servers know.
    pub developer_is_system: bool,
}

/// The markers around the reasoning in the text of a model. They count at the beginning of a reply (`spec/common.md` 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasoningSpan {
    /// What opens it: `<think>`.
    pub open: String,
    /// What closes it: `</think>`.
    pub close: String,
    /// Whether the prompt ends inside it, so that a reply begins with reasoning.
    pub is_started: bool,
}

/// Whether the markers carry a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Markers {
    /// As they are.
    #[default]
    Plain,
    /// With a key that belongs to the conversation (`spec/common.md` 7), so that nobody outside can write a call.
    Keyed,
}

/// When the arguments of a call are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ArgumentMode {
    /// When the call has ended and is valid, with its name. Nothing is sent of an invalid call.
    #[default]
    Checked,
    /// While the model writes them. The arguments of a call that proves invalid end as JSON that nobody can read.
    ///
    /// Replies that are not streamed, and those to a request with a `strict` function, are checked all the same.
    Stream,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            dialect: Dialect::block(),
            markers: Markers::default(),
            reasoning: Some(ReasoningSpan::think()),
            arguments: ArgumentMode::default(),
            unclosed: Unclosed::default(),
            repair_rounds: 2,
            developer_is_system: true,
        }
    }
}

impl ReasoningSpan {
    /// The markers of most models that reason in their text: [`Dialect::THINK`].
    pub fn think() -> Self {
        let [open, close] = Dialect::THINK.map(str::to_owned);
        Self {
            open,
            close,
            is_started: false,
        }
    }
}

impl ModelSettings {
    /// Whether they can work.
    ///
    /// # Errors
    /// Says what is wrong with the dialect: it must be of one syntax, since one is prompt.
    pub fn check(&self) -> Result<(), DialectError> {
        if self.dialect.syntax().is_none() {
            return Err(DialectError::NoSyntax);
        }
        let key = (self.markers == Markers::Keyed).then(|| "0".repeat(crate::key::KEY_LENGTH));
        self.prompt_dialect(key.as_deref()).check()?;
        self.reply_dialect(key.as_deref()).check()
    }

    pub(crate) fn prompt_dialect(&self, key: Option<&str>) -> Dialect {
        let mut dialect = self.dialect.clone().escaped();
        if let Some(key) = key {
            dialect = dialect.keyed(key);
        }
        if let Some(span) = &self.reasoning {
            dialect = dialect.leading_reasoning(&*span.open, &*span.close);
        }
        dialect
    }

    pub(crate) fn reply_dialect(&self, key: Option<&str>) -> Dialect {
        let dialect = self.prompt_dialect(key);
        match &self.reasoning {
            Some(span) if span.is_started => dialect.in_reasoning(),
            _ => dialect,
        }
    }
}
