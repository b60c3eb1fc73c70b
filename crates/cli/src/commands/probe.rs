//! `plaincall probe`: whether Plaincall helps a model, measured.

mod cases;
mod recommendation;
mod recorded;
mod subject;
mod table;

use std::borrow::Cow;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use anstyle::Style;
use clap::Args;
use clap::builder::PossibleValuesParser;
use plaincall::names::nearest_name;
use plaincall_config::Time;
use plaincall_probe::{
    Arm, Attempt, Probe, Probing, Settings, SharedResult, TIMED_OUT, Task, Verdict, tasks,
};
use tokio::time::sleep;

use crate::commands::probe::recorded::Recorded;
use crate::commands::probe::subject::{Given, Subject};
use crate::environment::Environment;
use crate::options::{Color, FileOptions, ToolsOption};
use crate::output::{Output, is_quiet, write_stderr};
use crate::runtime::block_on;
use crate::sanitize::sanitize;
use crate::status::{Failure, Outcome, Status, columns, print_error, print_note};
use crate::terminal::human;
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::line::Line;
use crate::terminal::tty::Size;

/// The time of `--quick`: under two minutes with start and end.
const QUICK: Duration = Duration::from_secs(100);
/// The longest attempt of `--quick`.
const QUICK_ATTEMPT: Duration = Duration::from_secs(10);
/// The longest reply of `--quick` and `--cases`, in tokens, so that a reply without an end does not take the time of all others.
const SHORT_REPLY: Option<NonZeroU32> = NonZeroU32::new(512);
/// How long the first attempt may take before a note explains it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The note below the table of `--quick`.
const QUICK_NOTE: &str = "`--quick` runs no task with the agent-sized prompt (24 tools, 60 kB).\n";
/// The note if an interrupt comes first.
const NO_RESULTS: &str = "no attempt has ended, so there are no results";
/// The word that lists the tasks.
const LIST: &str = "list";

/// Measure whether Plaincall helps a model.
///
/// The model gets tasks of seven levels, from one call to forty that are hard for tool calls. It tries each several times with each
/// way of calling tools ("arm"): the server's native tool calls (`native`), JSON described in the prompt (`json`), Plaincall's
/// syntaxes (`block`, `emoji`), and if the server accepts one, the block syntax with a grammar (`block-grammar`). If no arm solves half
/// of the first levels, arms with few-shot examples join (`json-examples`, `block-examples`, `emoji-examples`, and the last two with a
/// grammar). All arms get the same tasks, tools, simulated world, limits and seed. A task is correct if the simulated world has changed
/// exactly as requested and the answer contains the facts that only the results reveal. No model rates the answers. The tools change
/// only the simulation: they write no files and send no data.
///
/// The next level begins while an arm solves a tenth of a level. An arm stops when its interval is below that of the best one.
///
/// At the end, `probe` prints a table with 95 % confidence intervals and a recommendation: a configuration for
/// Plaincall, or "keep native". Two arms differ only if their intervals do not overlap. Ctrl-C ends the comparison early
/// and prints the results so far; with `--record`, the same command continues later.
///
/// A full comparison has at most 768 attempts, 960 with a grammar, twice as many with few-shot examples, and may take hours on a slow machine. `--quick` takes less than two minutes,
/// skips the tasks with an agent-sized prompt, and gives a first impression.
///
/// With `--tools FILE --cases FILE`, it compares settings for your own tools and questions instead, and prints them as a table of a
/// configuration.
///
/// Further arms: `block-keyed` and `emoji-keyed` have a random key in the markers, so that untrusted text cannot contain
/// one; `block-angle` has the markers `<<<START:`, `<<<END:` and `@param:`.
///
/// The temperature, the limit of a reply and the seed come from the table of the model: with `extra = { seed = 1 }`, each further
/// repetition adds 1 to the seed.
///
/// Exit status: 0 with a recommendation; 1 if the model solved no task with calls or its server cannot be reached; 2
/// for wrong usage; 130 after Ctrl-C.
#[derive(Args, Debug)]
pub(crate) struct ProbeOptions {
    /// The base URL of a server with OpenAI's API, up to `/v1` (its API key is read from `PLAINCALL_KEY`), or the name of a model:
    /// `NAME` of a `[models.NAME]` table, `ollama:ID`, `openai:ID`, `anthropic:ID`, `replay:FILE`, or `reference:ARM` for
    /// a scripted model that calls tools correctly in one arm. Default: `model` in the configuration.
    #[arg(value_name = "URL|NAME")]
    address: Option<String>,

    /// The model id that the server uses. Required with a URL.
    #[arg(value_name = "MODEL")]
    model: Option<String>,

    /// The arms to compare, separated by commas. Default: `native,json,block,emoji`, `block-grammar` if the server is llama.cpp, vLLM
    /// or SGLang, or `constrain` in the table of the model names its engine, and those with examples if the model needs them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = arm_names())]
    arms: Vec<String>,

    /// The tasks or kinds of tasks to run, separated by commas; `list` prints them and exits. Default: all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tasks: Vec<String>,

    /// Compare settings with your own questions instead of the tasks. Each line of the file is a JSON object with a `question`
    /// and the right `calls`, each with `tool` and `arguments`; none if no call is right. No tool is run. Half of the questions
    /// choose the syntax, the number of examples and whether a grammar helps; the others show the result.
    #[arg(long, value_name = "FILE", requires = "tools", conflicts_with_all = ["arms", "tasks", "repeat", "quick", "record", "concurrency"])]
    cases: Option<PathBuf>,

    /// How many times to try each task with each arm.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Stop after at most 100 seconds. Runs as many tasks as fit, each once, and none with the agent-sized prompt. An attempt takes at
    /// most 10 seconds, and a reply has at most 512 tokens, in the easy levels 128 unless the model reasons.
    #[arg(long, conflicts_with_all = ["repeat", "record"])]
    quick: bool,

    /// Write each finished attempt with its transcript to this file, as one line of JSON. If the file exists, continue
    /// the comparison that it contains.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Print the result as one JSON object that can be shared: figures, versions and settings, but no addresses,
    /// keys or model output.
    #[arg(long)]
    json: bool,

    /// Merge the recommended settings into this configuration file, which need not exist.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Run at most this many attempts at the same time.
    #[arg(long, value_name = "N", default_value = "1")]
    concurrency: NonZeroUsize,

    /// The time limit per attempt: seconds, or a number with `ms`, `s`, `m` or `h`.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    timeout: Time,

    #[command(flatten)]
    tools: ToolsOption,

    #[command(flatten)]
    files: FileOptions,
}

fn arm_names() -> PossibleValuesParser {
    let arms = Arm::all().into_iter();
    arms.map(|arm| clap::builder::PossibleValue::new(arm.name).help(arm.about))
        .into()
}

pub(crate) fn probe(options: &ProbeOptions, color: Color) -> Outcome {
    let mut output = Output::new(color);
    if options.tasks.iter().any(|name| name == LIST) {
        output.text(format_args!("{}", table::task_list(&tasks())))?;
        output.flush()?;
        return Ok(Status::Success);
    }
    let tasks = chosen_tasks(&options.tasks)?;
    let given = Given {
        address: options.address.as_deref(),
        model: options.model.as_deref(),
        max_tokens: SHORT_REPLY.filter(|_| options.quick || options.cases.is_some()),
        files: &options.files,
    };
    let mut subject = Subject::new(&given, &Environment::read())?;
    if options.write.is_some() && subject.is_reference() {
        let message =
            "`--write` requires a real model: a configuration cannot select a scripted one";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(file) = &options.cases {
        return cases::compare(file, options, subject, &mut output);
    }
    if !options.tools.tools.is_empty() {
        let message = "`--tools` requires `--cases FILE`, the questions for these tools";
        return Err(Failure::Usage(message.to_owned()));
    }
    block_on(async {
        let mut interrupts = Interrupts::new()?;
        let (arms, reserve) = tokio::select! {
            arms = chosen_arms(options, &mut subject) => arms?,
            interrupt = interrupts.next() => {
                print_note(NO_RESULTS);
                return Ok(Status::Interrupted(interrupt.status()));
            }
        };
        let settings = subject.settings(options.timeout.0);
        let record = options.record.as_deref();
        let mut recorded = record
            .map(|path| Recorded::open(path, &subject.id, &settings))
            .transpose()?;
        let mut probe = Probe::new(subject.model.clone())
            .arms(arms)
            .reserve(reserve)
            .reply_tokens(subject.max_tokens.map(NonZeroU32::get))
            .tasks(tasks.clone())
            .repeat(if options.quick { 1 } else { options.repeat })
            .concurrent(options.concurrency.get())
            .time(if options.quick {
                options.timeout.0.min(QUICK_ATTEMPT)
            } else {
                options.timeout.0
            })
            .seed(settings.seed);
        if options.quick {
            probe = probe.budget(QUICK);
        }
        if let Some(recorded) = &mut recorded {
            let earlier = std::mem::take(&mut recorded.attempts);
            if !earlier.is_empty() {
                let recorded = human::count(earlier.len(), "recorded attempt");
                print_note(&format!("continuing after {recorded}"));
            }
            probe = probe.finished(earlier);
        }
        let mut probing = probe.begin();
        if let Some(plan) = plan(&probing, options, &subject.id) {
            print_note(&plan);
        }
        let interrupt = follow(
            &mut probing,
            recorded.as_mut(),
            &mut interrupts,
            options.quick,
        )
        .await?;
        let finished = Finished {
            options,
            tasks: &tasks,
            subject: &subject,
            settings,
            probing: &probing,
        };
        finished.print(interrupt, &mut output)
    })
}

/// The arms of the options. By default those with a grammar are among them if the server accepts one.
/// Returns those that are tried at once, and those in reserve.
async fn chosen_arms(
    options: &ProbeOptions,
    subject: &mut Subject,
) -> Result<(Vec<Arm>, Vec<Arm>), Failure> {
    let names = &options.arms;
    let is_chosen = |arm: &Arm| match names.as_slice() {
        [] => arm.is_default || arm.has_grammar() || arm.has_examples(),
        names => names.iter().any(|name| name == arm.name),
    };
    let arms = Arm::all().into_iter().filter(is_chosen);
    let mut arms: Vec<Arm> = arms
        .map(|arm| match subject.entry.self_closing {
            Some(true) => arm.self_closing(),
            _ => arm,
        })
        .collect();
    if let Some(arm) = arms.iter().find(|arm| arm.has_grammar())
        && let Some(reason) = subject.accept_grammars().await?
    {
        let name = arm.name;
        if !names.is_empty() {
            return Err(Failure::Configuration(format!(
                "the arm `{name}` cannot be tried: {reason}"
            )));
        }
        if !subject.is_reference() {
            print_note(&format!("without the arm {name}: {reason}"));
        }
        arms.retain(|arm| !arm.has_grammar());
    }
    let is_reserve = |arm: &Arm| names.is_empty() && arm.has_examples();
    let (reserve, arms) = arms.into_iter().partition(is_reserve);
    Ok((arms, reserve))
}

/// The tasks of these names or kinds.
fn chosen_tasks(names: &[String]) -> Result<Vec<Task>, Failure> {
    let mut all = tasks();
    let is_named = |task: &Task, name: &str| task.name == name || task.kind == name;
    if let Some(unknown) = names
        .iter()
        .find(|name| !all.iter().any(|task| is_named(task, name)))
    {
        let near = nearest_name(unknown, all.iter().map(|task| task.name.as_str()));
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        return Err(Failure::Usage(format!(
            "unknown task `{unknown}`{}; `--tasks list` lists them",
            near.unwrap_or_default()
        )));
    }
    if !names.is_empty() {
        all.retain(|task| names.iter().any(|name| is_named(task, name)));
    }
    Ok(all)
}

/// Describes the attempts that begin. None if all have ended.
fn plan(probing: &Probing, options: &ProbeOptions, model: &str) -> Option<String> {
    let amount = match probing.total() - probing.finished() {
        _ if options.quick => format!("for at most {} seconds", QUICK.as_secs()),
        0 => return None,
        attempts => format!("in {}", human::count(attempts, "attempt")),
    };
    Some(format!(
        "comparing ways to call tools with {model}, {amount}; Ctrl-C prints the results so far"
    ))
}

/// Waits for all attempts, records them, and prints a line for each. Returns the signal that cancelled them.
async fn follow(
    probing: &mut Probing,
    mut recorded: Option<&mut Recorded>,
    interrupts: &mut Interrupts,
    is_quick: bool,
) -> Result<Option<Interrupt>, Failure> {
    let first = probing.finished();
    let slow = sleep(PATIENCE);
    tokio::pin!(slow);
    loop {
        let attempt = tokio::select! {
            attempt = probing.next() => match attempt {
                Some(attempt) => attempt,
                None => return Ok(None),
            },
            interrupt = interrupts.next() => return Ok(Some(interrupt)),
            () = &mut slow, if !slow.is_elapsed() => {
                if probing.finished() == first {
                    print_note("the first attempt is still running; the server may be loading the model");
                }
                continue;
            }
        };
        if let Some(recorded) = &mut recorded {
            recorded.add(&attempt)?;
        }
        // The error that ends the comparison is printed once, at its end.
        if !is_quiet() && probing.error().is_none() {
            write_stderr(format_args!("{}\n", progress(probing, &attempt, is_quick)));
        }
    }
}

/// Formats the line of an attempt, on a terminal in one row. A quick comparison runs as many tasks as fit into its time, so their number is unknown.
fn progress(probing: &Probing, attempt: &Attempt, is_quick: bool) -> String {
    let outcome = match &attempt.why {
        None if attempt.repaired() > 0 => "correct, repaired".to_owned(),
        None => "correct".to_owned(),
        Some(why) if attempt.is_server_failure => format!("server error: {}", sanitize(why)),
        Some(why) => format!("wrong: {}", sanitize(why)),
    };
    let left = probing.time_left().filter(|left| !left.is_zero());
    let bound = if is_quick { "at most" } else { "about" };
    let left = left.map_or(String::new(), |left| {
        format!(" ({bound} {} left)", table::duration(left))
    });
    let total = if is_quick {
        String::new()
    } else {
        format!("/{}", probing.total())
    };
    let (finished, arm, task) = (probing.finished(), &attempt.arm, &attempt.task);
    let mut line = format!("{finished}{total} {arm} {task}: {outcome}");
    if let Some(width) = columns() {
        let room = width.saturating_sub(left.len());
        let row = Line::of(Style::new(), &line).truncate(room, "…");
        line.clear();
        row.write(&mut line, false);
    }
    line + &left
}

/// Returns a text that is wrapped between words if the output is a terminal. Lines of a configuration are short.
fn on_terminal<'t>(text: &'t str, output: &Output) -> Cow<'t, str> {
    if !output.is_terminal {
        return Cow::Borrowed(text);
    }
    let width = Size::of_standard_output().columns.saturating_sub(1);
    Cow::Owned(human::wrap(text, 0, width))
}

fn is_timed_out(attempt: &Attempt) -> bool {
    attempt.why.as_deref() == Some(TIMED_OUT)
}

/// A comparison that has ended.
struct Finished<'f> {
    options: &'f ProbeOptions,
    tasks: &'f [Task],
    subject: &'f Subject,
    settings: Settings,
    probing: &'f Probing,
}

impl Finished<'_> {
    fn print(self, interrupt: Option<Interrupt>, output: &mut Output) -> Outcome {
        let Self {
            options,
            tasks,
            subject,
            probing,
            settings,
        } = self;
        let report = probing.report();
        let error = probing.error().map(|error| error.message.clone());
        let has_results = report.arms.iter().any(|arm| arm.attempts > 0);
        let repetitions = if options.quick { 1 } else { options.repeat };
        let is_complete = probing.is_complete()
            && interrupt.is_none()
            && !options.quick
            && options.tasks.is_empty();
        let shared = SharedResult::new(
            &report,
            &subject.id,
            None,
            settings,
            repetitions,
            is_complete,
        );
        let recommendation = recommendation::recommendation(&report, subject, repetitions);
        if options.json && has_results {
            output.text(format_args!("{}", shared.to_json()))?;
        } else if has_results {
            output.text(format_args!("{}", table::table(&report, tasks)))?;
            if options.quick {
                output.text(format_args!("\n{QUICK_NOTE}"))?;
            }
            let recommendation = on_terminal(&recommendation, output);
            output.text(format_args!("\n{recommendation}"))?;
        }
        output.flush()?;
        if let Some(file) = &options.write
            && interrupt.is_none()
            && error.is_none()
        {
            match recommendation::settings(&report, subject) {
                Some(settings) => recommendation::write(file, &settings, subject)?,
                None => print_note("no settings are recommended, so nothing was written"),
            }
        }
        match (interrupt, error) {
            (Some(interrupt), _) => {
                if !has_results {
                    print_note(NO_RESULTS);
                }
                Ok(Status::Interrupted(interrupt.status()))
            }
            (None, Some(error)) => Err(Failure::Runtime(error)),
            (None, None) if !has_results => {
                let advice =
                    "no task ended with every arm within 100 seconds; run it without `--quick`";
                Err(Failure::Runtime(advice.to_owned()))
            }
            (None, None) if options.quick && report.attempts.iter().all(is_timed_out) => {
                let advice = "no attempt ended within 10 seconds; run it without `--quick`";
                Err(Failure::Runtime(advice.to_owned()))
            }
            (None, None) if report.verdict == Verdict::Nothing => {
                print_error(
                    "the model solved no task with calls, with any arm; its context window may be too small, or it is too weak for tools",
                );
                Ok(Status::Failed)
            }
            (None, None) => Ok(Status::Success),
        }
    }
}
