//! `plaincall ask`: answer a question.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use plaincall::prompt::answer::AnswerSchema;
use plaincall::tool::json::parse;
use plaincall_agent::{AgentError, AgentErrorKind, Answer};
use serde_json::json;

use crate::commands::conversation::{
    Built, Ended, Setup, build, explained, kind, play, status, warning,
};
use crate::environment::Environment;
use crate::options::{AgentOptions, Color, SessionOptions};
use crate::output::JsonOutput;
use crate::platform::{StandardInput, standard_input};
use crate::runtime::block_on;
use crate::settings::{Configuration, close_servers};
use crate::status::{
    Failure, KEEP_FILES, Outcome, Status, print_error, print_note, report_removed_files,
};
use crate::terminal::displays::Displays;
use crate::text::input::note_if_waiting;
use crate::tools_file;

/// Ask a model a question, with tools.
///
/// The model writes text and calls. The calls run while it writes, and their results go back to it, until it answers.
/// The answer goes to standard output. Everything else goes to standard error: text before calls, a line for each call,
/// approvals, and a summary.
///
/// Text from a pipe or a file on standard input is attached to the question as a document; without a question, it is
/// the question. Documents, questions and results are untrusted text: calls in them never run, and a call that the
/// model copies from them needs approval.
///
/// The model, the tools and the limits come from the configuration (see `plaincall config`) and the options. Rules
/// apply first. If no rule matches, calls of tools that may change something need approval on the terminal; without a
/// terminal they are denied unless you pass `--yes`.
///
/// Ctrl-C cancels the request and stops the tools with all processes that they have started. A second Ctrl-C exits
/// immediately.
///
/// Exit status: 0 with an answer; 1 without one, because the model or a tool failed or a limit was reached; 2 for wrong
/// usage or configuration; 124 after a timeout; 130 after Ctrl-C, 143 after SIGTERM.
#[derive(Args, Debug)]
pub(crate) struct AskOptions {
    /// The question. Several words form one question. Default: standard input.
    #[arg(value_name = "QUESTION")]
    question: Vec<String>,

    /// A file to attach to the question. May be repeated.
    #[arg(long, short, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// A file with a JSON Schema that the answer must match. Standard output has only the JSON of the answer.
    ///
    /// If an answer does not match, the model gets a message with the problems, at most `limits.repairs` times. Then the
    /// command fails with the problems of the last answer.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Print the events of the run as JSON instead of the answer, one object per line.
    ///
    /// The last line is the outcome: an object with `"event": "answer"`, `text`, `turns` and `usage` (`input`, `output`, and
    /// `cached`, the part of `input` that the server had cached), or with `"event": "failed"`, `kind` and `message`. The kinds:
    /// `model` (no reply, or it failed midway), `time`, `turns`, `calls`, `tokens`, `repairs`, `same_failure`, `same_result`
    /// (limits), `length` (a truncated reply), `too_long` (the context window), `schema`, `empty` (empty replies), `ended` (for
    /// an unknown reason), `cancelled`, `user` (could not be asked), `log` (cannot be written), `run`, `dialect`, `random`,
    /// `settings` and `other`. Later versions may add kinds. A command that was killed or could not start writes no such line.
    #[arg(long, short)]
    json: bool,

    /// Show the output of each tool. At most 20 lines.
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    session: SessionOptions,

    #[command(flatten)]
    agent: AgentOptions,
}

/// The document name of standard input.
const STANDARD_INPUT: &str = "standard input";

/// The input for the model.
struct Input {
    question: String,
    /// Name and text of each document.
    documents: Vec<(String, String)>,
    schema: Option<AnswerSchema>,
}

pub(crate) fn ask(options: &AskOptions, color: Color) -> Outcome {
    let environment = Environment::read();
    let configuration = Configuration::of(&options.agent, &environment)?;
    let input = input(options)?;
    let answer = answer(options, color, configuration, &environment, &input);
    let (status, leftover) = block_on(answer)?;
    if let Some(displays) = leftover {
        displays.close_now();
    }
    Ok(status)
}

async fn answer(
    options: &AskOptions,
    color: Color,
    mut configuration: Configuration,
    environment: &Environment,
    input: &Input,
) -> Result<(Status, Option<Displays>), Failure> {
    let setup = Setup {
        agent: &options.agent,
        session: &options.session,
        is_record: options.json,
        is_verbose: options.verbose,
        has_schema: input.schema.is_some(),
        color,
    };
    let (built, mut interrupts) = match build(&setup, &mut configuration, environment).await? {
        Ok(built) => built,
        Err(interrupt) => return Ok((Status::Interrupted(interrupt.status()), None)),
    };
    let Built {
        mut conversation,
        mut displays,
        servers,
        session,
        ..
    } = built;
    for (name, text) in &input.documents {
        conversation.attach(name, text);
    }
    let stream = match &input.schema {
        Some(schema) => conversation.stream_as(&input.question, schema.clone()),
        None => conversation.stream(&input.question),
    };
    let ended = play(stream, &mut displays, &mut interrupts).await;
    let (ended, interrupt) = match ended {
        Ended::Aborted(interrupt) => {
            return Ok((Status::Interrupted(interrupt.status()), Some(displays)));
        }
        Ended::Finished(ended, interrupt) => (ended, interrupt),
    };
    let configuration = &configuration;
    let written = displays.close().await;
    let outcome = if options.json {
        write_outcome(&ended, configuration)
    } else {
        Ok(())
    };
    let closed = conversation.close().await;
    close_servers(servers).await;
    let status = match (interrupt, ended) {
        (Some(interrupt), _) => Status::Interrupted(interrupt.status()),
        (None, Ok(answer)) => {
            if let Some(warning) = warning(&answer) {
                print_note(&warning);
            }
            Status::Success
        }
        (None, Err(error)) => {
            if !matches!(error.kind, AgentErrorKind::Cancelled) {
                print_error(&explained(&error, configuration));
                if let AgentErrorKind::Model(_) = error.kind
                    && error.progress.turns > 0
                {
                    print_note(&match session {
                        Some(name) => format!(
                            "the conversation is saved; to continue it, run `plaincall ask --session {name} {}Continue.`",
                            options.agent.for_shell()
                        ),
                        None => "to continue a conversation after such an error, save it with `--session NAME`".to_owned(),
                    });
                }
            }
            status(&error.kind)
        }
    };
    report_removed_files(closed, KEEP_FILES);
    let written = written.or(outcome.err());
    match (status, written) {
        (Status::Success, Some(failure)) => Err(failure),
        (status, _) => Ok((status, None)),
    }
}

/// Writes the outcome as the last line. It has no `n` and no `crc`, so a reader of logs treats it as an incomplete last line.
fn write_outcome(
    ended: &Result<Answer, AgentError>,
    configuration: &Configuration,
) -> Result<(), Failure> {
    let line = match ended {
        Ok(answer) => json!({
            "event": "answer",
            "text": answer.text,
            "turns": answer.progress.turns,
            "usage": answer.progress.usage,
        }),
        Err(error) => json!({
            "event": "failed",
            "kind": kind(&error.kind),
            "message": explained(error, configuration),
        }),
    };
    writeln!(JsonOutput::new(), "{line}").map_err(|error| Failure::output(&error))
}

/// Reads the question and the attached documents.
fn input(options: &AskOptions) -> Result<Input, Failure> {
    let standard = Path::new("-");
    let mut documents = Vec::new();
    for path in &options.file {
        let (name, text) = tools_file::read(path)?;
        let is_standard = path == standard;
        let name = if is_standard {
            STANDARD_INPUT.to_owned()
        } else {
            format!("the file {name}")
        };
        documents.push((name, text));
    }
    let reads_standard_input = options.file.iter().any(|path| path == standard);
    let question = match options.question.as_slice() {
        question @ [_, ..] => {
            if !reads_standard_input && has_document() {
                note_if_waiting(
                    "waiting for the end of standard input, which is attached to the question; to ask without it, add `< /dev/null`",
                );
                let (_, text) = tools_file::read(standard)?;
                if !text.trim().is_empty() {
                    documents.push((STANDARD_INPUT.to_owned(), text));
                }
            }
            question.join(" ")
        }
        [] if reads_standard_input => String::new(),
        [] => {
            note_if_waiting(
                "waiting for the question on standard input; or pass it as an argument",
            );
            tools_file::read(standard)?.1
        }
    };
    if question.trim().is_empty() {
        return Err(Failure::Usage(
            "missing question: pass it as an argument or on standard input".to_owned(),
        ));
    }
    let schema = options.schema.as_deref().map(answer_schema).transpose()?;
    Ok(Input {
        question,
        documents,
        schema,
    })
}

/// Reads the file of `--schema`.
fn answer_schema(path: &Path) -> Result<AnswerSchema, Failure> {
    let (name, text) = tools_file::read(path)?;
    let invalid = |reason: String| Failure::Configuration(format!("{name}: {reason}"));
    let schema = parse(&text).map_err(|error| invalid(format!("invalid JSON: {error}")))?;
    AnswerSchema::new(schema).map_err(|error| invalid(error.to_string()))
}

/// Returns whether standard input is a pipe or a file, and not a terminal, a socket or `/dev/null`.
fn has_document() -> bool {
    standard_input() != StandardInput::Other
}
