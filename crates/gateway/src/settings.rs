//! What is set for a model.

use plaincall_syntax::{Dialect, DialectError};

/// How a model is spoken to and its replies are given to clients. The default works for a model of which nothing is
/// known.
///
/// ```
/// use plaincall_gateway::{Markers, Mode, ModelSettings};
///
/// let settings = ModelSettings {
///     markers: Markers::Keyed,
///     mode: Mode::Checked,
///     ..ModelSettings::default()
/// };
/// assert!(settings.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSettings {
    /// The dialect, without escape and key, which the gateway adds, and without reasoning markers.
    pub dialect: Dialect,
    /// Whether the markers carry a key.
    pub markers: Markers,
    /// What stands around reasoning in the text, if the model writes any there.
    pub reasoning: Option<ReasoningSpan>,
    /// When calls leave.
    pub mode: Mode,
    /// How many hidden rounds of repair a checked reply may take.
    pub repair_rounds: u32,
    /// Whether messages of the role `developer` go to the model as `system`, the older name that all servers know.
    pub developer_is_system: bool,
}

/// What stands around the reasoning in the text of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasoningSpan {
    /// What opens it: `<think>`.
    pub open: String,
    /// What closes it: `</think>`.
    pub close: String,
    /// Whether the prompt ends inside it, so that a reply begins with reasoning.
    pub is_begun: bool,
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

/// When the calls of a reply leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// While they are written. A call that proves wrong later is left as JSON that nobody can read.
    #[default]
    Streamed,
    /// When the reply is complete and every call in it valid. A wrong one is asked for again, unseen by the client.
    Checked,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            dialect: Dialect::block(),
            markers: Markers::default(),
            reasoning: Some(ReasoningSpan::think()),
            mode: Mode::default(),
            repair_rounds: 2,
            developer_is_system: true,
        }
    }
}

impl ReasoningSpan {
    /// `<think>` and `</think>`, with which most models that reason in their text do it.
    pub fn think() -> Self {
        Self {
            open: "<think>".to_owned(),
            close: "</think>".to_owned(),
            is_begun: false,
        }
    }
}

impl ModelSettings {
    /// Whether they can work.
    ///
    /// # Errors
    /// Says what is wrong with the dialect: it must be of one syntax, since one is taught.
    pub fn check(&self) -> Result<(), DialectError> {
        if self.dialect.syntax().is_none() {
            return Err(DialectError::NoSyntax);
        }
        let key = (self.markers == Markers::Keyed).then(|| "0".repeat(crate::key::KEY_LENGTH));
        self.told_dialect(key.as_deref()).check()?;
        self.read_dialect(key.as_deref()).check()
    }

    /// The dialect in which a conversation is told to the model.
    pub(crate) fn told_dialect(&self, key: Option<&str>) -> Dialect {
        let mut dialect = self.dialect.clone().escaped();
        if let Some(key) = key {
            dialect = dialect.keyed(key);
        }
        if let Some(span) = &self.reasoning {
            dialect = dialect.reasoning(&*span.open, &*span.close);
        }
        dialect
    }

    /// The dialect in which a reply is read.
    pub(crate) fn read_dialect(&self, key: Option<&str>) -> Dialect {
        let dialect = self.told_dialect(key);
        match &self.reasoning {
            Some(span) if span.is_begun => dialect.in_reasoning(),
            _ => dialect,
        }
    }
}
