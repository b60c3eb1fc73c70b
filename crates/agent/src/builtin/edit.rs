//! `edit_file`: a text in a file in place of another that stands there exactly so.

use std::borrow::Cow;

use memchr::memmem::Finder;
use plaincall::{Context, Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{Stop, blocking};
use crate::builtin::near::near;
use crate::builtin::place::{Place, Written, read_all};
use crate::builtin::replace::{State, replace};
use crate::builtin::spelling::{count, named};
use crate::builtin::text::{LineEnds, line_of, listed, why_binary};

/// How long a file may be, in bytes.
const LONGEST: usize = 16 << 20;
/// How many places are counted where only one may be.
const COUNTED: usize = 100;
/// How many of them are named.
const NAMED: usize = 10;

/// Replaces a text in a file. `old_text` must stand in the file exactly once, with all blanks and line ends.
#[derive(Deserialize, JsonSchema)]
struct EditFile {
    /// The path of the file.
    #[schemars(example = &"src/main.rs")]
    path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers.
    #[schemars(example = &"let a = 1;")]
    old_text: String,
    /// The text to put in its place.
    #[schemars(example = &"let a = 2;")]
    new_text: String,
    /// Whether every occurrence is replaced, however many there are.
    #[serde(default)]
    all: bool,
}

pub(super) fn tool(place: Place) -> Tool {
    let name = BuiltinTool::EditFile.name();
    let directory = place.root.path.clone();
    Tool::new(name, move |edit: EditFile, context: Context| {
        let place = place.clone();
        async move {
            let changing = place.root.changing.clone().lock_owned().await;
            let work = move |stop: &Stop| {
                let _changing = changing;
                edit.apply(&place, stop)
            };
            blocking(&context, work).await
        }
    })
    .effect(Effect::Write)
    .works_in(directory)
}

impl EditFile {
    fn apply(&self, place: &Place, stop: &Stop) -> Result<String, String> {
        let written = place.written(&self.path)?;
        let name = named(&self.path);
        if self.old_text.is_empty() {
            let write = place.has(BuiltinTool::WriteFile);
            let write = write.map_or(String::new(), |write| {
                format!("; `{write}` writes a whole file")
            });
            return Err(format!(
                "`old_text` is empty; write a text that stands in {name}{write}"
            ));
        }
        let (file, about) = place.open(&written)?;
        let state = State::of(&about);
        let trouble = |error| place.trouble(&error, &written, "read");
        let Some(before) = read_all(file, LONGEST).map_err(trouble)? else {
            return Err(format!(
                "{name} is too long to be edited: more than {} MiB; go on without it",
                LONGEST >> 20
            ));
        };
        if let Some(why) = why_binary(&before) {
            return Err(format!("{name} is no text file: {why}; it was not changed"));
        }
        let Some(found) = Found::new(&before, &self.old_text, &self.new_text, self.all) else {
            stop.check()?;
            return Err(format!(
                "`old_text` does not stand in {name}, so nothing was changed. {}",
                near(&before, &self.old_text, stop)
            ));
        };
        if found.old == found.new {
            return Err(
                "`old_text` and `new_text` are the same, so there is nothing to change; go on"
                    .to_owned(),
            );
        }
        if !self.all && found.places.len() > 1 {
            return Err(self.ambiguous(&before, &found.places));
        }
        stop.check()?;
        self.put(place, &written, &before, &found, state, stop)
    }

    fn put(
        &self,
        place: &Place,
        written: &Written,
        before: &[u8],
        found: &Found<'_>,
        state: State,
        stop: &Stop,
    ) -> Result<String, String> {
        let mut after = Vec::with_capacity(before.len());
        let mut done = 0;
        for &at in &found.places {
            after.extend_from_slice(before.get(done..at).unwrap_or_default());
            after.extend_from_slice(found.new.as_bytes());
            done = at + found.old.len();
        }
        after.extend_from_slice(before.get(done..).unwrap_or_default());
        replace(place, written, &after, Some(state), stop)?;
        let lines = lines_of(before, &found.places);
        let lines = format!(
            "at line{} {}",
            if lines.len() == 1 { "" } else { "s" },
            listed(&lines, NAMED)
        );
        let ends = if found.is_converted {
            "; the line ends of the file were kept (CRLF)"
        } else {
            ""
        };
        Ok(format!(
            "changed {}: {} replaced, {lines}{ends}\n",
            named(&self.path),
            count(found.places.len() as u64, "occurrence")
        ))
    }

    fn ambiguous(&self, before: &[u8], places: &[usize]) -> String {
        let lines = lines_of(before, places);
        let times = if places.len() > COUNTED {
            format!("more than {COUNTED} times")
        } else {
            format!("{} times", places.len())
        };
        format!(
            "`old_text` stands in {} {times}, at the lines {}, so nothing was changed; take more of the lines around the right place into `old_text`, or set `all` to true to replace every one",
            named(&self.path),
            listed(&lines, NAMED)
        )
    }
}

/// The lines of these places, each once.
fn lines_of(bytes: &[u8], places: &[usize]) -> Vec<usize> {
    let mut lines: Vec<usize> = places
        .iter()
        .take(COUNTED)
        .map(|&at| line_of(bytes, at))
        .collect();
    lines.dedup();
    lines
}

/// Where the text stands.
struct Found<'t> {
    places: Vec<usize>,
    old: Cow<'t, str>,
    new: Cow<'t, str>,
    /// Whether line ends were written otherwise than in the file.
    is_converted: bool,
}

impl<'t> Found<'t> {
    /// The text as it is written, else with the line ends of the file; `None` if it stands nowhere.
    fn new(bytes: &[u8], old: &'t str, new: &'t str, all: bool) -> Option<Self> {
        let ends = LineEnds::of(bytes);
        let only_crlf = ends.crlf > 0 && ends.lf == 0;
        let mut tries = vec![(Cow::Borrowed(old), Cow::Borrowed(new), false)];
        if ends.crlf > 0 {
            tries.push((with_crlf(old), with_crlf(new), true));
        }
        if only_crlf {
            // What is written without CR is meant with it there.
            tries.reverse();
        }
        if ends.crlf == 0 && old.contains("\r\n") {
            let without = |text: &'t str| Cow::Owned(text.replace("\r\n", "\n"));
            tries.push((without(old), without(new), false));
        }
        tries.into_iter().find_map(|(to_find, to_put, crlf)| {
            let places = places(bytes, to_find.as_bytes(), all);
            let is_converted = crlf && (to_find != old || to_put != new);
            (!places.is_empty()).then_some(Self {
                places,
                old: to_find,
                new: to_put,
                is_converted,
            })
        })
    }
}

/// A text with CRLF wherever a line ends in it.
fn with_crlf(text: &str) -> Cow<'_, str> {
    if text.contains('\n') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Where a text stands: for all, one behind the other; else also where one begins within another, up to a few more than
/// one.
fn places(bytes: &[u8], text: &[u8], all: bool) -> Vec<usize> {
    let finder = Finder::new(text);
    if all {
        return finder.find_iter(bytes).collect();
    }
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() <= COUNTED
        && let Some(at) = bytes.get(from..).and_then(|rest| finder.find(rest))
    {
        places.push(from + at);
        from += at + 1;
    }
    places
}
