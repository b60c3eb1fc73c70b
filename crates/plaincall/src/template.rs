//! Texts with placeholders: `{argument}`, `{directory:run}`, `{directory:tools}`.
//!
//! ```text
//! template    = { placeholder | literal | character } ;
//! placeholder = "{" , name , "}" ;
//! literal     = "{{" , name , "}}" ;              (* stands for "{name}" *)
//! name        = "directory:run" | "directory:tools" | letter , { letter | digit | "_" | "-" | "." } ;
//! ```
//!
//! Every other brace is an ordinary character. In a script for a shell `${name}` is the shell's own.

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text that stands for itself.
    Text(String),
    /// The text of an argument.
    Argument(String),
    /// The run's directory.
    RunDirectory,
    /// The folder of the tools file.
    ToolsDirectory,
}

/// Whose braces stand in the text beside ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Nobody's.
    Plain,
    /// A shell's: `${name}` is a variable of its own.
    Shell,
}

/// Splits a text into its parts.
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

/// A placeholder at the beginning of the text, and what stands behind it.
fn placeholder(text: &str) -> Option<(Piece, &str)> {
    let (name, behind) = text.strip_prefix('{')?.split_once('}')?;
    let piece = match name {
        "directory:run" => Piece::RunDirectory,
        "directory:tools" => Piece::ToolsDirectory,
        name if is_name(name) => Piece::Argument(name.to_owned()),
        _ => return None,
    };
    Some((piece, behind))
}

/// A placeholder in double braces at the beginning of the text: what it stands for without them.
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

#[cfg(test)]
mod tests {
    use super::{Host, Piece, pieces};

    /// Text as it is, arguments as `<name>`.
    fn check(host: Host, text: &str, expected: &str) {
        let shown: Vec<String> = pieces(text, host)
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Argument(name) => format!("<{name}>"),
                Piece::RunDirectory => "<run>".to_owned(),
                Piece::ToolsDirectory => "<tools>".to_owned(),
            })
            .collect();
        assert_eq!(shown.join("|"), expected, "{text}");
    }

    #[test]
    fn placeholders() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{path}", "<path>"),
            ("--file={path}.txt", "--file=|<path>|.txt"),
            ("{a}{b}", "<a>|<b>"),
            ("{directory:run}/x", "<run>|/x"),
            ("{directory:tools}", "<tools>"),
            ("{größe}{_a-b.c}", "<größe>|<_a-b.c>"),
            // Other braces are nobody's business.
            ("{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"),
            ("{\"a\":{path}}", "{\"a\":|<path>|}"),
            ("{}{ a }{a b}{1}{_}", "{}{ a }{a b}{1}{_}"),
            ("{directory:other}", "{directory:other}"),
            ("{open", "{open"),
            ("}{", "}{"),
            // Double braces take the meaning away.
            ("{{path}}", "{path}"),
            ("{{path}", "{|<path>"),
            ("{{{path}}}", "{{path}}"),
            ("{{directory:run}}", "{directory:run}"),
            ("{{print $1}}", "{{print $1}}"),
            ("${path}", "$|<path>"),
        ] {
            check(Host::Plain, text, expected);
        }
    }

    #[test]
    fn a_shell_keeps_its_variables() {
        for (text, expected) in [
            ("echo \"${HOME}/{path}\"", "echo \"${HOME}/|<path>|\""),
            ("awk '{{print}}' {path}", "awk '{print}' |<path>"),
            ("f() { echo; }", "f() { echo; }"),
            ("echo {a,b} {1..3}", "echo {a,b} {1..3}"),
        ] {
            check(Host::Shell, text, expected);
        }
    }
}
