//! What is wrong with a file, for people.

use plaincall_config::{FileError, redacted, starred};
use plaincall_syntax::Severity;

use crate::output::say;
use crate::terminal::excerpt::{Excerpts, Remark};

/// How many problems of a file are shown at most.
const MOST_SHOWN: usize = 100;
/// How many of a file whose syntax is wrong, where one leads to the next.
const MOST_OF_SYNTAX: usize = 5;

/// Shows what is wrong with a file, each problem in its line, without what looks like a secret there. Returns how many
/// problems there are, in words.
pub(crate) fn show(name: &str, text: &str, error: &FileError) -> String {
    let text = redacted(text, starred);
    let excerpts = Excerpts::new(true);
    for problem in error.problems.iter().take(most_shown(error)) {
        let remark = Remark {
            severity: Severity::Error,
            code: None,
            message: &problem.message,
            help: None,
            note: None,
            span: problem.span.clone(),
            position: (problem.line, problem.column),
        };
        let excerpt = excerpts.render(name, &text, &remark);
        say(format_args!("{excerpt}\n\n"));
    }
    count(error)
}

/// How many problems there are, in words.
pub(crate) fn count(error: &FileError) -> String {
    let most = most_shown(error);
    match error.problems.len() {
        1 => "1 error".to_owned(),
        count if count > most => format!("{count} errors (showing the first {most})"),
        count => format!("{count} errors"),
    }
}

fn most_shown(error: &FileError) -> usize {
    if error.is_well_formed {
        MOST_SHOWN
    } else {
        MOST_OF_SYNTAX
    }
}
