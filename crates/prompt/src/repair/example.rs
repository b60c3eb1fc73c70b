//! The correct example of a call (`spec/repair.md` 3).

use plaincall_syntax::{Call, Dialect, Syntax, render};

use crate::repair::kept::{Draft, Keeper, Spelled, Texts, Wrong, key_of};
use crate::repair::{block_example, emoji_example};
use plaincall_reply::{Document, ToolCall, bind};
use plaincall_tool::{Arguments, ReplyDiagnostic, ToolSpec, usage::UsageBody};

/// A longer id is omitted. In bytes.
const LONGEST_ID: usize = 300;
/// A call with longer dependencies has no example: without them it would not wait. In bytes.
const LONGEST_DEPENDENCIES: usize = 1_000;

pub(super) struct Example {
    pub(super) text: String,
    pub(super) has_placeholders: bool,
    /// The number of arguments that it omits.
    pub(super) omitted: usize,
}

impl Example {
    /// Creates the example for a call. `None` if the dialect cannot express it, or if anything besides its placeholders
    /// would be invalid.
    pub(super) fn of(
        tool: &ToolSpec,
        call: &ToolCall,
        wrong: Wrong,
        dialect: &Dialect,
    ) -> Option<Self> {
        let own = dialect.for_syntax(call.syntax);
        let keeper = Keeper::new(dialect, &own)?;
        let header = HeaderParts::of(call, wrong)?;
        let spelled = match call.syntax {
            Syntax::Block => block_example::spelled(tool, call, wrong, &keeper),
            Syntax::Emoji => emoji_example::spelled(tool, call, wrong, &keeper),
        };
        let attempt = |spelled: Spelled| {
            let text = rendered(tool, &header, &spelled, &own, &keeper)?;
            is_right_elsewhere(tool, &spelled, &text, &own).then_some((spelled, text))
        };
        let (spelled, text) =
            attempt(spelled).or_else(|| attempt(blank(tool, call.syntax, &keeper)))?;
        let example = Self::from(&spelled, text);
        // Missing arguments were never written, so without a placeholder the example would look complete.
        let is_reported =
            example.has_placeholders || !(wrong.is_truncated && may_lack_arguments(tool, call));
        is_reported.then_some(example)
    }

    pub(super) fn blank(tool: &ToolSpec, syntax: Syntax, dialect: &Dialect) -> Option<Self> {
        let own = dialect.for_syntax(syntax);
        let keeper = Keeper::new(dialect, &own)?;
        let spelled = blank(tool, syntax, &keeper);
        let text = rendered(tool, &HeaderParts::default(), &spelled, &own, &keeper)?;
        Some(Self::from(&spelled, text))
    }

    fn from(spelled: &Spelled, text: String) -> Self {
        Self {
            text,
            has_placeholders: !spelled.placeholders.is_empty(),
            omitted: spelled.omitted,
        }
    }
}

/// Spells a call that has only placeholders.
fn blank(tool: &ToolSpec, syntax: Syntax, keeper: &Keeper) -> Spelled {
    let (reader, written) = (tool.schema().reader(), Arguments::default());
    let draft = Draft::new(tool, &reader, &written, &[], keeper);
    match syntax {
        Syntax::Block => block_example::all(draft, None),
        Syntax::Emoji => emoji_example::all(draft, false),
    }
}

fn may_lack_arguments(tool: &ToolSpec, call: &ToolCall) -> bool {
    match call.syntax {
        Syntax::Block => true,
        // The line is complete, and so is a body that is valid JSON.
        Syntax::Emoji => match tool.usage().body {
            UsageBody::Nothing => false,
            UsageBody::Parameter(_) => true,
            UsageBody::Json => call.body().unwrap_or_default().trim().is_empty(),
        },
    }
}

/// The id and the dependencies of the example.
#[derive(Default)]
struct HeaderParts {
    id: Option<String>,
    dependencies: Vec<String>,
}

impl HeaderParts {
    /// Returns `None` if they are too long.
    fn of(call: &ToolCall, wrong: Wrong) -> Option<Self> {
        let bytes: usize = call.dependencies.iter().map(String::len).sum();
        if bytes > LONGEST_DEPENDENCIES {
            return None;
        }
        // Dependencies require an id before them, of any length.
        let has_room = call.id.len() <= LONGEST_ID || !call.dependencies.is_empty();
        let id = (!call.is_id_automatic && has_room).then(|| {
            if wrong.has_taken_id {
                format!("{}_{}", call.id, call.index + 1)
            } else {
                call.id.clone()
            }
        });
        Some(Self {
            id,
            dependencies: call.dependencies.clone(),
        })
    }
}

/// Renders the example; `None` if the dialect cannot express it, or if a definition contains a marker.
fn rendered(
    tool: &ToolSpec,
    header: &HeaderParts,
    spelled: &Spelled,
    dialect: &Dialect,
    keeper: &Keeper,
) -> Option<String> {
    let ids = header.id.iter().chain(&header.dependencies);
    let mut lines = ids.map(String::as_str).chain([tool.name.as_str()]);
    let is_free = match &spelled.texts {
        Texts::Block(arguments) => arguments
            .iter()
            .all(|(pointer, text)| keeper.is_free(pointer) && keeper.is_safe(text)),
        Texts::Emoji { raw_args, body } => keeper.is_free(raw_args) && keeper.is_safe(body),
    };
    if !is_free || !lines.all(|line| keeper.is_free(line)) {
        return None;
    }
    let call = match &spelled.texts {
        Texts::Block(arguments) => Call::Block {
            name: &tool.name,
            id: header.id.as_deref(),
            dependencies: header.dependencies.iter().map(String::as_str).collect(),
            arguments: arguments
                .iter()
                .map(|(pointer, text)| (&**pointer, &**text))
                .collect(),
        },
        Texts::Emoji { raw_args, body } => Call::Emoji {
            name: &tool.name,
            raw_args,
            body,
        },
    };
    render(&call, dialect).ok()
}

/// Returns `true` if nothing in the example is invalid except its placeholders.
fn is_right_elsewhere(tool: &ToolSpec, spelled: &Spelled, text: &str, dialect: &Dialect) -> bool {
    let Ok(document) = Document::parse(text, dialect) else {
        return false;
    };
    let Some(call) = document.calls().next() else {
        return false;
    };
    let Err(problems) = bind(tool, call) else {
        return true;
    };
    let is_expected = |one: &ReplyDiagnostic| spelled.placeholders.contains(&key_of(&one.pointer));
    problems.iter().all(is_expected)
}
