//! Earlier turns of the model, rendered for the prompt (`spec/history.md` 1).

mod in_json;
pub(crate) mod results;

pub use plaincall_plan::Status;
pub use results::{ResultMessage, in_call_order, results};

use std::borrow::Cow;
use std::slice;

use plaincall_syntax::{Dialect, DialectError, Escaper, Syntax};
use serde_json::{Map, Value};

use crate::history::in_json::in_json;
use crate::render_call::{JsonCall, render_call};
use plaincall_reply::{ModelText, PromptText, PromptTextBuilder, Trusted, Untrusted};
use plaincall_tool::{ToolSpec, json_text};

/// Part of an earlier turn of the model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnPart<'t> {
    /// Text that the model wrote in this conversation, including calls. It is added byte for byte.
    Written(ModelText<'t>),
    /// Text that an outside party attributes to the model, without its calls. It is escaped, so it contains no call;
    /// the escaped dialect parses it to the same text.
    Claimed(Untrusted<'t>),
    /// A call that an outside party attributes to the model. It is rendered as a call, on separate lines.
    Called(PastCall<'t>),
}

/// A call of an earlier turn, without its original text.
#[derive(Clone, Debug, PartialEq)]
pub struct PastCall<'t> {
    name: Untrusted<'t>,
    id: Option<Untrusted<'t>>,
    dependencies: Vec<Untrusted<'t>>,
    arguments: PastArguments<'t>,
}

#[derive(Clone, Debug, PartialEq)]
enum PastArguments<'t> {
    Object(&'t Map<String, Value>),
    /// Text that should be a JSON object.
    Text(Untrusted<'t>),
}

impl<'t> PastCall<'t> {
    /// Creates a call with these arguments.
    pub fn new(name: Untrusted<'t>, arguments: &'t Map<String, Value>) -> Self {
        Self::with(name, PastArguments::Object(arguments))
    }

    /// Creates a call from arguments as text, as in the messages of other programs. The text should be a JSON object;
    /// other text is rendered as is, and blank text means no arguments.
    pub fn from_text(name: Untrusted<'t>, arguments: Untrusted<'t>) -> Self {
        Self::with(name, PastArguments::Text(arguments))
    }

    fn with(name: Untrusted<'t>, arguments: PastArguments<'t>) -> Self {
        Self {
            name,
            id: None,
            dependencies: Vec::new(),
            arguments,
        }
    }

    /// Sets the id. The emoji syntax cannot express it: only the results contain it.
    pub fn id(mut self, id: Untrusted<'t>) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the ids of the calls that this call depends on.
    pub fn depends_on(mut self, ids: impl IntoIterator<Item = Untrusted<'t>>) -> Self {
        self.dependencies = ids.into_iter().collect();
        self
    }
}

impl PastArguments<'_> {
    fn object(&self) -> Option<Cow<'_, Map<String, Value>>> {
        match self {
            Self::Object(object) => Some(Cow::Borrowed(object)),
            Self::Text(text) if text.raw().trim_ascii().is_empty() => Some(Cow::Owned(Map::new())),
            Self::Text(text) => match json_text::parse(text.raw()) {
                Ok(Value::Object(object)) => Some(Cow::Owned(object)),
                _ => None,
            },
        }
    }
}

/// Renders an earlier turn of the model as text for the model (`spec/history.md` 1 and 2).
///
/// Text that the model wrote is added byte for byte. Other calls are rendered in the dialect, by the schema of their
/// tool if `find_tool` returns one, and parsed to verify that they come back with the same arguments. A call that
/// cannot be rendered is written as escaped JSON. Nothing is omitted.
///
/// A dialect for both syntaxes writes the block syntax; [`Dialect::for_syntax`] chooses.
///
/// ```
/// use plaincall_reply::Untrusted;
/// use plaincall_prompt::history::{PastCall, TurnPart, history};
/// use plaincall_syntax::Dialect;
///
/// let arguments = serde_json::json!({"path": "a.txt", "text": "!!!GADGET_END"});
/// let call = PastCall::new(Untrusted::new("WriteFile"), arguments.as_object().expect("an object"));
/// let turn = [TurnPart::Claimed(Untrusted::new("I write it.")), TurnPart::Called(call.id(Untrusted::new("w1")))];
/// let dialect = Dialect::block().escaped();
/// assert_eq!(
///     history(&turn, &dialect, |_| None)?.text(),
///     "I write it.\n!!!GADGET_START:WriteFile:w1\n!!!ARG:path\na.txt\n!!!ARG:text\n!!!GADGET_EN\\D\n!!!GADGET_END\n"
/// );
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// Returns an error for an invalid dialect; never for a call.
pub fn history<'s>(
    turn: &[TurnPart<'_>],
    dialect: &Dialect,
    find_tool: impl Fn(&str) -> Option<&'s ToolSpec>,
) -> Result<PromptText, DialectError> {
    let mut built = PromptTextBuilder::new(slice::from_ref(dialect))?;
    let syntax = dialect.syntax().unwrap_or(Syntax::Block);
    let written = dialect.for_syntax(syntax);
    // Text before may have selected the other syntax; then markers of the other syntax count in a rendered call.
    let other = match dialect.syntax() {
        Some(_) => None,
        None => Some(Escaper::new(&dialect.for_syntax(Syntax::Emoji))?),
    };
    for part in turn {
        match part {
            TurnPart::Written(text) => {
                built.model(text);
            }
            TurnPart::Claimed(text) => {
                built.untrusted(text);
            }
            TurnPart::Called(call) => {
                built.begin_line();
                let tool = find_tool(call.name.raw());
                add_call(call, &written, other.as_ref(), tool, &mut built);
            }
        }
    }
    Ok(built.finish())
}

/// Adds one call, as a call or as JSON. As a call it contains no marker of `other`.
fn add_call(
    call: &PastCall<'_>,
    dialect: &Dialect,
    other: Option<&Escaper>,
    tool: Option<&ToolSpec>,
    built: &mut PromptTextBuilder,
) {
    let object = call.arguments.object();
    let text = object.as_deref().and_then(|arguments| {
        let mut rendered = JsonCall::new(call.name.raw(), arguments);
        rendered.id = call.id.as_ref().map(Untrusted::raw);
        rendered.dependencies = call.dependencies.iter().map(Untrusted::raw).collect();
        let text = render_call(&rendered, tool, dialect).ok()?;
        let is_free = other.is_none_or(|other| other.escape(&text) == text);
        is_free.then_some(text)
    });
    if let Some(text) = text {
        // Its markers are intended. Its values are escaped, or contain no marker that counts.
        built.trusted(Trusted::assert(text));
    } else {
        built.untrusted(&Untrusted::new(in_json(call, object.as_deref())));
    }
}
