//! `plaincall tools call`: one tool, by hand.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use clap::Args;
use plaincall::{CallResult, Canceller, Run, Stop, SubmittedArguments};
use plaincall_call::{Document, Segment};
use plaincall_syntax::Dialect;
use serde_json::Value;

use crate::commands::tools::SourceOptions;
use crate::environment::Environment;
use crate::history::History;
use crate::options::Color;
use crate::output::Output;
use crate::runtime::block_on;
use crate::settings::Equipment;
use crate::status::{Failure, KEEP_FILES, Outcome, Status, complain, tell_removed};
use crate::terminal::approval::Approval;
use crate::terminal::interrupts::Interrupts;
use crate::terminal::prompter::Prompter;
use crate::text::input::Input;

/// Call one tool, as a model would.
///
/// The arguments are `NAME=VALUE`, each as a model writes it: the definition of the tool says what becomes of it, and what
/// does not fit is refused in the words that a model reads. The name may be a JSON Pointer (`items/0=first`). A value of
/// several lines is easier as JSON. Without the name of a tool, a text with one call is read from the standard input.
///
/// The call runs as in `plaincall run`: rules decide first; a tool that may change something asks on the terminal, or is
/// refused without one, unless `--yes` allows it. The output of the tool goes to the standard output, errors to the
/// standard error.
///
/// Exit status: 0 if the call ended `ok`; 1 otherwise, or if a file cannot be read; 2 for wrong usage or configuration; 130
/// after Ctrl-C, 143 after SIGTERM.
#[derive(Args, Debug)]
pub(crate) struct CallOptions {
    /// The tool; without it, a text with a call is read from the standard input.
    #[arg(value_name = "TOOL")]
    name: Option<String>,

    /// Its arguments.
    #[arg(value_name = "NAME=VALUE", conflicts_with = "json")]
    arguments: Vec<String>,

    /// The arguments as a JSON object.
    #[arg(long, value_name = "OBJECT", requires = "name")]
    json: Option<String>,

    /// Let the tool run without asking, also if it may change something. What a rule denies stays denied.
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    sources: SourceOptions,
}

/// Runs the command.
pub(super) fn call(options: &CallOptions, color: Color) -> Outcome {
    let environment = Environment::read();
    let given = match &options.name {
        Some(_) => None,
        None => Some(one_call()?),
    };
    let (result, interrupt) = match block_on(called(options, given, environment))? {
        Ok(called) => called,
        Err(status) => return Ok(Status::Interrupted(status)),
    };
    let status = tell(result.as_ref(), color)?;
    Ok(interrupt.map_or(status, Status::Interrupted))
}

/// The result, and the exit status of a signal that called it off; or that of a second signal.
type Called = Result<(Option<CallResult>, Option<u8>), u8>;

async fn called(
    options: &CallOptions,
    given: Option<String>,
    environment: Environment,
) -> Result<Called, Failure> {
    let mut interrupts = Interrupts::new()
        .map_err(|error| Failure::Broken(format!("cannot listen for signals: {error}")))?;
    let Equipment {
        toolbox,
        rules,
        policy,
        servers,
    } = tokio::select! {
        equipment = options.sources.equipment(&environment) => equipment?,
        interrupt = interrupts.next() => return Ok(Err(interrupt.status())),
    };
    let asked = match (given, &options.name) {
        (Some(text), _) => Asked::Text(text),
        (None, name) => Asked::Call(name.clone().unwrap_or_default(), arguments(options)?),
    };
    // Nothing is shown but questions.
    let prompter = Arc::new(Prompter::new(None, false));
    prompter.open();
    let gate = Approval::new(
        options.yes,
        rules.clone(),
        toolbox.clone(),
        &History::default(),
        BTreeMap::new(),
        Arc::clone(&prompter),
    );
    let mut run = Run::builder(toolbox)
        .rules(rules)
        .gate(gate.clone())
        .policy(policy)
        .directory_in(environment.temporary_directory())
        .environment(environment.into_variables())
        .build()
        .map_err(|error| Failure::Broken(error.to_string()))?;
    gate.set_directories(run.directories());
    let canceller = run.canceller();
    let quit = run.canceller();
    prompter.set_quit(move || quit.cancel());
    let ended = finished(&mut run, asked, &mut interrupts, &canceller).await;
    prompter.close();
    let (result, first) = match ended {
        Ok(ended) => ended,
        Err(status) => return Ok(Err(status)),
    };
    tell_removed(run.close().await, KEEP_FILES);
    if let Some(servers) = servers {
        servers.close().await;
    }
    Ok(Ok((result, first)))
}

/// What is called.
enum Asked {
    /// The one call in a text.
    Text(String),
    /// This tool with these arguments.
    Call(String, SubmittedArguments),
}

/// The result, and the exit status of a signal that called the turn off; `Err` with that of a second one.
async fn finished(
    run: &mut Run,
    asked: Asked,
    interrupts: &mut Interrupts,
    canceller: &Canceller,
) -> Called {
    let mut turn = run.turn();
    let mut finishing = std::pin::pin!(async move {
        match asked {
            Asked::Text(text) => {
                turn.feed(text);
                turn.finish(Stop::Natural).await.into_iter().next()
            }
            Asked::Call(name, arguments) => Some(turn.submit(&name, arguments).await),
        }
    });
    let mut first = None;
    loop {
        tokio::select! {
            result = &mut finishing => return Ok((result, first)),
            interrupt = interrupts.next() => {
                if first.is_some() || interrupt.is_urgent() {
                    return Err(interrupt.status());
                }
                first = Some(interrupt.status());
                canceller.cancel();
            }
        }
    }
}

/// The text on the standard input, which holds one call.
fn one_call() -> Result<String, Failure> {
    let bytes = Input::open(std::path::Path::new("-"))?.into_bytes()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let document = Document::parse(&text, &Dialect::default())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let calls = document
        .segments
        .iter()
        .filter(|segment| matches!(segment, Segment::Call { .. }))
        .count();
    if calls == 1 {
        return Ok(text);
    }
    let found = match calls {
        0 => "no call".to_owned(),
        more => format!("{more} calls"),
    };
    Err(Failure::Broken(format!(
        "the text on the standard input holds {found}, and one is called by hand at a time; `plaincall check` says what looks like a call and is none, `plaincall run` runs several"
    )))
}

/// The arguments that were given.
fn arguments(options: &CallOptions) -> Result<SubmittedArguments, Failure> {
    if let Some(json) = &options.json {
        let wrong = |what: &str| Failure::Usage(format!("`--json`: {what}"));
        let value = serde_json::from_str(json).map_err(|error| wrong(&error.to_string()))?;
        return match value {
            Value::Object(object) => Ok(object.into()),
            _ => Err(wrong("write an object, such as {\"path\": \"a.txt\"}")),
        };
    }
    let pairs = options.arguments.iter().map(|word| {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "`{word}` is no argument: write it as NAME=VALUE, such as `path=src/main.rs`"
            ))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    });
    pairs.collect::<Result<Vec<_>, _>>().map(Into::into)
}

/// Prints what came of it.
fn tell(result: Option<&CallResult>, color: Color) -> Outcome {
    let mut output = Output::new(color);
    let Some(result) = result else {
        return Err(Failure::Broken("nothing was called".to_owned()));
    };
    if let Some(text) = &result.output {
        output.bytes(text.as_bytes())?;
        if output.is_terminal && !text.is_empty() && !text.ends_with('\n') {
            output.bytes(b"\n")?;
        }
        output.flush()?;
    }
    complain_about(result);
    Ok(if result.status == plaincall::Status::Ok {
        Status::Good
    } else {
        Status::Wrong
    })
}

fn complain_about(result: &CallResult) {
    if let Some(error) = &result.error {
        // There is nobody left to tell if standard error is closed.
        let _ = std::io::stderr().flush();
        complain(&format!("{} ({})", error, result.status));
    }
}
