//! Measures how well a model writes calls: twelve tasks of rising difficulty, in each syntax and style of markers.
//!
//! No model grades the result: a task passes if its tools were called as requested and the answer contains what only their
//! results reveal.

mod report;
mod tasks;
mod world;

use std::collections::VecDeque;
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
use crate::model::{Model, ModelError, ModelErrorKind, Usage};
use world::World;

/// How many trials in a row may fail because of the server before the probe stops.
const FAILURES: u32 = 3;
/// The key of keyed markers. It is fixed, so that results are reproducible.
const KEY: &str = "k3v9q2x8";
const SYSTEM: &str =
    "You work with tools. Do exactly what is asked, then answer in one or two sentences.\n";

/// A way of writing calls: a syntax, and its markers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Style {
    /// Its name.
    pub name: &'static str,
    /// Whether it is the emoji-bracket syntax instead of the block syntax.
    pub is_emoji: bool,
    /// The start, end and argument markers of the block syntax, if not the default.
    pub markers: Option<[&'static str; 3]>,
    /// Whether the markers contain a key.
    pub keyed: bool,
}

impl Style {
    /// Returns all styles: both syntaxes with and without a key, and the block syntax with other markers.
    pub fn all() -> Vec<Self> {
        let angle = ["<<<START:", "<<<END:", "@param:"];
        let styles = [
            ("block", false, None, false),
            ("block-keyed", false, None, true),
            ("block-angle", false, Some(angle), false),
            ("emoji", true, None, false),
            ("emoji-keyed", true, None, true),
        ];
        let styles = styles.map(|(name, is_emoji, markers, keyed)| Self {
            name,
            is_emoji,
            markers,
            keyed,
        });
        styles.into()
    }

    /// The task with the markers of this style.
    fn task(&self, task: Task) -> Task {
        let syntax = if self.is_emoji {
            Syntax::Emoji
        } else {
            Syntax::Block
        };
        task.with_marker(&self.dialect().end_marker(syntax))
    }

    /// Returns the dialect. Reasoning between `<think>` and `</think>` contains no calls.
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

/// The result of one trial of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// The name of the [`Style`].
    pub style: &'static str,
    /// The name of the [`Task`].
    pub task: &'static str,
    /// The repetition, from 1.
    pub repetition: u32,
    /// Whether exactly the requested work was done.
    pub is_right: bool,
    /// The reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The number of calls.
    pub calls: u32,
    /// The number of well-formed calls.
    pub well_formed: u32,
    /// The number of calls rejected only because they have no end marker.
    pub unclosed: u32,
    /// The number of repair messages.
    pub repairs: u32,
    /// The number of replies.
    pub turns: u32,
    /// Their tokens.
    pub usage: Usage,
    /// Whether the usage is an estimate, because the server does not report it.
    pub is_usage_estimated: bool,
    /// Whether the server failed.
    pub is_server_failure: bool,
}

/// A probe of a model.
pub struct Probe {
    model: Arc<dyn Model>,
    styles: Vec<Style>,
    tasks: Vec<Task>,
    repeat: u32,
    concurrent: usize,
    time: Duration,
}

impl Probe {
    /// Creates a probe of all tasks in all styles: once each, one at a time, at most five minutes each.
    pub fn new(model: impl Model) -> Self {
        Self {
            model: Arc::new(model),
            styles: Style::all(),
            tasks: tasks(),
            repeat: 1,
            concurrent: 1,
            time: Duration::from_mins(5),
        }
    }

    /// Sets the styles.
    pub fn styles(mut self, styles: impl IntoIterator<Item = Style>) -> Self {
        self.styles = styles.into_iter().collect();
        self
    }

    /// Sets the tasks.
    pub fn tasks(mut self, tasks: impl IntoIterator<Item = Task>) -> Self {
        self.tasks = tasks.into_iter().collect();
        self
    }

    /// Sets the number of repetitions.
    pub fn repeat(mut self, times: u32) -> Self {
        self.repeat = times;
        self
    }

    /// Sets the number of concurrent trials.
    pub fn concurrent(mut self, count: usize) -> Self {
        self.concurrent = count.max(1);
        self
    }

    /// Sets the time limit of a trial.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Starts on the current tokio runtime when it is first polled.
    pub fn begin(self) -> Probing {
        let (styles, tasks) = (self.styles.len(), self.tasks.len());
        // In this order, a cancelled probe has results for each style.
        let waiting = (1..=self.repeat).flat_map(move |repetition| {
            let places =
                (0..tasks).flat_map(move |task| (0..styles).map(move |style| (style, task)));
            places.map(move |(style, task)| Place {
                style,
                task,
                repetition,
            })
        });
        let waiting: VecDeque<Place> = waiting.collect();
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

/// The position of a trial in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    style: usize,
    task: usize,
    repetition: u32,
}

/// A running probe. Dropping it cancels the trials.
pub struct Probing {
    probe: Probe,
    total: usize,
    waiting: VecDeque<Place>,
    running: JoinSet<(Place, Trial, Option<ModelError>)>,
    done: Vec<(Place, Trial)>,
    /// How many trials in a row failed because of the server.
    failures: u32,
    error: Option<ModelError>,
}

impl Probing {
    /// Returns the next finished trial; `None` after the last, or if the server fails. Cancel safe.
    pub async fn next(&mut self) -> Option<Trial> {
        loop {
            while self.running.len() < self.probe.concurrent
                && let Some(place) = self.waiting.pop_front()
            {
                self.start(place);
            }
            let Ok((place, trial, error)) = self.running.join_next().await? else {
                // The runtime shut down.
                continue;
            };
            self.note(error);
            self.done.push((place, trial.clone()));
            return Some(trial);
        }
    }

    fn start(&mut self, place: Place) {
        let Probe { styles, tasks, .. } = &self.probe;
        let (Some(style), Some(task)) = (styles.get(place.style), tasks.get(place.task)) else {
            return;
        };
        let trial = Trial {
            style: style.name,
            task: task.name,
            repetition: place.repetition,
            ..Trial::default()
        };
        let world = Arc::new(World::new(style.task(task.clone())));
        let conversation = conversation(&self.probe, style, &world);
        self.running.spawn(async move {
            let (trial, error) = run(trial, conversation, &world).await;
            (place, trial, error)
        });
    }

    /// Stops the probe after a permanent error, or after repeated failures.
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

    /// Returns the number of all trials, including pending ones.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the error that stopped the probe.
    pub fn error(&self) -> Option<&ModelError> {
        self.error.as_ref()
    }

    /// Returns the report so far.
    pub fn report(&self) -> ProbeReport {
        let mut done: Vec<&(Place, Trial)> = self.done.iter().collect();
        done.sort_by_key(|(place, _)| *place);
        let trials = done.into_iter().map(|(_, trial)| trial.clone());
        ProbeReport::new(&self.probe.styles, &self.probe.tasks, trials.collect())
    }
}

async fn run(
    mut trial: Trial,
    talk: Result<Conversation, String>,
    world: &World,
) -> (Trial, Option<ModelError>) {
    let mut talk = match talk {
        Ok(talk) => talk,
        Err(words) => {
            trial.why = Some(words);
            return (trial, None);
        }
    };
    let mut asking = talk.stream(&world.task.question);
    while let Some(event) = asking.next().await {
        match event {
            AgentEvent::TurnBegin { .. } => trial.turns += 1,
            AgentEvent::Call { call, .. } => world.appeared(call, trial.turns),
            _ => {}
        }
    }
    let (progress, error) = match asking.answer().await {
        Ok(answer) => {
            trial.why = world.check(&answer.text).err();
            (answer.progress, None)
        }
        Err(error) => {
            trial.why = Some(error.to_string());
            let server = match error.kind {
                AgentErrorKind::Model(server) => Some(server),
                _ => None,
            };
            (*error.progress, server)
        }
    };
    trial.calls = progress.calls.total();
    trial.well_formed = trial.calls - progress.calls.rejected;
    trial.unclosed = progress.unclosed;
    trial.repairs = progress.repairs;
    trial.usage = progress.usage;
    trial.is_usage_estimated = progress.is_usage_estimated;
    trial.is_server_failure = error.is_some();
    trial.is_right = trial.why.is_none();
    (trial, error)
}

fn conversation(probe: &Probe, style: &Style, world: &Arc<World>) -> Result<Conversation, String> {
    let tools = Toolbox::new(World::tools(world)).map_err(|error| error.to_string())?;
    let limits = AgentLimits {
        turns: 10,
        calls: 30,
        time: probe.time,
        repairs: 3,
        ..AgentLimits::default()
    };
    Agent::builder(Arc::clone(&probe.model))
        .tools(tools)
        .dialect(style.dialect())
        .system(SYSTEM)
        .limits(limits)
        .allow_all()
        .build()
        .and_then(|agent| agent.conversation())
        .map_err(|error| error.to_string())
}
