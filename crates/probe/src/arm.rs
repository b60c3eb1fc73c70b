//! The ways of calling tools that are compared.

use plaincall::Dialect;

/// A fixed key, so that a keyed dialect gives reproducible results.
const KEY: &str = "k3v9q2x8";
const ANGLE: [&str; 3] = ["<<<START:", "<<<END:", "@param:"];

/// A way of calling tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arm {
    /// Its name.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    pub(crate) form: Form,
    /// Whether the arm belongs to a comparison by default.
    pub is_default: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Native,
    Json,
    Block {
        has_angles: bool,
        is_keyed: bool,
        has_grammar: bool,
    },
    Emoji {
        is_keyed: bool,
        is_self_closing: bool,
    },
}

const fn block(has_angles: bool, is_keyed: bool) -> Form {
    Form::Block {
        has_angles,
        is_keyed,
        has_grammar: false,
    }
}

const fn emoji(is_keyed: bool) -> Form {
    Form::Emoji {
        is_keyed,
        is_self_closing: false,
    }
}

const ALL: [Arm; 8] = [
    Arm::new("native", "the tool calls of the server", Form::Native, true),
    Arm::new(
        "json",
        "calls as JSON objects in the text, described in the prompt",
        Form::Json,
        true,
    ),
    Arm::new("block", "the block syntax", block(false, false), true),
    Arm::new("emoji", "the emoji-bracket syntax", emoji(false), true),
    Arm::new(
        "block-grammar",
        "the block syntax with a grammar, if the server accepts one",
        Form::Block {
            has_angles: false,
            is_keyed: false,
            has_grammar: true,
        },
        false,
    ),
    Arm::new(
        "block-keyed",
        "the block syntax with a key in the markers",
        block(false, true),
        false,
    ),
    Arm::new(
        "block-angle",
        "the block syntax with the markers `<<<START:`, `<<<END:` and `@param:`",
        block(true, false),
        false,
    ),
    Arm::new(
        "emoji-keyed",
        "the emoji-bracket syntax with a key in the markers",
        emoji(true),
        false,
    ),
];

impl Arm {
    const fn new(name: &'static str, about: &'static str, form: Form, is_default: bool) -> Self {
        Self {
            name,
            about,
            form,
            is_default,
        }
    }

    /// Returns all arms: first `native`, `json`, `block` and `emoji`, the default.
    pub const fn all() -> [Self; 8] {
        ALL
    }

    /// Returns the arm of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|arm| arm.name == name)
    }

    /// Accepts ` /]` as the end of an emoji call without a body. Does not change other arms.
    #[must_use]
    pub const fn self_closing(mut self) -> Self {
        if let Form::Emoji { is_keyed, .. } = self.form {
            self.form = Form::Emoji {
                is_keyed,
                is_self_closing: true,
            };
        }
        self
    }

    /// Returns whether it uses the server's own tool calls.
    pub const fn is_native(&self) -> bool {
        matches!(self.form, Form::Native)
    }

    /// Returns whether it uses a syntax of Plaincall, so that a configuration can select it.
    pub const fn is_plaincall(&self) -> bool {
        matches!(self.form, Form::Block { .. } | Form::Emoji { .. })
    }

    /// Returns whether it uses the emoji-bracket syntax.
    pub const fn is_emoji(&self) -> bool {
        matches!(self.form, Form::Emoji { .. })
    }

    /// Returns whether a grammar constrains the replies. Only for a model that
    /// [constrains](plaincall_agent::Model::constrains) them.
    pub const fn has_grammar(&self) -> bool {
        matches!(
            self.form,
            Form::Block {
                has_grammar: true,
                ..
            }
        )
    }

    /// Returns the start, end and argument markers, if they are not the default.
    pub const fn markers(&self) -> Option<[&'static str; 3]> {
        match self.form {
            Form::Block {
                has_angles: true, ..
            } => Some(ANGLE),
            _ => None,
        }
    }

    /// Returns whether the markers contain a key.
    pub const fn is_keyed(&self) -> bool {
        matches!(
            self.form,
            Form::Block { is_keyed: true, .. } | Form::Emoji { is_keyed: true, .. }
        )
    }

    /// Returns the dialect of an arm with a syntax of Plaincall. Reasoning between `<think>` and `</think>` contains no calls.
    pub fn dialect(&self) -> Option<Dialect> {
        let mut dialect = match self.form {
            Form::Native | Form::Json => return None,
            Form::Block { .. } => Dialect::block(),
            Form::Emoji {
                is_self_closing: true,
                ..
            } => Dialect::emoji().self_closing(),
            Form::Emoji { .. } => Dialect::emoji(),
        };
        if let Some([start, end, argument]) = self.markers() {
            dialect = dialect.start(start).end(end).arg(argument);
        }
        if self.is_keyed() {
            dialect = dialect.keyed(KEY);
        }
        Some(dialect.for_reply().escaped())
    }
}
