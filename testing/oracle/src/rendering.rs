//! The rules of rendering (`spec/block.md` 9, `spec/emoji.md` 9): what is written is read as the same call, by
//! the parser and by the oracle, and nothing is refused that could have been written.

use plaincall_syntax::{Call, RenderError, render};

use crate::merged::{Kind, Merged, merged};
use crate::oracle::{Options, oracle};

/// Whether a call was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// It was written, and read as the same call.
    Written,
    /// It was refused, and written without care it is read as something else.
    Refused,
}

/// The content of a call, from its events or before rendering.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    name: String,
    id: Option<String>,
    dependencies: Vec<String>,
    /// Of the emoji syntax.
    raw_args: Option<String>,
    /// Pointers and values; a body has no pointer.
    values: Vec<(Option<String>, String)>,
}

impl Content {
    fn of(call: &Call<'_>) -> Self {
        let owned = |text: &str| text.to_owned();
        match call {
            Call::Block {
                name,
                id,
                dependencies,
                arguments,
            } => Self {
                name: owned(name),
                id: id.map(owned),
                dependencies: dependencies.iter().copied().map(owned).collect(),
                raw_args: None,
                values: arguments
                    .iter()
                    .map(|(pointer, value)| (Some(owned(pointer)), owned(value)))
                    .collect(),
            },
            Call::Emoji {
                name,
                raw_args,
                body,
            } => Self {
                name: owned(name),
                raw_args: Some(owned(raw_args)),
                values: vec![(None, owned(body))],
                ..Self::default()
            },
        }
    }

    /// The call of a text that is one closed call and at most a line end behind it.
    fn read(events: Vec<Merged>) -> Option<Self> {
        let mut events = events.into_iter().map(|event| event.kind);
        let mut content = match events.next()? {
            Kind::BlockCall {
                name,
                id,
                dependencies,
            } => Self {
                name,
                id,
                dependencies,
                ..Self::default()
            },
            Kind::EmojiCall { name, raw_args } => Self {
                name,
                raw_args: Some(raw_args),
                ..Self::default()
            },
            _ => return None,
        };
        for kind in events.by_ref() {
            match kind {
                Kind::Argument(pointer) => content.values.push((Some(pointer), String::new())),
                Kind::Body => content.values.push((None, String::new())),
                Kind::Value(text) => content.values.last_mut()?.1.push_str(&text),
                Kind::CallEnd("explicit") => {
                    let is_over = match events.next() {
                        None => true,
                        Some(Kind::Text(text)) => text == "\n" && events.next().is_none(),
                        Some(_) => false,
                    };
                    return is_over.then_some(content);
                }
                Kind::ValueEnd | Kind::Ignored(_) | Kind::Diagnostic(_) => {}
                _ => return None,
            }
        }
        None
    }
}

/// The same call written by hand, without any care.
fn careless(call: &Call<'_>, options: &Options) -> String {
    let markers = options.marker_texts();
    let (start, end) = (&markers[0], &markers[1]);
    match call {
        Call::Block {
            name,
            id,
            dependencies,
            arguments,
        } => {
            let mut text = format!("{start}{name}");
            if id.is_some() || !dependencies.is_empty() {
                text.extend([":", id.unwrap_or_default()]);
            }
            if !dependencies.is_empty() {
                text.extend([":", &dependencies.join(",")]);
            }
            text.push('\n');
            for (pointer, value) in arguments {
                let line_end = if value.ends_with('\r') { "\r\n" } else { "\n" };
                text.extend([&*markers[2], pointer, "\n", value, line_end]);
            }
            text + end + "\n"
        }
        Call::Emoji {
            name,
            raw_args,
            body,
        } => {
            let blank = if raw_args.is_empty() { "" } else { " " };
            format!("{start}{name}{blank}{raw_args}]\n{body}{end}\n")
        }
    }
}

/// Whether the specification refuses a call that would be read again: for a carriage return in its header or in a
/// pointer, or for an empty segment of a pointer.
fn is_refused_all_the_same(call: &Call<'_>) -> bool {
    let Call::Block {
        name,
        id,
        dependencies,
        arguments,
    } = call
    else {
        return false;
    };
    let pointers = || arguments.iter().map(|(pointer, _)| *pointer);
    [*name]
        .into_iter()
        .chain(*id)
        .chain(dependencies.iter().copied())
        .chain(pointers())
        .any(|text| text.contains('\r'))
        || pointers().any(|pointer| pointer.split('/').any(str::is_empty))
}

/// Renders a call of the options' syntax, and holds it against both readers.
///
/// # Errors
/// Returns an error that describes the violation.
///
/// # Panics
/// When the options make no dialect.
pub fn check(call: &Call<'_>, options: &Options) -> Result<Rendered, String> {
    let dialect = options.dialect();
    let words = options.words();
    let content = Content::of(call);
    match render(call, &dialect) {
        Ok(text) => {
            for read in [merged(&text, &dialect).unwrap(), oracle(&text, options)] {
                let read = Content::read(read);
                if read.as_ref() != Some(&content) {
                    return Err(format!(
                        "{call:?} is written as {text:?} with {words}, and that is {read:?}"
                    ));
                }
            }
            Ok(Rendered::Written)
        }
        Err(error) => {
            let text = careless(call, options);
            let is_read = Content::read(oracle(&text, options)).as_ref() == Some(&content);
            if is_read && !is_refused_all_the_same(call) {
                return Err(format!(
                    "{error}, but {text:?} is read as the same call with {words}"
                ));
            }
            let is_of_value = matches!(&error, RenderError::MarkerInValue { .. });
            if options.escaped && is_of_value {
                return Err(format!(
                    "with {words} every value can be written: {call:?}, {error}"
                ));
            }
            Ok(Rendered::Refused)
        }
    }
}
