//! What is set for a model.

use plaincall_call::Unclosed;
use plaincall_syntax::{Dialect, DialectError};

/// How a model is spoken to and its replies are given to clients. The default works for a model of which nothing is
/// known.
///
/// ```
/// use plaincall_gateway::{ArgumentMode, Markers, ModelSettings};
///
/// let settings = ModelSettings {
///     markers: Markers::Keyed,
///     arguments: ArgumentMode::Stream,
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

/// What is set for a model of this name. In the names of settings `*` stands for any characters; one without `*` counts
/// before all others, then the one with the most characters besides, then the first.
#[cfg(feature = "server")]
pub(crate) fn settings_of<'s>(
    settings: &'s [(String, ModelSettings)],
    model: &str,
) -> Option<&'s ModelSettings> {
    let weight = |name: &str| {
        if name.contains('*') {
            name.chars().filter(|c| *c != '*').count()
        } else {
            usize::MAX
        }
    };
    let fitting = settings.iter().rev().filter(|(name, _)| fits(name, model));
    let best = fitting.max_by_key(|(name, _)| weight(name));
    best.map(|(_, settings)| settings)
}

/// Whether a name is one of those that a pattern stands for. The time is linear in the product of both lengths.
#[cfg(feature = "server")]
fn fits(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(begin) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    // The first place of a part leaves the most for those behind it.
    for part in parts {
        let Some((_, after)) = name.split_once(part) else {
            return false;
        };
        name = after;
    }
    name.ends_with(end)
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
            dialect = dialect.leading_reasoning(&*span.open, &*span.close);
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

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::{ModelSettings, fits, settings_of};

    #[test]
    fn which_names_fit() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a*", "abc", true),
            ("a*", "ba", false),
            ("*", "", true),
            ("*", "x", true),
            ("*b", "aab", true),
            ("*b", "aba", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "ae", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*bc*", "abbcd", true),
            ("*ab*ab", "ab", false),
            ("*ab*ab", "xabab", true),
            ("**", "x", true),
            ("ü*", "über", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn which_settings_count() {
        let names = ["*", "qwen*", "qwen3:*", "qwen3:8b", "*:8b", "*8b:"];
        let settings: Vec<(String, ModelSettings)> = names
            .iter()
            .zip(0..)
            .map(|(name, repair_rounds)| {
                let settings = ModelSettings {
                    repair_rounds,
                    ..ModelSettings::default()
                };
                ((*name).to_owned(), settings)
            })
            .collect();
        for (model, expected) in [
            ("llama", 0),
            ("qwen2", 1),
            ("qwen3:4b", 2),
            ("qwen3:8b", 3),
            ("llama:8b", 4),
            ("qwen:8b", 1),
            ("", 0),
        ] {
            let found = settings_of(&settings, model).unwrap();
            assert_eq!(found.repair_rounds, expected, "{model}");
        }
        assert!(settings_of(&settings[1..2], "llama").is_none());
    }
}
