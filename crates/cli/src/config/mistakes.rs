//! The text of a configuration file, checked, and what is wrong with it.

use std::path::Path;

use serde_json::Value;

use crate::config::check;
use crate::config::layer::{Author, Layer, Mistake, Paths};
use crate::config::redact::{settings, starred};
use crate::text::source::Counter;
use crate::tools_file::{self, MOST_SHOWN};

/// What a file says.
///
/// # Errors
/// All that is wrong with it.
pub(super) fn layer(
    text: &str,
    path: &Path,
    schema: &Value,
    author: Author,
    home: Option<&Path>,
) -> Result<Layer, Vec<Mistake>> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = whole.parent().unwrap_or(Path::new("/"));
    let layer = Layer::read(text, schema, author, Paths { folder, home })?;
    let contents = serde_json::from_value(Value::Object(layer.values.clone()));
    let problems = match contents {
        Ok(contents) => {
            let mut problems = check::problems(&contents);
            if author == Author::Project {
                problems.extend(check::reaching(&contents));
            }
            problems
        }
        Err(error) => vec![(String::new(), error.to_string())],
    };
    let mistakes = problems.into_iter().map(|(path, message)| Mistake {
        span: layer.span(&path),
        message,
    });
    let mistakes: Vec<Mistake> = mistakes.collect();
    if mistakes.is_empty() {
        Ok(layer)
    } else {
        Err(mistakes)
    }
}

/// Shows mistakes, each in the line where it stands.
pub(super) fn show(name: &str, text: &str, mistakes: &[Mistake]) {
    // What is wrong is shown in its line, in which a secret may stand too.
    let text = &settings(text, starred);
    let mut counter = Counter::new(text.as_bytes());
    for Mistake { span, message } in mistakes.iter().take(MOST_SHOWN) {
        let position = counter.position(span.start);
        tools_file::show(name, text, message, span.clone(), position);
    }
}

/// How many there are, in words.
pub(super) fn count(mistakes: &[Mistake]) -> String {
    match mistakes.len() {
        1 => "a mistake".to_owned(),
        count if count > MOST_SHOWN => {
            format!("{count} mistakes (the first {MOST_SHOWN} are shown)")
        }
        count => format!("{count} mistakes"),
    }
}
