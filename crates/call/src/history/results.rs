//! The results of a turn's calls, as text for the model (`spec/history.md` 3).

use std::collections::{HashMap, VecDeque};
use std::slice;

use plaincall_syntax::{Dialect, DialectError, Escaper};

use crate::history::in_json::json_string;
use crate::untrusted::Untrusted;
use crate::untrusted::prompt_text::{PromptText, PromptTextBuilder};

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallStatus {
    /// It succeeded.
    Ok,
    /// It failed.
    Error,
    /// It was not run because of another one.
    Skipped,
    /// It was not run for a fault of its own, or because it was not allowed.
    Rejected,
    /// It was called off.
    Cancelled,
    /// Nobody knows what became of it.
    Unknown,
}

impl CallStatus {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Error,
        Self::Skipped,
        Self::Rejected,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// Its word, as the record of a run writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    /// The status of this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// How one call ended, to be told to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultMessage<'t> {
    /// The name of the tool, as it was called; empty if it is not known.
    pub name: Untrusted<'t>,
    /// The id of the call; empty if it is not known.
    pub id: Untrusted<'t>,
    /// How it ended; `None` if that is not known because nobody keeps it.
    pub status: Option<CallStatus>,
    /// What went wrong, and what to do about it.
    pub error: Option<Untrusted<'t>>,
    /// What else the model has to know.
    pub note: Option<Untrusted<'t>>,
    /// What the tool returned.
    pub output: Option<Untrusted<'t>>,
    /// How long the whole output is, in bytes, if this one is cut.
    pub whole_bytes: Option<u64>,
}

impl<'t> ResultMessage<'t> {
    /// The result of a call of which nothing else is known.
    pub fn new(name: Untrusted<'t>, id: Untrusted<'t>) -> Self {
        Self {
            name,
            id,
            status: None,
            error: None,
            note: None,
            output: None,
            whole_bytes: None,
        }
    }

    /// Sets how it ended.
    pub fn status(mut self, status: CallStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets what the tool returned.
    pub fn output(mut self, output: Untrusted<'t>) -> Self {
        self.output = Some(output);
        self
    }

    /// Sets what went wrong.
    pub fn error(mut self, error: Untrusted<'t>) -> Self {
        self.error = Some(error);
        self
    }
}

/// Puts results that come in any order into the order of the calls, so that every call is told exactly once
/// (`spec/history.md` 4). Calls are given by name and id.
///
/// A call without a result gets one that says so. Results that belong to no call follow at the end. Of several calls
/// with one id the first gets the first result.
pub fn in_call_order<'t>(
    calls: impl IntoIterator<Item = (Untrusted<'t>, Untrusted<'t>)>,
    results: Vec<ResultMessage<'t>>,
) -> Vec<ResultMessage<'t>> {
    let mut by_id: HashMap<Untrusted<'t>, VecDeque<usize>> = HashMap::new();
    for (place, result) in results.iter().enumerate() {
        by_id.entry(result.id.clone()).or_default().push_back(place);
    }
    let mut results: Vec<Option<ResultMessage<'t>>> = results.into_iter().map(Some).collect();
    let mut ordered: Vec<ResultMessage<'t>> = Vec::new();
    for (name, id) in calls {
        let place = by_id.get_mut(&id).and_then(VecDeque::pop_front);
        let result = place.and_then(|place| results.get_mut(place)?.take());
        ordered.push(match result {
            Some(result) if result.name.is_empty() => ResultMessage { name, ..result },
            Some(result) => result,
            None => ResultMessage::new(name, id)
                .status(CallStatus::Unknown)
                .error(Untrusted::new("the outcome of this call is unknown")),
        });
    }
    ordered.extend(results.into_iter().flatten());
    ordered
}

/// Tells results to the model, each once, in the order given (`spec/history.md` 3).
///
/// The whole text is escaped, its own words too. Without the escape it can be taken apart again exactly: no output,
/// name or error can pass for the beginning of another result.
///
/// # Errors
/// Refuses a dialect that cannot work.
pub fn results(
    results: &[ResultMessage<'_>],
    dialect: &Dialect,
) -> Result<PromptText, DialectError> {
    let mut built = PromptTextBuilder::new(slice::from_ref(dialect))?;
    let mut writer = ResultWriter {
        fence: fence_character(dialect)?,
        text: String::new(),
    };
    for (place, result) in results.iter().enumerate() {
        writer.tell(result, place + 1, results.len());
    }
    built.untrusted(&Untrusted::new(writer.text));
    Ok(built.finish())
}

/// The character that fences are made of: the first that is in no marker so that the escape would part it.
pub(crate) fn fence_character(dialect: &Dialect) -> Result<char, DialectError> {
    const CHARACTERS: [char; 6] = ['`', '~', '=', '-', '#', '*'];
    let escaper = Escaper::new(dialect)?;
    let is_whole = |character: &char| {
        let fence = character.to_string().repeat(plaincall_syntax::MARKER_LIMIT);
        escaper.escape(&fence) == fence
    };
    Ok(CHARACTERS.into_iter().find(is_whole).unwrap_or('`'))
}

/// A line that stands before and behind a text, so that nothing in the text is that line.
pub(crate) fn fence_around(text: &str, character: char) -> String {
    let runs = text.split(|c| c != character);
    let longest = runs
        .map(|run| run.chars().count())
        .max()
        .unwrap_or_default();
    character.to_string().repeat((longest + 1).max(3))
}

struct ResultWriter {
    fence: char,
    text: String,
}

impl ResultWriter {
    fn say(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    fn tell(&mut self, result: &ResultMessage<'_>, number: usize, count: usize) {
        self.say(&format!("Result {number} of {count}:"));
        let status = result.status.map_or("", CallStatus::name);
        let mut separator = " ";
        for (label, word) in [
            ("tool", result.name.raw()),
            ("id", result.id.raw()),
            ("status", status),
        ] {
            if !word.is_empty() {
                self.say(separator).say(label).say(" ").say(&word_of(word));
                separator = ", ";
            }
        }
        self.say("\n");
        for (label, text) in [("Error", &result.error), ("Note", &result.note)] {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                self.say(label).content(text.raw());
            }
        }
        match (&result.output, result.whole_bytes) {
            (None, _) => {}
            (Some(output), None) if output.is_empty() => {
                self.say("No output.\n");
            }
            (Some(output), None) => self.say("Output").content(output.raw()),
            (Some(output), Some(bytes)) => self
                .say(&format!("Output, truncated from {bytes} bytes"))
                .content(output.raw()),
        }
    }

    /// A text behind its label: on the same line if it is one line, else between fences.
    fn content(&mut self, text: &str) {
        if is_one_line(text) {
            self.say(": ").say(text).say("\n");
            return;
        }
        let fence = fence_around(text, self.fence);
        self.say(":\n").say(&fence).say("\n").say(text);
        self.say("\n").say(&fence).say("\n");
    }
}

/// Whether a text is something on one line, its first and last characters to be seen.
fn is_one_line(text: &str) -> bool {
    let is_break = |c: char| c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}');
    !text.is_empty() && text.trim() == text && !text.contains(is_break)
}

/// A name or an id in a heading: bare if nothing in it could be taken for the rest of the heading, else as a JSON
/// string.
pub(crate) fn word_of(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        json_string(word)
    }
}
