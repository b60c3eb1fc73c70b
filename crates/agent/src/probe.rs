//! How well a model writes calls, measured: twelve tasks of rising difficulty, in each syntax and style of markers.
//!
//! No model judges: a task is right if its tools were really called with what was asked for, and if the answer holds what
//! only their results could tell.

mod report;
mod tasks;
mod world;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plaincall::syntax::Syntax;
use plaincall::{Dialect, Toolbox};
use serde::Serialize;
use tokio::task::JoinSet;

pub use report::{ProbeReport, StyleReport};
pub use tasks::{Task, tasks};

use crate::agent::Agent;
use crate::answer::AgentErrorKind;
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::limits::AgentLimits;
use crate::model::{Model, ModelError, ModelErrorKind, Retries, Usage};
use world::World;

/// How many trials in a row may fail by the model's server before nothing more is tried.
const FAILURES: u32 = 3;
/// The key of keyed markers: always the same, so that a model that is asked the same again can answer the same.
const KEY: &str = "k3v9q2x8";
const SYSTEM: &str =
    "You work with tools. Do exactly what is asked, then answer in one or two sentences.\n";

/// A way of writing calls: a syntax, and its markers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Style {
    /// Its name.
    pub name: &'static str,
    /// Whether it is the emoji-bracket syntax; else it is the block syntax.
    pub is_emoji: bool,
    /// Start, end and argument marker of the block syntax, if they are not its own.
    pub markers: Option<[&'static str; 3]>,
    /// Whether the markers hold a random key.
    pub keyed: bool,
}

impl Style {
    /// The styles that are tried: both syntaxes, with and without a key, and the block syntax with other markers.
    pub fn all() -> Vec<Self> {
        let style = |name, is_emoji, markers, keyed| Self {
            name,
            is_emoji,
            markers,
            keyed,
        };
        vec![
            style("block", false, None, false),
            style("block-keyed", false, None, true),
            style(
                "block-angle",
                false,
                Some(["<<<START:", "<<<END:", "@param:"]),
                false,
            ),
            style("emoji", true, None, false),
            style("emoji-keyed", true, None, true),
        ]
    }

    /// The task in the words of this style.
    fn task(&self, task: Task) -> Task {
        let syntax = if self.is_emoji {
            Syntax::Emoji
        } else {
            Syntax::Block
        };
        task.with_marker(&self.dialect().end_marker(syntax))
    }

    /// What the model is taught. Thoughts between `<think>` and `</think>` hold no calls.
    pub fn dialect(&self) -> Dialect {
        let mut dialect = if self.is_emoji {
            Dialect::emoji()
        } else {
            Dialect::block()
        };
        if let Some([start, end, argument]) = self.markers {
            dialect = dialect.start(start).end(end).arg(argument);
        }
        if self.keyed {
            dialect = dialect.keyed(KEY);
        }
        let [open, close] = Dialect::THINK;
        dialect.leading_reasoning(open, close).escaped()
    }
}

/// What came of one task, tried once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// The name of the [`Style`].
    pub style: &'static str,
    /// The name of the [`Task`].
    pub task: &'static str,
    /// Which time it was, from 1.
    pub repetition: u32,
    /// Whether all was done that was asked for, and nothing else.
    pub is_right: bool,
    /// What was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many calls the model has written.
    pub calls: u32,
    /// How many of them could be run as they were written.
    pub well_formed: u32,
    /// How many of the others were rejected only because they have no end marker.
    pub unclosed: u32,
    /// How often the model was told what is wrong with its calls.
    pub repairs: u32,
    /// How many replies it has written.
    pub turns: u32,
    /// What they cost.
    pub usage: Usage,
    /// Whether that is an estimate, since the model's server does not count.
    pub is_usage_estimated: bool,
    /// Whether it ended because the model's server failed.
    pub is_server_failure: bool,
}

/// What is tried with a model.
///
/// ```
/// use plaincall_agent::Scripted;
/// use plaincall_agent::probe::Probe;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // A model that calls no tools.
/// let model = Scripted::with(|_, _| "The answer is 12.".into());
/// let mut probing = Probe::new(model).begin();
/// while probing.next().await.is_some() {}
/// let report = probing.report();
/// assert_eq!(report.styles[0].right, 1);
/// assert_eq!(report.styles[0].trials, 12);
/// # }
/// ```
pub struct Probe {
    model: Arc<dyn Model>,
    styles: Vec<Style>,
    tasks: Vec<Task>,
    repeat: u32,
    concurrent: usize,
    time: Duration,
    retries: Retries,
}

impl Probe {
    /// All tasks in all styles, once each, one after the other, five minutes each at most.
    pub fn new(model: impl Model) -> Self {
        Self {
            model: Arc::new(model),
            styles: Style::all(),
            tasks: tasks(),
            repeat: 1,
            concurrent: 1,
            time: Duration::from_mins(5),
            retries: Retries::default(),
        }
    }

    /// Tries only these styles.
    pub fn styles(mut self, styles: impl IntoIterator<Item = Style>) -> Self {
        self.styles = styles.into_iter().collect();
        self
    }

    /// Tries only these tasks.
    pub fn tasks(mut self, tasks: impl IntoIterator<Item = Task>) -> Self {
        self.tasks = tasks.into_iter().collect();
        self
    }

    /// Tries each so often.
    pub fn repeat(mut self, times: u32) -> Self {
        self.repeat = times;
        self
    }

    /// Tries so many at the same time.
    pub fn concurrent(mut self, count: usize) -> Self {
        self.concurrent = count.max(1);
        self
    }

    /// Takes so long for each at most.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// How often the model is asked again that has not begun to answer.
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Begins, on the present tokio runtime, as soon as the first trial is waited for.
    pub fn begin(self) -> Probing {
        let mut waiting = VecDeque::new();
        // So that each style is known a little when it is called off.
        for repetition in 1..=self.repeat {
            for task in 0..self.tasks.len() {
                for style in 0..self.styles.len() {
                    waiting.push_back(Place {
                        style,
                        task,
                        repetition,
                    });
                }
            }
        }
        Probing {
            total: waiting.len(),
            waiting,
            running: JoinSet::new(),
            done: Vec::new(),
            failures: 0,
            error: None,
            probe: self,
        }
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Probe")
            .field("model", &self.model.name())
            .field("styles", &self.styles.len())
            .field("tasks", &self.tasks.len())
            .field("repeat", &self.repeat)
            .finish_non_exhaustive()
    }
}

/// A trial among the others. Their order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    style: usize,
    task: usize,
    repetition: u32,
}

/// A probe that has begun. Dropping it ends what runs.
#[derive(Debug)]
pub struct Probing {
    probe: Probe,
    total: usize,
    waiting: VecDeque<Place>,
    running: JoinSet<(Place, Trial, Option<ModelError>)>,
    done: Vec<(Place, Trial)>,
    /// How many trials in a row the model's server has failed.
    failures: u32,
    error: Option<ModelError>,
}

impl Probing {
    /// The next trial that has ended; `None` when all have, or when the model cannot be asked. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Trial> {
        loop {
            while self.running.len() < self.probe.concurrent
                && let Some(place) = self.waiting.pop_front()
            {
                self.start(place);
            }
            let Ok((place, trial, error)) = self.running.join_next().await? else {
                // It was ended from outside, with the runtime.
                continue;
            };
            self.note(error);
            self.done.push((place, trial.clone()));
            return Some(trial);
        }
    }

    fn start(&mut self, place: Place) {
        let (Some(style), Some(task)) = (
            self.probe.styles.get(place.style),
            self.probe.tasks.get(place.task),
        ) else {
            return;
        };
        let attempt = Attempt {
            model: Arc::clone(&self.probe.model),
            style: style.clone(),
            task: task.clone(),
            time: self.probe.time,
            retries: self.probe.retries,
        };
        self.running.spawn(async move {
            let (trial, error) = attempt.run(place.repetition).await;
            (place, trial, error)
        });
    }

    /// What the server refuses once it refuses always; and what fails again and again will not come.
    fn note(&mut self, error: Option<ModelError>) {
        let Some(error) = error else {
            self.failures = 0;
            return;
        };
        self.failures += 1;
        let is_final = matches!(
            error.kind,
            ModelErrorKind::Refused | ModelErrorKind::Connect | ModelErrorKind::NotRunning
        );
        if is_final || self.failures >= FAILURES {
            self.waiting.clear();
            self.running.abort_all();
            self.error.get_or_insert(error);
        }
    }

    /// How many trials there are, with those that are still to come.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Why the model cannot be asked, if it cannot.
    pub fn error(&self) -> Option<&ModelError> {
        self.error.as_ref()
    }

    /// What is known so far.
    pub fn report(&self) -> ProbeReport {
        let mut done: Vec<&(Place, Trial)> = self.done.iter().collect();
        done.sort_by_key(|(place, _)| *place);
        let trials = done.into_iter().map(|(_, trial)| trial.clone());
        ProbeReport::new(&self.probe.styles, &self.probe.tasks, trials.collect())
    }
}

struct Attempt {
    model: Arc<dyn Model>,
    style: Style,
    task: Task,
    time: Duration,
    retries: Retries,
}

impl Attempt {
    async fn run(self, repetition: u32) -> (Trial, Option<ModelError>) {
        let mut trial = Trial {
            style: self.style.name,
            task: self.task.name,
            repetition,
            is_right: false,
            why: None,
            calls: 0,
            well_formed: 0,
            unclosed: 0,
            repairs: 0,
            turns: 0,
            usage: Usage::default(),
            is_usage_estimated: false,
            is_server_failure: false,
        };
        let world = Arc::new(World::new(self.style.task(self.task.clone())));
        let mut talk = match self.conversation(&world) {
            Ok(talk) => talk,
            Err(words) => {
                trial.why = Some(words);
                return (trial, None);
            }
        };
        let mut asking = talk.stream(&world.task().question);
        while let Some(event) = asking.next().await {
            match event {
                AgentEvent::TurnBegin { .. } => trial.turns += 1,
                AgentEvent::Call { call, .. } => world.appeared(call, trial.turns),
                _ => {}
            }
        }
        let ended = asking.answer().await;
        let (progress, answer, error) = match ended {
            Ok(answer) => (answer.progress, Ok(answer.text), None),
            Err(error) => {
                let words = error.to_string();
                let server = match error.kind {
                    AgentErrorKind::Model(server) => Some(server),
                    _ => None,
                };
                (*error.progress, Err(words), server)
            }
        };
        trial.calls = progress.calls.total();
        trial.well_formed = trial.calls - progress.calls.rejected;
        trial.unclosed = progress.unclosed;
        trial.repairs = progress.repairs;
        trial.usage = progress.usage;
        trial.is_usage_estimated = progress.is_usage_estimated;
        trial.is_server_failure = error.is_some();
        trial.why = match answer {
            Ok(answer) => world.judge(&answer).err(),
            Err(words) => Some(words),
        };
        trial.is_right = trial.why.is_none();
        (trial, error)
    }

    fn conversation(&self, world: &Arc<World>) -> Result<Conversation, String> {
        let tools = Toolbox::new(World::tools(world)).map_err(|error| error.to_string())?;
        let limits = AgentLimits {
            turns: 10,
            calls: 30,
            time: self.time,
            repairs: 3,
            ..AgentLimits::default()
        };
        Agent::builder(Arc::clone(&self.model))
            .tools(tools)
            .dialect(self.style.dialect())
            .system(SYSTEM)
            .limits(limits)
            .retries(self.retries)
            .allow_all()
            .build()
            .and_then(|agent| agent.conversation())
            .map_err(|error| error.to_string())
    }
}
