//! Renders calls as text (`spec/block.md` 9, `spec/emoji.md` 9).
//!
//! The rendered text is parsed again before it is returned, so a call that would be parsed differently is
//! rejected.

use std::fmt;

use crate::block::{begins_name, is_refused_in_name};
use crate::dialect::{Dialect, DialectError};
use crate::escape::Escaper;
use crate::event::{EventKind, Slot, Syntax, Termination};
use crate::markers::{Family, Role, checked, text_of};
use crate::parser::parse;
use crate::{LINE_LIMIT, is_blank};

/// A call to render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// A call of the block syntax.
    Block {
        /// The tool's name.
        name: &'a str,
        /// The id, if it is rendered.
        id: Option<&'a str>,
        /// The ids of the calls on which it depends.
        dependencies: Vec<&'a str>,
        /// The pointer and text of each argument, in order. Pointers are escaped as in RFC 6901, without the leading `/`.
        arguments: Vec<(&'a str, &'a str)>,
    },
    /// A call of the emoji syntax.
    Emoji {
        /// The tool's name.
        name: &'a str,
        /// The argument line, verbatim.
        raw_args: &'a str,
        /// The body, verbatim.
        body: &'a str,
    },
}

/// Renders a call as text that [`parse`] parses as the same call (`spec/block.md` 9, `spec/emoji.md` 9).
///
/// ```
/// use plaincall_syntax::{Call, Dialect, render};
///
/// let call = Call::Block {
///     name: "WriteFile",
///     id: Some("w"),
///     dependencies: vec![],
///     arguments: vec![("path", "a.txt"), ("content", "one\ntwo\n")],
/// };
/// let text = render(&call, &Dialect::block())?;
/// assert_eq!(text, "!!!GADGET_START:WriteFile:w\n!!!ARG:path\na.txt\n!!!ARG:content\none\ntwo\n\n!!!GADGET_END\n");
/// # Ok::<(), plaincall_syntax::RenderError>(())
/// ```
///
/// # Errors
/// Returns an error if the dialect is invalid or names no syntax, if the call belongs to the other syntax, or if the
/// dialect cannot express the call.
pub fn render(call: &Call<'_>, dialect: &Dialect) -> Result<String, RenderError> {
    let markers = checked(dialect)?;
    let marker = |role| text_of(&markers, role).map_or("", |text| text);
    let escaper = dialect
        .is_escaped()
        .then(|| Escaper::new(dialect))
        .transpose()?;
    let spelled = |text: &str| match &escaper {
        Some(escaper) => escaper.escape(text).into_owned(),
        None => text.to_owned(),
    };
    let text = match (call, dialect.syntax()) {
        (_, None) => return Err(DialectError::NoSyntax.into()),
        (
            Call::Block {
                name,
                id,
                dependencies,
                arguments,
            },
            Some(Syntax::Block),
        ) => {
            check_block_header(name, *id, dependencies)?;
            let mut header = (*name).to_owned();
            if id.is_some() || !dependencies.is_empty() {
                header.push(':');
                header.push_str(id.unwrap_or_default());
            }
            if !dependencies.is_empty() {
                header.push(':');
                header.push_str(&dependencies.join(","));
            }
            check_line(format_args!("the header"), &header)?;
            let mut text = format!("{}{header}\n", marker(Role::BlockStart));
            for &(pointer, value) in arguments {
                check_pointer(pointer)?;
                let line_end = if value.ends_with('\r') { "\r\n" } else { "\n" };
                let value = spelled(value);
                for piece in [marker(Role::BlockArgument), pointer, "\n", &value, line_end] {
                    text.push_str(piece);
                }
            }
            text.push_str(marker(Role::BlockEnd));
            text.push('\n');
            text
        }
        (
            Call::Emoji {
                name,
                raw_args,
                body,
            },
            Some(Syntax::Emoji),
        ) => {
            let header = check_emoji_header(name, raw_args)?;
            check_line(format_args!("the header"), &header)?;
            let body = spelled(body);
            format!(
                "{}{header}]\n{body}{}\n",
                marker(Role::EmojiStart(Family::Real)),
                marker(Role::EmojiEnd(Family::Real)),
            )
        }
        (Call::Block { .. }, Some(other)) => {
            return Err(RenderError::OtherSyntax {
                call: Syntax::Block,
                dialect: other,
            });
        }
        (Call::Emoji { .. }, Some(other)) => {
            return Err(RenderError::OtherSyntax {
                call: Syntax::Emoji,
                dialect: other,
            });
        }
    };
    read_back(call, &text, dialect)?;
    Ok(text)
}

/// An error in rendering a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RenderError {
    /// The dialect is invalid or names no syntax.
    Dialect(DialectError),
    /// The call belongs to the other syntax.
    OtherSyntax {
        /// The syntax of the call.
        call: Syntax,
        /// The syntax of the dialect.
        dialect: Syntax,
    },
    /// A part of the call cannot be expressed in the syntax: the entire message.
    Unspeakable(String),
    /// A value or body contains a marker that would be recognized.
    MarkerInValue {
        /// A description of the value or body.
        part: String,
    },
    /// Another part of the call contains a marker, alone or together with the text around it.
    Marker {
        /// A description of the part.
        part: String,
    },
}

impl From<DialectError> for RenderError {
    fn from(error: DialectError) -> Self {
        Self::Dialect(error)
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dialect(error) => error.fmt(formatter),
            Self::OtherSyntax { call, dialect } => write!(
                formatter,
                "a call of the {} syntax cannot be written in a dialect of the {} syntax",
                call.name(),
                dialect.name()
            ),
            Self::Unspeakable(sentence) => formatter.write_str(sentence),
            Self::MarkerInValue { part } => write!(
                formatter,
                "{part} contains a marker that would be recognized: use the escaped dialect or other markers"
            ),
            Self::Marker { part } => write!(
                formatter,
                "{part} contains a marker, or forms one with adjacent text: use other markers or a key"
            ),
        }
    }
}

impl std::error::Error for RenderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dialect(error) => Some(error),
            _ => None,
        }
    }
}

fn refuse(part: fmt::Arguments<'_>, found: &[(bool, &str)]) -> Result<(), RenderError> {
    match found.iter().find(|(is_found, _)| *is_found) {
        Some((_, reason)) => Err(RenderError::Unspeakable(format!("{part} {reason}"))),
        None => Ok(()),
    }
}

const LINE_END: &str = "contains a line end, but must be one line";

fn check_block_header(
    name: &str,
    id: Option<&str>,
    dependencies: &[&str],
) -> Result<(), RenderError> {
    refuse(
        format_args!("the name {name:?}"),
        &[
            (name.contains(['\r', '\n']), LINE_END),
            (name.contains(':'), "contains a colon, which ends a name"),
            (
                !name.starts_with(begins_name),
                "does not begin with a letter, a digit or `_`",
            ),
            (
                name.contains(is_refused_in_name),
                "contains a space, a control character or a quote",
            ),
        ],
    )?;
    let common = |text: &str| {
        [
            (text.is_empty(), "is empty"),
            (text.contains(['\r', '\n']), LINE_END),
            (text.contains(':'), "contains a colon, which ends it"),
            (is_blank_at_edge(text), "begins or ends with a space or tab"),
        ]
    };
    if let Some(id) = id {
        refuse(format_args!("the id {id:?}"), &common(id))?;
    }
    for dependency in dependencies {
        let comma = (dependency.contains(','), "contains a comma, which ends it");
        let [first, second, third, fourth] = common(dependency);
        refuse(
            format_args!("the dependency {dependency:?}"),
            &[first, second, third, fourth, comma],
        )?;
    }
    Ok(())
}

fn is_blank_at_edge(text: &str) -> bool {
    text.starts_with(is_blank) || text.ends_with(is_blank)
}

fn check_pointer(pointer: &str) -> Result<(), RenderError> {
    refuse(
        format_args!("the pointer {pointer:?}"),
        &[
            (pointer.contains(['\r', '\n']), LINE_END),
            (
                pointer.split('/').any(str::is_empty),
                "is empty or has an empty segment",
            ),
            (
                is_blank_at_edge(pointer),
                "begins or ends with a space or tab",
            ),
        ],
    )?;
    check_line(format_args!("the pointer {pointer:?}"), pointer)
}

fn check_line(part: fmt::Arguments<'_>, line: &str) -> Result<(), RenderError> {
    refuse(
        part,
        &[(line.len() > LINE_LIMIT, "is longer than 4,096 bytes")],
    )
}

fn check_emoji_header(name: &str, raw_args: &str) -> Result<String, RenderError> {
    const BRACKET: &str = "contains `]`, which ends the header";
    refuse(
        format_args!("the name {name:?}"),
        &[
            (name.is_empty(), "is empty"),
            (name.contains('\n'), LINE_END),
            (name.contains(']'), BRACKET),
            (name.starts_with('/'), "begins with `/`"),
            (
                name.contains(is_blank),
                "contains a space or tab, which ends a name",
            ),
        ],
    )?;
    refuse(
        format_args!("the argument line"),
        &[
            (raw_args.contains('\n'), LINE_END),
            (raw_args.contains(']'), BRACKET),
        ],
    )?;
    Ok(match raw_args {
        "" => name.to_owned(),
        raw_args => format!("{name} {raw_args}"),
    })
}

/// Parses the rendered text and rejects the first part that differs.
fn read_back(call: &Call<'_>, text: &str, dialect: &Dialect) -> Result<(), RenderError> {
    let mut dialect = dialect.clone();
    dialect.in_reasoning = false;
    let mut header_is_same = false;
    let mut values: Vec<(String, String)> = Vec::new();
    let mut is_closed = false;
    for event in parse(text, &dialect)? {
        match event.kind {
            EventKind::CallStart(header) => {
                header_is_same = values.is_empty()
                    && match call {
                        Call::Block {
                            name,
                            id,
                            dependencies,
                            ..
                        } => {
                            header.name() == *name
                                && header.id() == *id
                                && header.dependencies().eq(dependencies.iter().copied())
                        }
                        Call::Emoji { name, raw_args, .. } => {
                            header.name() == *name && header.raw_args() == Some(raw_args)
                        }
                    };
            }
            EventKind::ValueStart(Slot::Argument(pointer)) => {
                values.push((pointer.as_str().to_owned(), String::new()));
            }
            EventKind::ValueStart(Slot::Body) => values.push((String::new(), String::new())),
            EventKind::ValueDelta(piece) => {
                if let Some((_, value)) = values.last_mut() {
                    value.push_str(&piece);
                }
            }
            EventKind::CallEnd(ending) => is_closed = ending.termination() == Termination::Explicit,
            _ => {}
        }
    }
    let header = || RenderError::Marker {
        part: "the header".to_owned(),
    };
    if !header_is_same {
        return Err(header());
    }
    let expected = match call {
        Call::Block { arguments, .. } => arguments.clone(),
        Call::Emoji { body, .. } => vec![("", *body)],
    };
    let mut found = values.iter();
    for (pointer, value) in expected {
        let (part, is_value) = match (call, found.next()) {
            (_, Some((found, same))) if found == pointer && same == value => continue,
            (Call::Emoji { .. }, _) => ("the body".to_owned(), true),
            (_, Some((found, _))) if found == pointer => {
                (format!("the value of {pointer:?}"), true)
            }
            _ => (format!("the pointer {pointer:?}"), false),
        };
        return Err(if is_value {
            RenderError::MarkerInValue { part }
        } else {
            RenderError::Marker { part }
        });
    }
    if found.next().is_some() || !is_closed {
        return Err(header());
    }
    Ok(())
}
