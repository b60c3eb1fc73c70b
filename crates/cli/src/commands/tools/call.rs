//! `plaincall tools call`: one tool, by hand.

use std::io::Write as _;
use std::sync::Arc;

use clap::Args;
use plaincall::{CallResult, Canceller, Run, Stop, TurnResults};
use plaincall_call::{Document, Segment, ToolSpec, flatten_call};
use plaincall_syntax::{Call, Dialect, render};
use serde_json::Value;
use tokio::sync::mpsc::channel;

use crate::commands::tools::SourceOptions;
use crate::config::parts::Equipment;
use crate::environment::Environment;
use crate::options::Color;
use crate::output::Output;
use crate::run::approval::Approval;
use crate::run::desk::Desk;
use crate::run::interrupts::Interrupts;
use crate::runtime::block_on;
use crate::status::{Failure, KEEP_FILES, Outcome, Status, complain, tell_removed};
use crate::text::input::Input;

/// How many pieces of news wait to be passed over.
const WAITING: usize = 16;

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
///
/// # Errors
/// What keeps it from calling the tool.
pub(super) fn call(options: &CallOptions, color: Color) -> Outcome {
    let environment = Environment::read();
    let given = match &options.name {
        Some(_) => None,
        None => Some(one_call()?),
    };
    let results = match block_on(called(options, given, environment))? {
        Called::Results(results) => results,
        Called::AtOnce(status) => return Ok(Status::Interrupted(status)),
    };
    let status = tell(&results.0, color)?;
    Ok(results.1.map_or(status, Status::Interrupted))
}

enum Called {
    /// The results, and the exit status of a signal that called it off.
    Results((TurnResults, Option<u8>)),
    /// A second signal came.
    AtOnce(u8),
}

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
        interrupt = interrupts.next() => return Ok(Called::AtOnce(interrupt.status())),
    };
    let (dialect, text) = match (given, &options.name) {
        (Some(text), _) => (Dialect::default(), text),
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            let spec = toolbox.get(name).map(plaincall::Tool::spec);
            let dialect = Dialect::block().escaped();
            let text = written(options, name, spec, &dialect)?;
            (dialect, text)
        }
    };
    // Nothing is shown but what the desk asks, which it writes on the terminal itself.
    let (news, mut passed_over) = channel(WAITING);
    tokio::spawn(async move { while passed_over.recv().await.is_some() {} });
    let desk = Arc::new(Desk::new(news, false, false, &environment));
    desk.open();
    let gate = Approval::of_talk(
        options.yes,
        rules.clone(),
        toolbox.clone(),
        None,
        Arc::clone(&desk),
    );
    let mut run = Run::builder(toolbox)
        .dialect(dialect)
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
    desk.set_quit(move || quit.cancel());
    let ended = finished(&mut run, &text, &mut interrupts, &canceller).await;
    desk.close();
    let (results, first) = match ended {
        Ok(ended) => ended,
        Err(status) => return Ok(Called::AtOnce(status)),
    };
    tell_removed(run.close().await, KEEP_FILES);
    if let Some(servers) = servers {
        servers.close().await;
    }
    Ok(Called::Results((results, first)))
}

/// The results, and the exit status of a signal that called the turn off; `Err` with that of a second one.
async fn finished(
    run: &mut Run,
    text: &str,
    interrupts: &mut Interrupts,
    canceller: &Canceller,
) -> Result<(TurnResults, Option<u8>), u8> {
    let mut turn = run.turn();
    turn.feed(text);
    let mut finishing = std::pin::pin!(turn.finish(Stop::Natural));
    let mut first = None;
    loop {
        tokio::select! {
            results = &mut finishing => return Ok((results, first)),
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

/// The call as a model would write it.
fn written(
    options: &CallOptions,
    name: &str,
    spec: Option<&ToolSpec>,
    dialect: &Dialect,
) -> Result<String, Failure> {
    let pairs = match &options.json {
        Some(json) => from_json(json, spec)?,
        None => from_words(&options.arguments)?,
    };
    let call = Call::Block {
        name,
        id: None,
        dependencies: Vec::new(),
        arguments: pairs
            .iter()
            .map(|(pointer, text)| (pointer.as_str(), text.as_str()))
            .collect(),
    };
    render(&call, dialect)
        .map_err(|error| Failure::Usage(format!("no call can be written: {error}")))
}

fn from_words(words: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pairs = words.iter().map(|word| {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "`{word}` is no argument: write it as NAME=VALUE, such as `path=src/main.rs`"
            ))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

fn from_json(json: &str, spec: Option<&ToolSpec>) -> Result<Vec<(String, String)>, Failure> {
    let wrong = |what: String| Failure::Usage(format!("`--json`: {what}"));
    let value: Value = serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    let Value::Object(object) = value else {
        return Err(wrong(
            "write an object, such as {\"path\": \"a.txt\"}".to_owned(),
        ));
    };
    // Of a tool that is not there nothing is known; that is what will be said.
    match spec {
        None => Ok(Vec::new()),
        Some(spec) => flatten_call(&object, spec).map_err(wrong),
    }
}

/// Prints what came of it.
fn tell(results: &TurnResults, color: Color) -> Outcome {
    let mut output = Output::new(color);
    let Some(result) = results.iter().next() else {
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
    Ok(if results.all_ok() {
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
