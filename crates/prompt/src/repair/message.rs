//! The parts of the message.

use std::fmt::Write as _;
use std::slice;

use plaincall_syntax::{Dialect, DialectError, NearMiss, ceil_char_boundary, floor_char_boundary};

use crate::history::results::{fence_around, fence_character};
use crate::repair::example::Example;
use crate::repair::line_of;
use plaincall_names::shortened;
use plaincall_reply::{
    CallError, ModelText, PromptText, PromptTextBuilder, ToolCall, Trusted, invented::word_of,
};
use plaincall_tool::ReplyDiagnostic;

/// The maximum number of described errors; a note reports how many more there are.
const PROBLEMS: usize = 10;
const PROBLEM_BYTES: usize = 400;
/// The maximum length of any other sentence, such as the list of all tools, in bytes.
const SENTENCE_BYTES: usize = 6_000;
const NEAR_MISSES: usize = 5;
const NAME_BYTES: usize = 100;
/// The length of the shown beginning of a long call, and of its end; in bytes.
const BEGINNING: usize = 500;
const END: usize = 150;

pub(super) struct Message {
    text: PromptTextBuilder,
    fence: char,
    problems: usize,
    /// Whether the model also gets the results of the calls.
    is_after_results: bool,
    /// The error that the result of the current call states.
    reported: String,
}

impl Message {
    pub(super) fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        Ok(Self {
            text: PromptTextBuilder::new(slice::from_ref(dialect))?,
            fence: fence_character(dialect)?,
            problems: 0,
            is_after_results: false,
            reported: String::new(),
        })
    }

    pub(super) fn after_results(dialect: &Dialect) -> Result<Self, DialectError> {
        let is_after_results = true;
        Self::new(dialect).map(|message| Self {
            is_after_results,
            ..message
        })
    }

    /// Begins the part about a call; `follows` adds a separator.
    pub(super) fn begin_call(&mut self, follows: bool, error: &CallError) {
        if self.is_after_results {
            self.reported = error.to_string();
        }
        if follows {
            self.text.trusted("\n");
        }
        self.problems = 0;
    }

    pub(super) fn more_calls(&mut self) {
        self.text
            .trusted("\nMore calls were invalid: check them too.\n");
    }

    pub(super) fn heading(&mut self, name: &str, id: &str) {
        let name = word_of(&shortened(name, NAME_BYTES));
        self.text.trusted("This call was not run: tool ");
        self.text.untrusted(&line_of(&name, usize::MAX));
        if !id.is_empty() {
            let id = word_of(&shortened(id, NAME_BYTES));
            self.text.trusted(", id ");
            self.text.untrusted(&line_of(&id, usize::MAX));
        }
        self.text.trusted("\n");
    }

    pub(super) fn no_call(&mut self) {
        self.text
            .trusted("Your reply has no call, only text that looks like one. Nothing was run.\n");
    }

    /// Writes the text of the call: completely, or its beginning and end.
    pub(super) fn written(&mut self, call: &ToolCall) {
        let Some(source) = call.source() else {
            self.text
                .trusted("This call is too long: write a shorter one.\n");
            return;
        };
        let source = source.trim_end_matches(['\n', '\r']);
        let parts = if source.len() <= BEGINNING + END {
            [source, ""]
        } else {
            let begin = source.get(..floor_char_boundary(source, BEGINNING));
            let end = source.get(ceil_char_boundary(source, source.len() - END)..);
            [begin.unwrap_or_default(), end.unwrap_or_default()]
        };
        let fence = fence_around(&parts.concat(), self.fence);
        self.text
            .trusted(Trusted::assert(format!("You wrote:\n{fence}\n")));
        self.text.model(&ModelText::new(parts[0]));
        if !parts[1].is_empty() {
            let omitted = source.len() - parts[0].len() - parts[1].len();
            self.write(&format!("\n… ({omitted} bytes omitted) …\n"));
            self.text.model(&ModelText::new(parts[1]));
        }
        self.write(&format!("\n{fence}\n"));
    }

    fn write(&mut self, text: &str) {
        self.text.trusted(Trusted::assert(text));
    }

    /// Writes an error, with its pointer if the sentence does not name it.
    pub(super) fn problem(&mut self, pointer: &str, sentence: &str) {
        if self.is_reported(pointer, sentence) {
            return;
        }
        self.begin_problem();
        let mut line = String::new();
        if !pointer.is_empty() && !sentence.contains(pointer) {
            let _ = write!(line, "`{}`: ", shortened(pointer, NAME_BYTES));
        }
        line.push_str(sentence);
        self.text.trusted("- ");
        self.text.untrusted(&line_of(&line, SENTENCE_BYTES));
        self.text.trusted("\n");
    }

    /// Returns `true` if the result of the call states the error.
    fn is_reported(&self, pointer: &str, sentence: &str) -> bool {
        self.reported.contains(sentence)
            && self.is_after_results
            && (pointer.is_empty() || sentence.contains(pointer))
    }

    pub(super) fn own_problem(&mut self, sentence: &str) {
        if self.is_reported("", sentence) {
            return;
        }
        self.begin_problem();
        self.write(&format!("- {sentence}\n"));
    }

    fn begin_problem(&mut self) {
        if self.problems == 0 {
            self.text.trusted("Problems:\n");
        }
        self.problems += 1;
    }

    pub(super) fn problems(&mut self, call: &ToolCall, problems: &[ReplyDiagnostic]) {
        for problem in problems.iter().take(PROBLEMS) {
            let pointer = match problem.pointer.as_str() {
                "" => call.arguments.unplaced_at(problem.span).unwrap_or_default(),
                pointer => pointer,
            };
            self.problem(pointer, &shortened(&problem.message, PROBLEM_BYTES));
        }
        self.more(problems.len().saturating_sub(PROBLEMS));
    }

    /// Writes the errors in the text of a call; `first` is used if the call has lost them.
    pub(super) fn diagnostics(&mut self, call: &ToolCall, first: &str) {
        let errors = || {
            call.diagnostics
                .iter()
                .filter(|one| one.is_argument_error())
        };
        if errors().next().is_none() {
            self.problem("", &shortened(first, PROBLEM_BYTES));
        }
        for error in errors().take(PROBLEMS) {
            let pointer = call.arguments.unplaced_at(error.span).unwrap_or_default();
            self.problem(pointer, &shortened(&error.message, PROBLEM_BYTES));
        }
        self.more(errors().count().saturating_sub(PROBLEMS));
    }

    fn more(&mut self, count: usize) {
        if count > 0 {
            self.write(&format!("- and {count} more\n"));
        }
    }

    pub(super) fn near_misses(&mut self, text: &str, near: &[NearMiss]) {
        if near.is_empty() {
            return;
        }
        self.text.trusted("Check these lines:\n");
        let mut line = 1;
        let mut counted = 0;
        for miss in near.iter().take(NEAR_MISSES) {
            let before = text.get(counted..miss.span.start).unwrap_or_default();
            line += before.matches('\n').count();
            counted = miss.span.start;
            let written = text.get(miss.span.range()).unwrap_or_default();
            let written = written.lines().next().unwrap_or_default();
            let unknown = match miss.format {
                None => "unknown marker ",
                Some(_) => "",
            };
            self.write(&format!("- line {line}: {unknown}`"));
            self.text
                .model(&ModelText::new(shortened(written, NAME_BYTES)));
            let meant = &miss.suggestion;
            self.write(&match miss.format {
                None => format!("`; did you mean `{meant}`?\n"),
                Some(_) => format!(
                    "` is another call format, which is not supported; start a call with `{meant}`\n"
                ),
            });
        }
        self.more(near.len().saturating_sub(NEAR_MISSES));
    }

    pub(super) fn example(&mut self, example: Option<&Example>) {
        let Some(example) = example else {
            return;
        };
        self.text.trusted("A correct call:\n");
        // It has been rendered, and the model's text in it is escaped.
        self.write(&example.text);
        self.text.trusted(if example.has_placeholders {
            "Send it again with a value in place of each <…>."
        } else {
            "Send it again."
        });
        match example.omitted {
            0 => {}
            1 => {
                self.text.trusted(" Keep the argument that is not shown.");
            }
            count => self.write(&format!(" Keep the {count} arguments that are not shown.")),
        }
        self.text.trusted("\n");
    }

    /// Writes a call of a tool that the model did not name, so it is not asked to send it.
    pub(super) fn form(&mut self, example: Option<&Example>) {
        let Some(example) = example else {
            return;
        };
        self.text
            .trusted("If you meant a tool call, write it like this");
        if example.has_placeholders {
            self.text.trusted(", with a value for each <…>");
        }
        self.text.trusted(":\n");
        self.write(&example.text);
    }

    pub(super) fn finish(self) -> PromptText {
        self.text.finish()
    }
}
