//! The results of a turn's calls, rendered for the model (`spec/history.md` 3).

use std::collections::{HashMap, VecDeque};
use std::slice;

use plaincall_plan::Status;
use plaincall_syntax::{Dialect, DialectError, Escaper, MarkerForm, MarkerUse};

use plaincall_reply::{
    CallError, PromptText, PromptTextBuilder, Trusted, Untrusted, invented::word_of,
};

/// The result of a call, as a message to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultMessage<'t> {
    /// The name of the tool, as called; empty if it is not known.
    pub name: Untrusted<'t>,
    /// The id of the call; empty if it is not known.
    pub id: Untrusted<'t>,
    /// How the call ended; `None` if it is not known.
    pub status: Option<Status>,
    /// The error, and how to fix it.
    pub error: Option<Untrusted<'t>>,
    /// Further information for the model.
    pub note: Option<Untrusted<'t>>,
    /// The output of the tool.
    pub output: Option<Untrusted<'t>>,
    /// The length of the whole output, in bytes, if `output` is truncated.
    pub whole_bytes: Option<u64>,
}

impl<'t> ResultMessage<'t> {
    /// Creates the result of a call of which nothing else is known.
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

    /// Sets the status.
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the output.
    pub fn output(mut self, output: Untrusted<'t>) -> Self {
        self.output = Some(output);
        self
    }

    /// Sets the error.
    pub fn error(mut self, error: Untrusted<'t>) -> Self {
        self.error = Some(error);
        self
    }
}

/// Puts results into the order of the calls, so that each call has exactly one result (`spec/history.md` 4). Calls are
/// given by name and id.
///
/// A call without a result gets the status [`Status::Unknown`] and an error. Results without a call follow at the
/// end. If calls share an id, the first call gets the first result.
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
                .status(Status::Unknown)
                .error(Untrusted::new("the outcome of this call is unknown")),
        });
    }
    ordered.extend(results.into_iter().flatten());
    ordered
}

/// Renders results for the model, each once, in the given order (`spec/history.md` 3).
///
/// The whole text is escaped, including the headings, except the end marker in the error of a rejected call that asks the model
/// to write it. Even without the escape each result stays distinct: no output, name or error can look like the beginning of
/// another result.
///
/// # Errors
/// Returns an error for an invalid dialect.
pub fn results(
    results: &[ResultMessage<'_>],
    dialect: &Dialect,
) -> Result<PromptText, DialectError> {
    let mut writer = ResultWriter {
        fence: fence_character(dialect)?,
        own_markers: own_markers(dialect)?,
        built: PromptTextBuilder::new(slice::from_ref(dialect))?,
        text: String::new(),
    };
    for (place, result) in results.iter().enumerate() {
        writer.add(result, place + 1, results.len());
    }
    writer.escape();
    Ok(writer.built.finish())
}

fn own_markers(dialect: &Dialect) -> Result<Vec<String>, DialectError> {
    let is_own = |form: &MarkerForm| matches!(form.usage, MarkerUse::Start(_) | MarkerUse::End(_));
    let forms = dialect.markers()?.into_iter().filter(is_own);
    Ok(forms.map(|form| form.text).collect())
}

/// Returns the first fence character that the escape would not separate.
pub(crate) fn fence_character(dialect: &Dialect) -> Result<char, DialectError> {
    const CHARACTERS: [char; 6] = ['`', '~', '=', '-', '#', '*'];
    let escaper = Escaper::new(dialect)?;
    let is_whole = |character: &char| {
        let fence = character.to_string().repeat(plaincall_syntax::MARKER_LIMIT);
        escaper.escape(&fence) == fence
    };
    Ok(CHARACTERS.into_iter().find(is_whole).unwrap_or('`'))
}

/// Returns a fence line that the text does not contain.
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
    /// The markers that an error may ask the model to write.
    own_markers: Vec<String>,
    built: PromptTextBuilder,
    /// The text that is not escaped yet.
    text: String,
}

impl ResultWriter {
    fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    fn add(&mut self, result: &ResultMessage<'_>, number: usize, count: usize) {
        self.push(&format!("Result {number} of {count}:"));
        let status = result.status.map_or("", Status::name);
        let mut separator = " ";
        for (label, word) in [
            ("tool", result.name.raw()),
            ("id", result.id.raw()),
            ("status", status),
        ] {
            if !word.is_empty() {
                self.push(separator)
                    .push(label)
                    .push(" ")
                    .push(&word_of(word));
                separator = ", ";
            }
        }
        self.push("\n");
        for (label, text) in [("Error", &result.error), ("Note", &result.note)] {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                let is_own = label == "Error" && result.status == Some(Status::Rejected);
                let own = is_own.then(|| self.own_end(text.raw())).flatten();
                self.push(label).content(text.raw(), own);
            }
        }
        match (&result.output, result.whole_bytes) {
            (None, _) => {}
            (Some(output), None) if output.is_empty() => {
                self.push("No output.\n");
            }
            (Some(output), None) => self.push("Output").content(output.raw(), None),
            (Some(output), Some(bytes)) => self
                .push(&format!("Output, truncated from {bytes} bytes"))
                .content(output.raw(), None),
        }
    }

    /// Writes a text after its label: on the same line if it has one line, otherwise between fences. From `own` on, it is not
    /// escaped.
    fn content(&mut self, text: &str, own: Option<usize>) {
        let mut fence = String::new();
        if is_one_line(text) {
            self.push(": ");
        } else {
            fence = fence_around(text, self.fence) + "\n";
            self.push(":\n").push(&fence);
        }
        match own.and_then(|own| text.split_at_checked(own)) {
            Some((found, own)) => {
                self.push(found).escape();
                self.built.trusted(Trusted::assert(format!("{own}\n")));
            }
            None => {
                self.push(text).push("\n");
            }
        }
        self.push(&fence);
    }

    /// Returns where an error continues as a sentence of this program that names the marker to write, and contains no other marker.
    fn own_end(&self, error: &str) -> Option<usize> {
        self.own_markers.iter().find_map(|marker| {
            let own = CallError::own_end(error, marker)?;
            let is_plain = |text| self.built.escape(Untrusted::new(text)) == text;
            error
                .get(own..)?
                .split(&**marker)
                .all(is_plain)
                .then_some(own)
        })
    }

    /// Adds the text so far to the message, escaped.
    fn escape(&mut self) {
        let text = Untrusted::new(std::mem::take(&mut self.text));
        self.built.untrusted(&text);
    }
}

/// Returns `true` if a text is one line that begins and ends with visible characters.
fn is_one_line(text: &str) -> bool {
    let is_break = |c: char| c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}');
    !text.is_empty() && text.trim() == text && !text.contains(is_break)
}
