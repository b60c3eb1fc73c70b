//! Errors of a configuration file or tools file.

use plaincall_config::FileError;
use plaincall_config::secret::{redacted, starred};
use plaincall_syntax::Severity;

use crate::output::write_stderr;
use crate::terminal::excerpt::{Excerpt, Excerpts};

/// The maximum number of errors shown for a file.
const MAX_SHOWN: usize = 100;
/// The maximum number of syntax errors shown, because one often causes the next.
const MAX_SYNTAX_ERRORS: usize = 5;

/// Prints the errors of a file with excerpts, in which possible secrets are hidden. Returns their count as text.
pub(crate) fn show(name: &str, text: &str, error: &FileError) -> String {
    let text = redacted(text, starred);
    let excerpts = Excerpts::new(true);
    for problem in error.problems.iter().take(max_shown(error)) {
        let diagnostic = Excerpt {
            severity: Severity::Error,
            code: None,
            message: &problem.message,
            help: None,
            note: None,
            span: problem.span.clone(),
            position: (problem.line, problem.column),
        };
        let excerpt = excerpts.render(name, &text, &diagnostic);
        write_stderr(format_args!("{excerpt}\n\n"));
    }
    count(error)
}

/// Returns the number of errors as text.
pub(crate) fn count(error: &FileError) -> String {
    let max = max_shown(error);
    match error.problems.len() {
        1 => "1 error".to_owned(),
        count if count > max => format!("{count} errors (showing the first {max})"),
        count => format!("{count} errors"),
    }
}

fn max_shown(error: &FileError) -> usize {
    if error.is_well_formed {
        MAX_SHOWN
    } else {
        MAX_SYNTAX_ERRORS
    }
}
