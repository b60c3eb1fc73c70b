//! How well a model writes calls, measured: twelve tasks of rising difficulty, in each syntax and style of markers.
//!
//! No model judges: a task is right if its tools were really called with what was asked for, and if the answer holds what
//! only their results could tell.

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

/// How many trials in a row may fail by the model's server before nothing more is tried.
const FAILURES: u32 = 3;
/// The key of keyed markers: always the same, so that a model that is asked the same again can answer the same.
const KEY: &str = "k3v9q2x8";
const SYSTEM: &str =
    "You work with tools. Do exactly what is asked, then answer in one or two sentences.\n";

/// A way of writing calls: a syntax, and its markers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
pub struct Probe {
    model: Arc<dyn Model>,
    styles: Vec<Style>,
    tasks: Vec<Task>,
    repeat: u32,
    concurrent: usize,
    time: Duration,
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

    /// Begins, on the present tokio runtime, as soon as the first trial is waited for.
    pub fn begin(self) -> Probing {
        let (styles, tasks) = (self.styles.len(), self.tasks.len());
        // In this order each style is known a little when the probe is cancelled.
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

/// A trial among the others. Their order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    style: usize,
    task: usize,
    repetition: u32,
}

/// A probe that has begun. Dropping it ends what runs.
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
            trial.why = world.judge(&answer.text).err();
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
