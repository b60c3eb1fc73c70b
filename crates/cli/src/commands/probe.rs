//! `plaincall probe`: measure how well a model writes calls.

mod table;

use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use plaincall::call::Unclosed;
use plaincall_agent::probe::{Probe, ProbeReport, Probing, Style, StyleReport, tasks};
use plaincall_config::{Api, Model, Syntax, Time};
use serde_json::json;

use crate::environment::Environment;
use crate::options::Color;
use crate::output::{Output, write_stderr};
use crate::runtime::block_on;
use crate::sanitize::sanitize;
use crate::settings::Chosen;
use crate::status::{Failure, Outcome, Status, print_error};
use crate::terminal::interrupts::{Interrupt, Interrupts};

/// Measure how well a model writes calls, and in which syntax.
///
/// The model gets twelve tasks of increasing difficulty, several times in each dialect: one call, many arguments, code
/// as a value, nested arguments, dependent calls, results to act on, a marker in a value and more. A task passes if the
/// tools were called exactly as requested and the answer contains what only their results reveal. No model judges the
/// answers. The tools do nothing: they write no files and send no data.
///
/// At the end, `probe` prints a table and a recommended configuration. Ctrl-C ends it early, with the results so far.
/// The dialects are `block`, `block-keyed` (with a random key in the markers, so that untrusted text cannot contain
/// one), `block-angle` (the markers `<<<START:`, `<<<END:` and `@param:`), `emoji` and `emoji-keyed`.
///
/// Exit status: 0 with a recommendation; 1 if the model solved no task with calls or its server cannot be reached; 2
/// for wrong usage; 130 after Ctrl-C.
#[derive(Args, Debug)]
pub(crate) struct ProbeOptions {
    /// The base URL of the model server, up to `/v1`. Its API key is read from `PLAINCALL_KEY`.
    #[arg(value_name = "URL")]
    url: String,

    /// The model id that the server uses.
    #[arg(value_name = "MODEL")]
    model: String,

    /// The API of the server. Default: `openai`.
    #[arg(long, value_name = "KIND")]
    kind: Option<Api>,

    /// How many times to try each task in each dialect.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// The tasks to run, separated by commas. Default: all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = task_names())]
    tasks: Vec<String>,

    /// The dialects to test, separated by commas. Default: all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = style_names())]
    dialects: Vec<String>,

    /// Run at most this many tasks at the same time.
    #[arg(long, value_name = "N", default_value = "1")]
    concurrency: NonZeroUsize,

    /// The sampling temperature. Default: the server's.
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,

    /// The maximum number of tokens per reply.
    #[arg(long, value_name = "N")]
    max_tokens: Option<NonZeroU32>,

    /// The time limit per task: seconds, or a number with `ms`, `s`, `m` or `h`.
    #[arg(long, value_name = "TIME", default_value = "5m")]
    timeout: Time,

    /// Print all measurements as one JSON object.
    #[arg(long)]
    json: bool,
}

fn task_names() -> PossibleValuesParser {
    let tasks = tasks().into_iter();
    tasks
        .map(|task| PossibleValue::new(task.name).help(task.about))
        .into()
}

fn style_names() -> PossibleValuesParser {
    Style::all().into_iter().map(|style| style.name).into()
}

pub(crate) fn probe(options: &ProbeOptions, color: Color) -> Outcome {
    let environment = Environment::read();
    let is_selected =
        |names: &[String], name| names.is_empty() || names.iter().any(|it| it == name);
    let mut styles = Style::all();
    styles.retain(|style| is_selected(&options.dialects, style.name));
    let mut tasks = tasks();
    tasks.retain(|task| is_selected(&options.tasks, task.name));
    let mut chosen = Chosen::from_options(&options.url, Some(&options.model), options.kind);
    chosen.entry.temperature = options.temperature;
    chosen.entry.max_tokens = options.max_tokens;
    let model = chosen.ready(&environment)?.model;
    let probe = Probe::new(model)
        .styles(styles)
        .tasks(tasks)
        .repeat(options.repeat)
        .concurrent(options.concurrency.get())
        .time(options.timeout.0);
    block_on(async {
        let mut interrupts = Interrupts::new()?;
        let mut probing = probe.begin();
        let interrupt = follow(&mut probing, &mut interrupts).await;
        print_report(options, &probing, interrupt, &mut Output::new(color))
    })
}

/// Prints the outcome of each trial until all have ended. Returns the signal that cancelled them, if any.
async fn follow(probing: &mut Probing, interrupts: &mut Interrupts) -> Option<Interrupt> {
    let total = probing.total();
    let mut done = 0;
    loop {
        let trial = tokio::select! {
            trial = probing.next() => trial?,
            interrupt = interrupts.next() => return Some(interrupt),
        };
        done += 1;
        let outcome = match &trial.why {
            None if trial.repairs > 0 => "right, repaired".to_owned(),
            None => "right".to_owned(),
            Some(why) => format!("wrong: {}", sanitize(why)),
        };
        write_stderr(format_args!(
            "{done}/{total} {} {}: {outcome}\n",
            trial.style, trial.task
        ));
    }
}

fn print_report(
    options: &ProbeOptions,
    probing: &Probing,
    interrupt: Option<Interrupt>,
    output: &mut Output,
) -> Outcome {
    let report = probing.report();
    let error = probing.error().map(|error| error.message.clone());
    let configuration = report.best().map(|best| configuration(options, best));
    if options.json {
        output.json_line(&json!({
            "url": options.url,
            "model": options.model,
            "repeat": options.repeat,
            "complete": report.trials.len() == probing.total(),
            "error": error,
            "configuration": configuration,
            "report": report,
        }))?;
    } else if !report.trials.is_empty()
        && report.trials.iter().any(|trial| !trial.is_server_failure)
    {
        output.text(format_args!("{}", table::table(&report)))?;
        output.text(format_args!(
            "{}",
            recommendation(&report, configuration.as_deref())
        ))?;
    }
    output.flush()?;
    match (interrupt, error, report.best()) {
        (Some(interrupt), ..) => Ok(Status::Interrupted(interrupt.status())),
        (None, Some(error), _) => Err(Failure::Runtime(error)),
        (None, None, Some(_)) => Ok(Status::Success),
        (None, None, None) => {
            print_error("the model solved no task with calls, in any dialect");
            Ok(Status::Failed)
        }
    }
}

/// Formats the recommended dialect and its failures.
fn recommendation(report: &ProbeReport, configuration: Option<&str>) -> String {
    let (Some(best), Some(configuration)) = (report.best(), configuration) else {
        return String::new();
    };
    let mut text = String::new();
    let trials = report
        .trials
        .iter()
        .filter(|trial| trial.style == best.style.name);
    let mut failures: Vec<String> = trials
        .filter_map(|trial| Some(format!("  {}: {}\n", trial.task, trial.why.as_ref()?)))
        .collect();
    failures.dedup();
    if !failures.is_empty() {
        let (name, failures) = (best.style.name, failures.concat());
        let _ = write!(text, "\nFailures with {name}:\n{failures}");
    }
    let warning = if best.right * 2 < best.trials {
        " It is the best result, but not a good one: this model is weak with tools."
    } else {
        ""
    };
    if best.forgets_end_markers() {
        let _ = write!(
            text,
            "\nThe model forgets end markers: {} of its {} calls were rejected for that reason alone.\n",
            best.unclosed, best.calls
        );
    }
    text + &format!(
        "\nRecommended: {}.{warning} Configuration:\n\n{configuration}",
        best.style.name
    )
}

/// Formats the model with this dialect as a table of a configuration file.
fn configuration(options: &ProbeOptions, report: &StyleReport) -> String {
    let style = &report.style;
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let model = &options.model;
    let name = if !model.is_empty() && model.bytes().all(is_bare) {
        model.clone()
    } else {
        quoted(model)
    };
    let [start, end, argument] = match style.markers {
        Some(markers) => markers.map(|marker| Some(marker.to_owned())),
        None => [None, None, None],
    };
    let entry = Model {
        model: Some(model.clone()),
        kind: options.kind.filter(|kind| *kind == Api::Anthropic),
        syntax: Some(if style.is_emoji {
            Syntax::Emoji
        } else {
            Syntax::Block
        }),
        start_prefix: start,
        end_prefix: end,
        arg_prefix: argument,
        keyed: style.keyed.then_some(true),
        unclosed: report.forgets_end_markers().then_some(Unclosed::Run),
        temperature: options.temperature,
        max_tokens: options.max_tokens,
        ..Model::default()
    };
    let entry = toml::to_string(&entry).unwrap_or_default();
    // `Model` does not serialize URLs, because they may contain secrets; this one is from the command line.
    let url = quoted(&options.url);
    format!("[models.{name}]\nurl = {url}\n{entry}")
}
