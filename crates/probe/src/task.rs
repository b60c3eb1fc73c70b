//! The tasks, which are data: `tasks/*.toml`. Levels rise in difficulty.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use plaincall::Dialect;
use plaincall::prompt::few_shot::FewShotExample;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::handbook;
use crate::tool;

const FILES: [&str; 15] = [
    include_str!("../tasks/one-argument.toml"),
    include_str!("../tasks/choice.toml"),
    include_str!("../tasks/optional.toml"),
    include_str!("../tasks/no-fitting-tool.toml"),
    include_str!("../tasks/two-calls.toml"),
    include_str!("../tasks/arguments.toml"),
    include_str!("../tasks/restraint.toml"),
    include_str!("../tasks/results.toml"),
    include_str!("../tasks/several.toml"),
    include_str!("../tasks/edits.toml"),
    include_str!("../tasks/code.toml"),
    include_str!("../tasks/files.toml"),
    include_str!("../tasks/markers.toml"),
    include_str!("../tasks/agent.toml"),
    include_str!("../tasks/exact.toml"),
];
const EXAMPLES: &str = include_str!("../tasks/examples.toml");
/// The lines of the long file before its rules.
const LINES_BEFORE: usize = 4;
/// A text with this prefix is JSON: TOML has no null.
const JSON: &str = "json:";

/// The parsed files. A test checks that they are valid.
static TASKS: LazyLock<Vec<Task>> = LazyLock::new(|| read().unwrap_or_default());

/// The few-shot examples of the arms that have them. A test checks that they are valid.
static EXAMPLE_FILE: LazyLock<ExampleFile> =
    LazyLock::new(|| toml::from_str(EXAMPLES).unwrap_or_default());

/// The level of a file that names none: the forty hard tasks.
const HARD: u8 = 6;
/// The maximum tokens of a reply: before the hard tasks if it has to be brief, before them otherwise, and after them.
const REPLY_TOKENS: [u32; 3] = [128, 1_024, 4_096];

/// A task: a question, tools, a world, and the world as it must be afterwards.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its kind. Tasks of a kind rise in difficulty.
    pub kind: String,
    /// Its level, from 1. A comparison climbs while an arm solves a tenth of a level.
    pub level: u8,
    /// Its difficulty, in a few words.
    pub about: String,
    /// The question.
    pub question: String,
    /// A correct solution: the calls of each reply. Reference models use it.
    pub solution: Vec<Vec<Call>>,
    /// Lower-case words that the answer must contain.
    pub answer: Vec<String>,
    /// Whether the task has the agent-sized prompt: all tools with long descriptions, and a handbook.
    pub is_agent_sized: bool,
    pub(crate) tools: Vec<String>,
    pub(crate) world: Value,
    /// The changes of the world that the task requires.
    pub(crate) expect: Value,
    /// A tool whose calls must be in one reply.
    pub(crate) together: Option<String>,
    /// Arguments, with the JSON of a value that means the same as no value.
    pub(crate) same_as_absent: BTreeMap<String, Value>,
    pub(crate) has_no_calls: bool,
}

/// A call of a solution.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Call {
    /// The name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: String,
    level: Option<u8>,
    task: Vec<TaskFile>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleFile {
    example: Vec<FewShotExample>,
}

/// Returns the few-shot examples: one for each tool, and one without a call.
pub(crate) fn examples() -> &'static [FewShotExample] {
    &EXAMPLE_FILE.example
}

/// A task as it is written.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TaskFile {
    name: String,
    /// The task that it repeats under the agent-sized prompt.
    like: Option<String>,
    about: String,
    question: String,
    tools: Vec<String>,
    /// Texts for `{{name}}`.
    text: BTreeMap<String, String>,
    world: Value,
    expect: Value,
    solution: Value,
    answer: Vec<String>,
    together: Option<String>,
    same_as_absent: BTreeMap<String, String>,
    no_calls: bool,
}

/// Returns the tasks, grouped by kind; easy kinds first. Forty of them are the hard ones, of level 6.
pub fn tasks() -> Vec<Task> {
    TASKS.clone()
}

/// Returns a version of the tasks: a hash of all their texts. Results with different versions cannot be compared.
pub fn task_version() -> String {
    let texts = FILES
        .into_iter()
        .chain([tool::TEXT, handbook::TEXT, EXAMPLES]);
    // FNV-1a.
    let hash = texts
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}")
}

fn read() -> Result<Vec<Task>, String> {
    let mut tasks: Vec<Task> = Vec::new();
    for text in FILES {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let level = file.level.unwrap_or(HARD);
        for written in file.task {
            let task = match &written.like {
                None => Task::new(&file.kind, level, written)?,
                Some(like) => {
                    let like = tasks.iter().find(|task| task.name == *like);
                    let like = like.ok_or_else(|| format!("{}: like what?", written.name))?;
                    Task {
                        about: format!("{}, with 24 tools and 60 kB", like.about),
                        name: written.name,
                        kind: file.kind.clone(),
                        level,
                        is_agent_sized: true,
                        tools: tool::names().map(str::to_owned).collect(),
                        ..like.clone()
                    }
                }
            };
            tasks.push(task);
        }
    }
    Ok(tasks)
}

impl Task {
    fn new(kind: &str, level: u8, written: TaskFile) -> Result<Self, String> {
        let mut texts = written.text;
        let long = long_file();
        for count in [1, 5, 20, 60] {
            let lines = long.lines().skip(LINES_BEFORE).take(count);
            let lines: Vec<&str> = lines.collect();
            texts.insert(format!("lines_{count}"), lines.join("\n"));
        }
        texts.insert("long_file".to_owned(), long);
        for (name, marker) in markers() {
            texts.insert(name.to_owned(), marker);
        }
        let filled = |value: Value| fill(value, &texts);
        let solution = filled(written.solution)?;
        let same = written.same_as_absent.into_iter().map(|(name, json)| {
            let value = serde_json::from_str(&json);
            value.map(|value| (name, value))
        });
        let wrong = |error: serde_json::Error| format!("{}: {error}", written.name);
        Ok(Self {
            kind: kind.to_owned(),
            level,
            about: written.about,
            question: fill_text(written.question.trim_end(), &texts) + "\n",
            solution: serde_json::from_value(solution).map_err(wrong)?,
            answer: written.answer,
            is_agent_sized: false,
            tools: written.tools,
            world: filled(written.world)?,
            expect: filled(written.expect)?,
            together: written.together,
            same_as_absent: same.collect::<Result<_, _>>().map_err(wrong)?,
            has_no_calls: written.no_calls,
            name: written.name,
        })
    }

    /// The most few-shot examples: one for each tool that it offers, and one without a call.
    pub(crate) fn few_shot(&self) -> usize {
        self.tools.len() + 1
    }

    /// The most tokens of a reply, so that one without an end does not take the time of all others.
    pub(crate) fn reply_tokens(&self, is_brief: bool) -> Option<u32> {
        let [brief, before, behind] = REPLY_TOKENS;
        match self.level.cmp(&HARD) {
            Ordering::Less if is_brief => Some(brief),
            Ordering::Less => Some(before),
            Ordering::Equal => None,
            Ordering::Greater => Some(behind),
        }
    }

    /// The size of the task for an estimate of its time: bytes to read, and bytes to write, which take longer.
    pub(crate) fn size(&self) -> f64 {
        let prompt = if self.is_agent_sized { 60_000 } else { 2_500 };
        let replies = self.solution.len() + 1;
        let calls = self.solution.iter().flatten();
        let written: usize = calls
            .map(|call| 60 + Value::Object(call.arguments.clone()).to_string().len())
            .sum();
        let read = prompt + replies * (self.question.len() + written);
        let total = read + 15 * (written + 100 * replies);
        f64::from(u32::try_from(total).unwrap_or(u32::MAX))
    }
}

/// Fills in texts, and converts texts with JSON.
fn fill(value: Value, texts: &BTreeMap<String, String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix(JSON) {
            Some(json) => serde_json::from_str(json).map_err(|error| format!("{json}: {error}"))?,
            None => fill_text(&text, texts).into(),
        },
        Value::Array(items) => {
            let items = items.into_iter().map(|item| fill(item, texts));
            items.collect::<Result<Vec<_>, _>>()?.into()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(name, value)| Ok((name, fill(value, texts)?)));
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
        other => other,
    })
}

fn fill_text(text: &str, texts: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    // Texts may contain markers.
    for _ in 0..2 {
        for (name, value) in texts {
            text = text.replace(&format!("{{{{{name}}}}}"), value);
        }
    }
    text
}

/// The markers of both syntaxes, for tasks whose values contain them.
fn markers() -> Vec<(&'static str, String)> {
    use plaincall::syntax::{MarkerUse, Syntax};
    let mut found = Vec::new();
    for form in Dialect::block().markers().unwrap_or_default() {
        match form.usage {
            MarkerUse::Start(_) => found.push(("block_start", form.text)),
            MarkerUse::Argument => found.push(("block_argument", form.text)),
            _ => {}
        }
    }
    found.push(("block_end", Dialect::block().end_marker(Syntax::Block)));
    found.push(("emoji_end", Dialect::emoji().end_marker(Syntax::Emoji)));
    found
}

/// A program of 200 lines with quotation marks and backslashes.
fn long_file() -> String {
    let mut lines = vec![
        "\"\"\"Paths and patterns. Generated; do not edit.\"\"\"".to_owned(),
        "import re".to_owned(),
        String::new(),
        "RULES = [".to_owned(),
    ];
    for number in 1..=192 {
        lines.push(match number % 8 {
            0 => format!("    # rule {number}: it's \"special\", see C:\\rules\\{number}.txt"),
            1 => format!("    (\"path-{number}\", r\"C:\\logs\\{number:03}\\new.txt\"),"),
            2 => format!("    (\"quote-{number}\", 'It has \"no {number}\" twice'),"),
            3 => format!("    ('tab-{number}', \"a\\tb\\t{number}\\n\"),"),
            4 => format!("    (\"regex-{number}\", re.compile(r\"^\\s*(\\d{{{number}}})\\\"$\")),"),
            5 => format!("    (\"json-{number}\", '{{\"id\": {number}, \"note\": \"x\\\\ny\"}}'),"),
            6 => format!(
                "    (\"shell-{number}\", \"grep -c '\\\\$HOME' \\\"$FILE\\\" # {number}\"),"
            ),
            _ => format!("    (\"unit-{number}\", '{number} \u{20ac} \\u00e9 \\\\'),"),
        });
    }
    lines.extend(
        [
            "]",
            "",
            "for name, value in RULES:",
            "    print(f\"{name}: {value!r}\")",
        ]
        .map(str::to_owned),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use plaincall::Dialect;
    use plaincall::prompt::few_shot::few_shot;

    use super::{HARD, examples, long_file, read};

    #[test]
    fn the_files_are_valid() {
        let tasks = read().unwrap();
        assert_eq!(tasks.iter().filter(|task| task.level == HARD).count(), 40);
        assert!(tasks.is_sorted_by_key(|task| task.level));
        for task in &tasks {
            let same = tasks.iter().filter(|other| other.name == task.name);
            assert_eq!(same.count(), 1, "{}", task.name);
            assert!(!task.question.contains("{{"), "{}", task.question);
            for name in &task.tools {
                assert!(crate::tool::definition(name).is_some(), "{name}");
            }
            for call in task.solution.iter().flatten() {
                assert!(task.tools.contains(&call.tool), "{}", call.tool);
            }
        }
        assert_eq!(tasks.iter().filter(|task| task.is_agent_sized).count(), 6);
        assert_eq!(long_file().lines().count(), 200);
    }

    #[test]
    fn each_tool_has_an_example_that_is_valid() {
        let specs =
            crate::tool::names().filter_map(|name| crate::tool::definition(name)?.spec(false));
        let specs: Vec<_> = specs.collect();
        assert_eq!(examples().len(), specs.len() + 1);
        for dialect in [Dialect::block(), Dialect::emoji()] {
            for spec in &specs {
                let shown = few_shot(examples(), &[spec], &dialect, 2).unwrap();
                assert_eq!(shown.messages.len(), 6, "{}", spec.name);
            }
        }
    }
}
