//! The trace of a logged run, from the bytes of its log.

use plaincall::events::RunBegin;
use plaincall::log::{LogError, Record};
use plaincall::{Dialect, RunEvent};
use plaincall_config::DialectOptions;
use plaincall_config::settings::Model;
use serde_json::Value;

use crate::trace::Trace;

/// The program name in notes of `plaincall run`.
pub const RUN: &str = "plaincall run";
/// The program name in notes of `plaincall ask` and `plaincall chat`.
pub const CHAT: &str = "plaincall chat";

/// Returns the trace of a log, and the damage after which the rest of the log is missing.
///
/// # Errors
/// Returns an error if the log has no readable line.
pub fn trace(bytes: &[u8]) -> Result<(Trace, Option<LogError>), LogError> {
    let with_newlines = with_newlines(bytes);
    let (record, error) =
        Record::read_as_far_as_possible(with_newlines.as_deref().unwrap_or(bytes));
    let error = match error {
        Some(error) if record.events.is_empty() => return Err(error),
        error => error,
    };
    let mut trace = Trace::of(&record.events, &dialect(&record.events));
    if with_newlines.is_some() {
        let problem = "a program changed the line ends to CR LF; the log is shown, but it cannot be resumed like this";
        trace.problems.push(problem.to_owned());
    }
    if let Some(torn) = &record.torn {
        trace.problems.push(format!(
            "the last line (line {}, {} bytes) is incomplete after a crash; {}",
            torn.line,
            torn.bytes,
            if torn.may_be_start {
                "it may be the start of a call of a tool that writes"
            } else {
                "it is ignored"
            }
        ));
    }
    if let Some(error) = &error {
        let problem = format!("{error}; the rest of the log is not shown");
        trace.problems.push(problem);
    }
    Ok((trace, error))
}

/// Returns the log with its own line ends, if its first line ends with CR LF. A line of a log contains no other line ends.
fn with_newlines(bytes: &[u8]) -> Option<Vec<u8>> {
    let first = bytes.split_inclusive(|byte| *byte == b'\n').next()?;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    first.ends_with(b"\r\n").then(|| {
        lines
            .flat_map(|line| match line.strip_suffix(b"\r\n") {
                Some(line) => [line, b"\n"].concat(),
                None => line.to_vec(),
            })
            .collect()
    })
}

/// Returns whether a text is the log of a run.
pub fn is_log(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next();
    let first: Option<Value> = line.and_then(|line| serde_json::from_slice(line).ok());
    let event = first.as_ref().and_then(|first| first.get("event"));
    event.and_then(Value::as_str) == Some("run")
}

/// Returns the dialect of the run's replies from its note. Without a note, both syntaxes are tried.
fn dialect(events: &[RunEvent]) -> Dialect {
    let from_note = events.iter().find_map(|event| match event {
        RunEvent::Run(begin) => of_note(begin),
        _ => None,
    });
    from_note.unwrap_or_else(Dialect::auto)
}

fn of_note(begin: &RunBegin) -> Option<Dialect> {
    let note = begin.note.as_object()?;
    let program = note.get("program")?;
    if program == RUN {
        let options: DialectOptions = serde_json::from_value(note.get("syntax")?.clone()).ok()?;
        return options.dialect().ok();
    }
    if program.get("program")? != CHAT {
        return None;
    }
    let teaching: Model = serde_json::from_value(program.get("teaching")?.clone()).ok()?;
    let dialect = teaching.conversation();
    Some(match note.get("key").and_then(Value::as_str) {
        Some(key) => dialect.keyed(key),
        None => dialect,
    })
}
