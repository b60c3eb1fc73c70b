//! Texts with placeholders: `{argument}`, `{directory:current}`, `{directory:run}`, `{directory:tools}`.
//!
//! ```text
//! template    = { placeholder | literal | character } ;
//! placeholder = "{" , name , "}" ;
//! literal     = "{{" , name , "}}" ;              (* the text "{name}" *)
//! name        = [ "directory:" ] , letter , { letter | digit | "_" | "-" | "." } ;
//! ```
//!
//! Every other brace is an ordinary character. In a shell script `${name}` is a shell variable.

pub(crate) const DIRECTORY: &str = "directory:";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Argument(String),
    CurrentDirectory,
    RunDirectory,
    ToolsDirectory,
}

/// The syntax of the text around the placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Plain,
    /// A shell script, where `${name}` is a variable.
    Shell,
}

pub(crate) fn pieces(text: &str, host: Host) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, brace) = rest.split_at(at);
        literal.push_str(before);
        rest = brace;
        let is_variable = host == Host::Shell && literal.ends_with('$');
        if let Some((name, behind)) = escaped(brace) {
            literal.push('{');
            literal.push_str(name);
            literal.push('}');
            rest = behind;
        } else if let Some((piece, behind)) = placeholder(brace).filter(|_| !is_variable) {
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(piece);
            rest = behind;
        } else {
            literal.push('{');
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    pieces
}

/// Parses a placeholder at the beginning of the text. Returns it and the rest.
fn placeholder(text: &str) -> Option<(Piece, &str)> {
    let (name, behind) = text.strip_prefix('{')?.split_once('}')?;
    let piece = match name {
        "directory:current" => Piece::CurrentDirectory,
        "directory:run" => Piece::RunDirectory,
        "directory:tools" => Piece::ToolsDirectory,
        // Names of parameters have no colon, so a misspelled directory is an unknown parameter.
        name if is_name(name.strip_prefix(DIRECTORY).unwrap_or(name)) => {
            Piece::Argument(name.to_owned())
        }
        _ => return None,
    };
    Some((piece, behind))
}

/// Parses a literal at the beginning of the text. Returns the name in it and the rest.
fn escaped(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{')?;
    let (_, behind) = placeholder(inner)?;
    let name = inner.get(1..inner.len() - behind.len() - 1)?;
    Some((name, behind.strip_prefix('}')?))
}

fn is_name(text: &str) -> bool {
    text.starts_with(char::is_alphabetic)
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        || text.starts_with('_') && is_name(text.trim_start_matches('_'))
}

/// Returns the placeholders between single quotes in a shell script, where the shell does not expand them, with their byte
/// offsets.
///
/// The scan understands quotes, backslashes and comments. It stops at syntax that it cannot follow (a here-document, a
/// command inside double quotes), and skips quotes that `eval` or `trap` may parse again.
pub(crate) fn single_quoted(script: &str) -> Vec<(usize, Piece)> {
    let mut found = Vec::new();
    let mut place = 0;
    let mut before = ' ';
    while let Some(c) = next(script, place) {
        let begun = place;
        place += c.len_utf8();
        let rest = script.get(place..).unwrap_or_default();
        let length = match c {
            '\\' => rest.chars().next().map(char::len_utf8),
            '#' if before.is_whitespace() || ";|&()".contains(before) => rest.find('\n'),
            '<' if rest.starts_with('<') => None,
            '\'' if before == '$' => None,
            '\'' => rest.find('\'').map(|end| {
                if !is_read_again(script.get(..begun).unwrap_or_default()) {
                    let quoted = rest.get(..end).unwrap_or_default();
                    found.extend(placeholders(quoted).map(|(at, piece)| (place + at, piece)));
                }
                end + 1
            }),
            '"' => double_quoted(rest),
            _ => Some(0),
        };
        let Some(length) = length else {
            break;
        };
        place += length;
        before = c;
    }
    found
}

fn next(text: &str, place: usize) -> Option<char> {
    text.get(place..)?.chars().next()
}

/// Returns the length of a double-quoted text, with its closing quote, if it is certain.
fn double_quoted(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some(at + 1),
            '\\' => drop(characters.next()),
            '`' => return None,
            '$' if characters
                .peek()
                .is_some_and(|&(_, next)| "({".contains(next)) =>
            {
                // A command in it, or the value of a parameter, may contain quotes.
                let inner = text.get(at..)?.strip_prefix("${")?;
                if inner
                    .get(..inner.find('}')?)?
                    .contains(['"', '\'', '$', '`'])
                {
                    return None;
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns whether the shell may parse a quoted text again, based on the line before it.
fn is_read_again(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == "eval" || word == "trap")
}

fn placeholders(text: &str) -> impl Iterator<Item = (usize, Piece)> {
    let mut place = 0;
    std::iter::from_fn(move || {
        loop {
            let at = place + text.get(place..)?.find('{')?;
            let brace = text.get(at..)?;
            if let Some((_, behind)) = escaped(brace) {
                place = text.len() - behind.len();
                continue;
            }
            place = at + 1;
            let is_variable = text.get(..at)?.ends_with('$');
            if let Some((piece, behind)) = placeholder(brace).filter(|_| !is_variable) {
                place = text.len() - behind.len();
                return Some((at, piece));
            }
        }
    })
}
