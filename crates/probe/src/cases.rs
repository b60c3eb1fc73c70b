//! A user's own tools and questions: which settings answer most of them with the right calls.
//!
//! Nothing is executed. The settings are chosen with one half of the cases and reported with the other.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plaincall::prompt::few_shot::FewShotExample;
use plaincall::tool::{Arguments, ToolSpec};
use plaincall::{Dialect, Tool, Toolbox};
use plaincall_agent::model::{Constrain, Model, ModelRequest, Reply};
use plaincall_agent::{Agent, AgentError, AgentErrorKind, AgentLimits, ModelError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::report::{Interval, wilson};

/// The most few-shot examples that are tried.
const MOST_EXAMPLES: usize = 16;

/// A question, and the calls that are right for it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The question of the user.
    pub question: String,
    /// The right calls, in any order. Empty if none is right.
    #[serde(default)]
    pub calls: Vec<ExpectedCall>,
}

/// A call of a tool with the arguments that it should get.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// The name of the tool.
    pub tool: String,
    /// The arguments, as the tool gets them.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// Settings of a model that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setup {
    /// Whether calls are in the emoji-bracket syntax; otherwise in the block syntax.
    pub is_emoji: bool,
    /// The number of few-shot examples, at most.
    pub few_shot: usize,
    /// Whether a grammar constrains replies.
    pub has_grammar: bool,
}

/// The result of a setup.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SetupResult {
    /// The setup.
    pub setup: Setup,
    /// The number of cases that it was asked.
    pub cases: u32,
    /// The number of cases that it solved.
    pub right: u32,
}

/// A case that was not solved.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MissedCase {
    /// The case.
    pub case: Case,
    /// The calls of the model.
    pub calls: Vec<ExpectedCall>,
    /// The answer of the model, if it wrote no call that may run.
    pub answer: Option<String>,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaseReport {
    /// All setups with the cases that chose between them, the best first.
    pub chosen_from: Vec<SetupResult>,
    /// The best setup with the cases that did not choose it.
    pub best: SetupResult,
    /// The first setup, the default settings, with the same cases.
    pub default: SetupResult,
    /// The cases of the report that the best setup did not solve.
    pub missed: Vec<MissedCase>,
}

impl fmt::Display for Setup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_emoji { "emoji" } else { "block" })?;
        match self.few_shot {
            0 => {}
            1 => formatter.write_str(", 1 example")?,
            count => write!(formatter, ", {count} examples")?,
        }
        formatter.write_str(if self.has_grammar { ", grammar" } else { "" })
    }
}

impl SetupResult {
    /// Returns the interval of its share of solved cases (95 %).
    pub fn interval(&self) -> Interval {
        wilson(self.right, self.cases)
    }
}

/// A comparison of setups with cases.
pub struct CaseProbe {
    model: Arc<dyn Model>,
    tools: Vec<ToolSpec>,
    examples: Vec<FewShotExample>,
    cases: Vec<Case>,
    time: Duration,
}

impl CaseProbe {
    /// Creates a comparison. `examples` are those of the model's settings.
    pub fn new(
        model: Arc<dyn Model>,
        tools: Vec<ToolSpec>,
        examples: Vec<FewShotExample>,
        cases: Vec<Case>,
    ) -> Self {
        Self {
            model,
            tools,
            examples,
            cases,
            time: Duration::from_mins(2),
        }
    }

    /// Sets the time limit of a case. Default: two minutes.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Returns all setups. The first one has the default settings.
    pub fn setups(&self) -> Vec<Setup> {
        let asked = |tool: &ToolSpec| {
            let examples = tool.call_examples();
            examples
                .iter()
                .filter(|example| example.question.is_some())
                .count()
        };
        let pool = self.examples.len() + self.tools.iter().map(asked).sum::<usize>();
        let all = pool.min(MOST_EXAMPLES);
        // One for each tool and one without a call.
        let mut counts = vec![0, (self.tools.len() + 1).min(all), all];
        counts.dedup();
        let has_grammar = self.model.constrains() != Constrain::Never;
        let mut setups = Vec::new();
        for has_grammar in [false, true].into_iter().take(1 + usize::from(has_grammar)) {
            for few_shot in &counts {
                setups.extend([false, true].map(|is_emoji| Setup {
                    is_emoji,
                    few_shot: *few_shot,
                    has_grammar,
                }));
            }
        }
        setups
    }

    /// Asks the questions one at a time. `progress` gets the setup and whether it solved a case.
    ///
    /// # Errors
    /// Returns an error if the server fails, or if an example or a tool is not valid.
    pub async fn run(
        &self,
        mut progress: impl FnMut(&Setup, &Case, bool),
    ) -> Result<CaseReport, AgentError> {
        let of_half = |half: usize| self.cases.iter().skip(half).step_by(2);
        let mut alive: Vec<SetupResult> = self.setups().into_iter().map(SetupResult::new).collect();
        let mut stopped = Vec::new();
        let default = alive.first().map(|first| first.setup);
        let rounds = alive.len().next_power_of_two().ilog2().max(1) as usize;
        let choosing: Vec<&Case> = of_half(0).collect();
        let size = choosing.len().div_ceil(rounds).max(1);
        for batch in choosing.chunks(size) {
            for result in &mut alive {
                for case in batch {
                    let missed = self.ask(result.setup, case).await?;
                    progress(&result.setup, case, missed.is_none());
                    result.add(missed.is_none());
                }
            }
            // Of two that are equally good, the first needs less.
            alive.sort_by_key(|result| std::cmp::Reverse(result.right));
            let half = alive.len().div_ceil(2);
            stopped.splice(0..0, alive.split_off(half));
        }
        alive.extend(stopped);
        let best = alive.first().map(|first| first.setup);
        let (best, default) = best.zip(default).unwrap_or_default();
        let mut report = CaseReport {
            chosen_from: alive,
            best: SetupResult::new(best),
            default: SetupResult::new(default),
            missed: Vec::new(),
        };
        for case in of_half(1) {
            let missed = self.ask(best, case).await?;
            progress(&best, case, missed.is_none());
            report.best.add(missed.is_none());
            report.missed.extend(missed);
            if default != best {
                let missed = self.ask(default, case).await?;
                progress(&default, case, missed.is_none());
                report.default.add(missed.is_none());
            }
        }
        if default == best {
            report.default = report.best;
        }
        Ok(report)
    }

    /// Asks one question, and takes the calls of the reply. Returns the case if they are not right.
    async fn ask(&self, setup: Setup, case: &Case) -> Result<Option<MissedCase>, AgentError> {
        let calls: Arc<Mutex<Vec<ExpectedCall>>> = Arc::default();
        let tools = self.tools.iter().map(|tool| {
            let (name, calls) = (tool.name.clone(), Arc::clone(&calls));
            Tool::raw(tool.clone(), move |arguments: Arguments, _| {
                let call = ExpectedCall {
                    tool: name.clone(),
                    arguments: match arguments.to_value() {
                        Value::Object(arguments) => arguments,
                        _ => Map::new(),
                    },
                };
                calls
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(call);
                async { Ok(String::new()) }
            })
        });
        let tools = Toolbox::new(tools);
        let tools = tools.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
        let mut limits = AgentLimits::default();
        (limits.turns, limits.repairs, limits.time) = (1, 0, self.time);
        let dialect = if setup.is_emoji {
            Dialect::emoji()
        } else {
            Dialect::block()
        };
        let agent = Agent::builder(Constrained(Arc::clone(&self.model), setup.has_grammar))
            .tools(tools)
            .dialect(dialect)
            .few_shot(self.examples.clone(), setup.few_shot)
            .limits(limits)
            .allow_all()
            .build()?;
        let answer = match agent.ask(&case.question).await {
            Ok(answer) => Some(answer.text),
            Err(error) => match error.kind {
                AgentErrorKind::Model(error) if is_of_server(&error) => {
                    return Err(AgentErrorKind::Model(error).into());
                }
                _ => None,
            },
        };
        let calls = std::mem::take(&mut *calls.lock().unwrap_or_else(PoisonError::into_inner));
        let is_right = is_same(&calls, &case.calls) && (!calls.is_empty() || answer.is_some());
        Ok((!is_right).then(|| MissedCase {
            case: case.clone(),
            calls,
            answer,
        }))
    }
}

/// A reply that is too long, for example, is a failure of the model.
fn is_of_server(error: &ModelError) -> bool {
    use plaincall_agent::ModelErrorKind::{Connect, NotRunning, Refused};
    matches!(error.kind, Connect | NotRunning | Refused)
}

fn is_same(calls: &[ExpectedCall], expected: &[ExpectedCall]) -> bool {
    let mut left: Vec<&ExpectedCall> = expected.iter().collect();
    let is_expected = |call: &ExpectedCall| {
        let place = left.iter().position(|one| *one == call);
        place.map(|place| left.swap_remove(place)).is_some()
    };
    calls.len() == expected.len() && calls.iter().all(is_expected)
}

impl SetupResult {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            cases: 0,
            right: 0,
        }
    }

    fn add(&mut self, is_right: bool) {
        self.cases += 1;
        self.right += u32::from(is_right);
    }
}

/// The model, with or without its grammar.
struct Constrained(Arc<dyn Model>, bool);

impl Model for Constrained {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        self.0.reply(request)
    }

    fn constrains(&self) -> Constrain {
        if self.1 {
            self.0.constrains()
        } else {
            Constrain::Never
        }
    }
}
