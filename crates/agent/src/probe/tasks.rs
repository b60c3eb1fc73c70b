//! The tasks, as data.

use plaincall::{Effect, Parameter, ToolSpec};
use serde_json::{Value, json};

/// What stands for the end marker of the dialect in the texts of a task.
const MARKER: &str = "{MARKER}";

/// A task for a model: a question, tools, and what is to be done with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// What is difficult about it.
    pub about: &'static str,
    pub(super) question: String,
    /// The names of its tools.
    pub(super) tools: &'static [&'static str],
    /// The calls that are to be made. Without any, none may be.
    pub(super) steps: Vec<Step>,
    /// Whether they are to be written in one reply.
    pub(super) is_together: bool,
    /// Words that the answer holds, in small letters.
    pub(super) answer: &'static [&'static str],
}

/// A call that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) result: Result<&'static str, &'static str>,
    /// The steps, by number, without which it fails.
    pub(super) after: &'static [usize],
    /// What it says then.
    pub(super) too_early: &'static str,
    pub(super) is_optional: bool,
}

impl Task {
    /// The same with the end marker of a dialect in its texts.
    pub(super) fn with_marker(mut self, marker: &str) -> Self {
        self.question = self.question.replace(MARKER, marker);
        for step in &mut self.steps {
            put(&mut step.arguments, marker);
        }
        self
    }
}

fn put(value: &mut Value, marker: &str) {
    match value {
        Value::String(text) => *text = text.replace(MARKER, marker),
        Value::Object(fields) => fields.values_mut().for_each(|field| put(field, marker)),
        _ => {}
    }
}

fn step(tool: &'static str, arguments: Value, result: Result<&'static str, &'static str>) -> Step {
    Step {
        tool,
        arguments,
        result,
        after: &[],
        too_early: "",
        is_optional: false,
    }
}

fn task(name: &'static str, about: &'static str, question: &str) -> Task {
    Task {
        name,
        about,
        question: question.to_owned(),
        tools: &[],
        steps: Vec::new(),
        is_together: false,
        answer: &[],
    }
}

const CODE: &str = "def fizz(n):\n    for i in range(1, n + 1):\n        if i % 15 == 0:\n            print(\"fizz-buzz\")\n        elif i % 5 == 0:\n            print('buzz')  # five\n        else:\n            print(f\"{i}\")\n\n\nfizz(20)";
const QUOTED: &str = "{\n  \"path\": \"C:\\\\temp\\\\new\",\n  \"pattern\": \"^\\\\d+\\\\s*\\\"x\\\"$\",\n  \"empty\": \"\",\n  \"list\": [1, 2.50, null]\n}";
const NOTES: &str = "How a call ends\n\nA call ends with a line that holds only this:\n{MARKER}\nNothing of the call comes behind it.";
const ALL: &[&str] = &[
    "weather",
    "convert",
    "find_user",
    "send_message",
    "read_file",
    "write_file",
    "make_directory",
    "create_event",
    "book_table",
    "place_order",
];

/// The twelve tasks, the easy ones first.
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn tasks() -> Vec<Task> {
    vec![
        Task {
            tools: &["weather", "convert"],
            steps: vec![step(
                "weather",
                json!({"city": "Oslo"}),
                Ok("7 degrees, rain"),
            )],
            answer: &["7"],
            ..task(
                "one-call",
                "one call with one value",
                "What is the weather in Oslo?",
            )
        },
        Task {
            tools: ALL,
            answer: &["12"],
            ..task(
                "no-call",
                "an answer without a call",
                "Without any tool: how many months does a year have? Answer with the number in digits.",
            )
        },
        Task {
            tools: &["book_table"],
            steps: vec![step(
                "book_table",
                json!({"name": "Ada Berg", "people": 4, "outside": true, "meal": "dinner"}),
                Ok("booked, number 5512"),
            )],
            answer: &["5512"],
            ..task(
                "types",
                "a text, a number, a yes or no, and a choice",
                "Book a table for dinner for 4 people, outside, under the name Ada Berg. Tell me the number of the booking.",
            )
        },
        Task {
            tools: &["create_event", "weather"],
            steps: vec![step(
                "create_event",
                json!({
                    "title": "Planning", "date": "2031-05-14", "begin": "09:30", "end": "11:00",
                    "place": "Room 4", "organizer": "Ada Berg", "guests": 12, "remind": false,
                    "notes": "Bring the figures of April."
                }),
                Ok("event 8830"),
            )],
            answer: &["8830"],
            ..task(
                "many-arguments",
                "one call with nine values",
                "Create an event with the title Planning on 2031-05-14 from 09:30 to 11:00 in Room 4. The organizer is Ada Berg, there are 12 guests, nobody is to be reminded. The notes are: Bring the figures of April. Tell me the number of the event.",
            )
        },
        Task {
            tools: ALL,
            steps: vec![step(
                "convert",
                json!({"amount": 250.5, "from": "NOK", "to": "EUR"}),
                Ok("21.73"),
            )],
            answer: &["21.73"],
            ..task(
                "choice",
                "the right one of ten tools",
                "How many euros (EUR) are 250.5 Norwegian kroner (NOK)? Use the tool for it.",
            )
        },
        Task {
            tools: &["write_file", "read_file"],
            steps: vec![step(
                "write_file",
                json!({"path": "fizz.py", "content": CODE}),
                Ok("written"),
            )],
            ..task(
                "code",
                "code as a value",
                &format!(
                    "Write a file fizz.py with exactly this content, all blanks included:\n\n{CODE}\n"
                ),
            )
        },
        Task {
            tools: &["write_file", "read_file"],
            steps: vec![step(
                "write_file",
                json!({"path": "rules.json", "content": QUOTED}),
                Ok("written"),
            )],
            ..task(
                "quotes",
                "quotation marks and backslashes in a value",
                &format!("Write a file rules.json with exactly this content:\n\n{QUOTED}\n"),
            )
        },
        Task {
            tools: &["place_order", "find_user"],
            steps: vec![step(
                "place_order",
                json!({
                    "customer": {"name": "Ada Berg", "address": {"street": "Hill Road 7", "city": "Oslo"}},
                    "items": [{"article": "A-17", "count": 2}, {"article": "C-3", "count": 10}]
                }),
                Ok("order 3391"),
            )],
            answer: &["3391"],
            ..task(
                "nested",
                "objects and lists as values",
                "Place an order for Ada Berg, Hill Road 7, Oslo: 2 pieces of the article A-17 and 10 of the article C-3, in this order. Tell me the number of the order.",
            )
        },
        Task {
            tools: &["weather", "convert"],
            steps: vec![
                step("weather", json!({"city": "Oslo"}), Ok("7 degrees, rain")),
                step("weather", json!({"city": "Cairo"}), Ok("31 degrees, sun")),
                step("weather", json!({"city": "Lima"}), Ok("19 degrees, fog")),
            ],
            is_together: true,
            answer: &["7", "31", "19"],
            ..task(
                "parallel",
                "several calls in one reply",
                "What is the weather in Oslo, in Cairo and in Lima? Write all three calls in one reply, then give me the three temperatures.",
            )
        },
        Task {
            tools: &["find_user", "send_message"],
            steps: vec![
                step(
                    "find_user",
                    json!({"name": "Ada"}),
                    Err("there are two: `Ada Berg` and `Ada Lund`; give the whole name"),
                )
                .optional(),
                step("find_user", json!({"name": "Ada Berg"}), Ok("u-48213")),
                step(
                    "send_message",
                    json!({"user": "u-48213", "text": "The meeting is moved to Friday."}),
                    Ok("sent"),
                ),
            ],
            ..task(
                "results",
                "results to act on, an error among them",
                "Find the user whose first name is Ada; begin with the first name alone, and if that is not enough, her last name is Berg. Then send her exactly this message: The meeting is moved to Friday.",
            )
        },
        Task {
            tools: &["make_directory", "write_file", "run_tests"],
            steps: vec![
                step("make_directory", json!({"path": "demo"}), Ok("made")),
                step(
                    "write_file",
                    json!({"path": "demo/one.txt", "content": "first"}),
                    Ok("written"),
                )
                .after(&[0], "there is no directory demo"),
                step(
                    "write_file",
                    json!({"path": "demo/two.txt", "content": "second"}),
                    Ok("written"),
                )
                .after(&[0], "there is no directory demo"),
                step(
                    "run_tests",
                    json!({"directory": "demo"}),
                    Ok("2 of 2 passed, in 417 ms"),
                )
                .after(&[1, 2], "files are missing in demo"),
            ],
            answer: &["417"],
            ..task(
                "dependencies",
                "calls that need what others have done",
                "Make the directory demo. Write into it the files demo/one.txt with the content \"first\" and demo/two.txt with the content \"second\", without the quotation marks. When both are written, run the tests in demo. How many milliseconds did they take?",
            )
        },
        Task {
            tools: &["write_file", "read_file"],
            steps: vec![step(
                "write_file",
                json!({"path": "notes.txt", "content": NOTES}),
                Ok("written"),
            )],
            ..task(
                "marker",
                "a marker of the syntax in a value",
                &format!("Write a file notes.txt with exactly this content:\n\n{NOTES}\n"),
            )
        },
    ]
}

impl Step {
    fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    fn after(mut self, steps: &'static [usize], too_early: &'static str) -> Self {
        self.after = steps;
        self.too_early = too_early;
        self
    }
}

/// The definition of a tool of the tasks.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(super) fn tool(name: &str) -> ToolSpec {
    let text = |about: &str| json!({"type": "string", "description": about});
    let whole = |about: &str| json!({"type": "integer", "description": about});
    let flag = |about: &str| json!({"type": "boolean", "description": about});
    let spec = |about: &str, effect, parameters: &[(&str, Value)]| {
        let mut spec = ToolSpec::new(name).describe(about).effect(effect);
        for (name, schema) in parameters {
            spec = spec.parameter(Parameter::from_schema(*name, schema.clone()));
        }
        spec
    };
    match name {
        "weather" => spec(
            "Tells the weather of a city.",
            Effect::Read,
            &[("city", text("The name of the city."))],
        ),
        "convert" => spec(
            "Converts an amount of money.",
            Effect::Read,
            &[
                (
                    "amount",
                    json!({"type": "number", "description": "The amount."}),
                ),
                (
                    "from",
                    text("The currency that it is in, by its three letters."),
                ),
                ("to", text("The other currency.")),
            ],
        ),
        "find_user" => spec(
            "Finds a user and tells the id.",
            Effect::Read,
            &[("name", text("The name."))],
        ),
        "send_message" => spec(
            "Sends a message to a user.",
            Effect::Write,
            &[
                ("user", text("The id of the user.")),
                ("text", text("The message.")),
            ],
        )
        .positional(["user"])
        .body("text"),
        "read_file" => spec(
            "Reads a file.",
            Effect::Read,
            &[("path", text("Its path."))],
        ),
        "write_file" => spec(
            "Writes a file.",
            Effect::Write,
            &[
                ("path", text("Its path.")),
                ("content", text("All that it is to hold.")),
            ],
        )
        .positional(["path"])
        .body("content"),
        "make_directory" => spec(
            "Makes a directory.",
            Effect::Write,
            &[("path", text("Its path."))],
        ),
        "run_tests" => spec(
            "Runs the tests in a directory.",
            Effect::Read,
            &[("directory", text("Its path."))],
        ),
        "book_table" => spec(
            "Books a table in the restaurant.",
            Effect::Write,
            &[
                ("name", text("The name of the guest.")),
                ("people", whole("How many people come.")),
                ("outside", flag("Whether the table is outside.")),
                (
                    "meal",
                    json!({"type": "string", "enum": ["breakfast", "lunch", "dinner"], "description": "Which meal."}),
                ),
            ],
        )
        // A name may hold blanks, and only what stands last on a line may.
        .positional(["people", "outside", "meal", "name"]),
        "create_event" => spec(
            "Puts an event into the calendar.",
            Effect::Write,
            &[
                ("title", text("What it is called.")),
                ("date", text("The day, as 2030-12-31.")),
                ("begin", text("When it begins, as 08:00.")),
                ("end", text("When it ends.")),
                ("place", text("Where it is.")),
                ("organizer", text("Who invites.")),
                ("guests", whole("How many guests there are.")),
                ("remind", flag("Whether the guests are reminded.")),
                ("notes", text("What else is to be said.")),
            ],
        ),
        _ => spec(
            "Places an order.",
            Effect::Write,
            &[
                (
                    "customer",
                    json!({"type": "object", "description": "Who orders.", "properties": {
                        "name": {"type": "string"},
                        "address": {"type": "object", "properties": {
                            "street": {"type": "string"}, "city": {"type": "string"}
                        }, "required": ["street", "city"]}
                    }, "required": ["name", "address"]}),
                ),
                (
                    "items",
                    json!({"type": "array", "description": "What is ordered.", "items": {
                        "type": "object", "properties": {
                            "article": {"type": "string"}, "count": {"type": "integer"}
                        }, "required": ["article", "count"]
                    }}),
                ),
            ],
        ),
    }
}
