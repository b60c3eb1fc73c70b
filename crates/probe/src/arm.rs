//! The ways of calling tools that are compared.

use plaincall::Dialect;

/// A fixed key, so that a keyed dialect gives reproducible results.
const KEY: &str = "k3v9q2x8";
/// The recommended number of few-shot examples.
const EXAMPLES: u32 = 8;
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
    has_grammar: bool,
    has_examples: bool,
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
    },
    Emoji {
        is_keyed: bool,
        is_self_closing: bool,
    },
}

const BLOCK: Form = Form::Block {
    has_angles: false,
    is_keyed: false,
};
const EMOJI: Form = Form::Emoji {
    is_keyed: false,
    is_self_closing: false,
};

const ALL: [Arm; 13] = [
    Arm::new("native", "the tool calls of the server", Form::Native).default(),
    Arm::new(
        "json",
        "calls as JSON objects in the text, described in the prompt",
        Form::Json,
    )
    .default(),
    Arm::new("block", "the block syntax", BLOCK).default(),
    Arm::new("emoji", "the emoji-bracket syntax", EMOJI).default(),
    Arm::new(
        "block-grammar",
        "the block syntax with a grammar, if the server accepts one",
        BLOCK,
    )
    .grammar(),
    Arm::new("json-examples", "JSON with few-shot examples", Form::Json).examples(),
    Arm::new(
        "block-examples",
        "the block syntax with few-shot examples",
        BLOCK,
    )
    .examples(),
    Arm::new(
        "emoji-examples",
        "the emoji-bracket syntax with few-shot examples",
        EMOJI,
    )
    .examples(),
    Arm::new(
        "block-examples-grammar",
        "the block syntax with few-shot examples and a grammar",
        BLOCK,
    )
    .examples()
    .grammar(),
    Arm::new(
        "emoji-examples-grammar",
        "the emoji-bracket syntax with few-shot examples and a grammar",
        EMOJI,
    )
    .examples()
    .grammar(),
    Arm::new(
        "block-keyed",
        "the block syntax with a key in the markers",
        Form::Block {
            has_angles: false,
            is_keyed: true,
        },
    ),
    Arm::new(
        "block-angle",
        "the block syntax with the markers `<<<START:`, `<<<END:` and `@param:`",
        Form::Block {
            has_angles: true,
            is_keyed: false,
        },
    ),
    Arm::new(
        "emoji-keyed",
        "the emoji-bracket syntax with a key in the markers",
        Form::Emoji {
            is_keyed: true,
            is_self_closing: false,
        },
    ),
];

impl Arm {
    const fn new(name: &'static str, about: &'static str, form: Form) -> Self {
        Self {
            name,
            about,
            form,
            has_grammar: false,
            has_examples: false,
            is_default: false,
        }
    }

    const fn default(mut self) -> Self {
        self.is_default = true;
        self
    }

    const fn grammar(mut self) -> Self {
        self.has_grammar = true;
        self
    }

    const fn examples(mut self) -> Self {
        self.has_examples = true;
        self
    }

    /// Returns all arms.
    pub const fn all() -> [Self; ALL.len()] {
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
        self.has_grammar
    }

    /// Returns whether few-shot examples come before each question. Such an arm is for models that solve little without.
    pub const fn has_examples(&self) -> bool {
        self.has_examples
    }

    /// Returns the number of few-shot examples that a configuration for this arm has.
    pub const fn few_shot(&self) -> Option<u32> {
        if self.has_examples {
            Some(EXAMPLES)
        } else {
            None
        }
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
