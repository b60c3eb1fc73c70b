//! How calls ended, from the record of a run.

use std::collections::BTreeMap;
use std::path::Path;

use plaincall_call::{CallStatus, Foreign, ToldResult, results};
use plaincall_syntax::Dialect;
use serde_json::{Map, Value};

use crate::commands::render::json_member;
use crate::commands::render::sink::Sink;
use crate::status::{Failure, Outcome, Status};
use crate::text::input::{Input, without_mark};
use crate::text::json_place::no_json;
use crate::text::reading::refused;

/// How a call ended, as the record of a run has it (`spec/log.md`).
struct Ended {
    name: String,
    id: String,
    status: Option<CallStatus>,
    output: Option<String>,
    whole_bytes: Option<u64>,
    error: Option<String>,
    note: Option<String>,
}

/// The calls of a turn, in the order of their appearance.
type Turn = BTreeMap<u64, Ended>;

/// What has been read of a record.
#[derive(Default)]
struct Record {
    turn: Turn,
    /// How many turns have begun.
    count: u64,
}

/// Tells the results of a record, turn by turn, or those of a list.
///
/// What stands before a mistake is told, as of a record that a crash has cut.
pub(super) fn file(file: &Path, dialect: &Dialect, sink: &mut Sink<'_>) -> Outcome {
    let input = Input::open(file)?;
    let name = input.name.clone();
    let bytes = input.into_bytes()?;
    let mut record = Record::default();
    let mut mistake = bytes
        .trim_ascii()
        .is_empty()
        .then(|| format!("{name} is empty: there are no results in it"));
    let values = serde_json::Deserializer::from_slice(without_mark(&bytes)).into_iter::<Value>();
    for (index, value) in values.enumerate() {
        let read = match value {
            Ok(Value::Array(list)) => list_of(list).map(|list| Some((list, name.clone()))),
            Ok(value) => record.line(value),
            Err(error) => Err(format!("not JSON: {}", no_json(&error))),
        };
        match read {
            Ok(Some((turn, label))) => tell(&turn, &label, dialect, sink)?,
            Ok(None) => {}
            Err(reason) => {
                mistake = Some(format!(
                    "{name}, value {}: {reason}; what is read is the record that `plaincall run --json` prints, or a list of results",
                    index + 1
                ));
                break;
            }
        }
    }
    tell(&record.turn, &label(record.count), dialect, sink)?;
    match mistake {
        Some(mistake) => Err(Failure::Broken(mistake)),
        None => Ok(Status::Good),
    }
}

/// The results of a list.
fn list_of(list: Vec<Value>) -> Result<Turn, String> {
    let mut turn = Turn::new();
    for (index, value) in (0..).zip(list) {
        let result = json_member::object(value).and_then(|mut result| {
            if !result.contains_key("name") && !result.contains_key("id") {
                return Err("it has neither a `name` nor an `id`".to_owned());
            }
            Ended::read(&mut result)
        });
        let result = result.map_err(|reason| format!("result {}: {reason}", index + 1))?;
        turn.insert(index, result);
    }
    Ok(turn)
}

impl Record {
    /// Takes a line of the record. The line that begins a turn gives the one before.
    fn line(&mut self, value: Value) -> Result<Option<(Turn, String)>, String> {
        let mut line = json_member::object(value)?;
        let Some(event) = json_member::text(&mut line, "event")? else {
            return Err("it has no `event`".to_owned());
        };
        match event.as_str() {
            "turn" => {
                let done = (std::mem::take(&mut self.turn), label(self.count));
                self.count += 1;
                return Ok(Some(done));
            }
            // A call of which nothing more is known, until its result comes.
            "call" => {
                let appeared = Ended {
                    status: Some(CallStatus::Unknown),
                    error: Some("the record ends before its result".to_owned()),
                    ..Ended::read(&mut line)?
                };
                self.turn.insert(number(&mut line)?, appeared);
            }
            "result" => {
                let ended = Ended::read(&mut line)?;
                self.turn.insert(number(&mut line)?, ended);
            }
            _ => {}
        }
        Ok(None)
    }
}

/// The number of the call that a line is about.
fn number(line: &mut Map<String, Value>) -> Result<u64, String> {
    json_member::count(line, "call")?.ok_or_else(|| "it has no `call`".to_owned())
}

fn label(turn: u64) -> String {
    format!("turn {turn}")
}

fn tell(turn: &Turn, label: &str, dialect: &Dialect, sink: &mut Sink<'_>) -> Result<(), Failure> {
    if turn.is_empty() {
        return Ok(());
    }
    let told: Vec<ToldResult<'_>> = turn.values().map(Ended::told).collect();
    let passage = results(&told, dialect).map_err(|error| refused(&error))?;
    sink.piece(label, passage.text().as_bytes())
}

impl Ended {
    fn read(object: &mut Map<String, Value>) -> Result<Self, String> {
        let status = match json_member::text(object, "status")? {
            None => None,
            Some(name) => Some(CallStatus::from_name(&name).ok_or_else(|| {
                let names: Vec<&str> = CallStatus::ALL.iter().map(|one| one.name()).collect();
                format!("its `status` is none of `{}`", names.join("`, `"))
            })?),
        };
        Ok(Self {
            name: json_member::text(object, "name")?.unwrap_or_default(),
            id: json_member::text(object, "id")?.unwrap_or_default(),
            status,
            output: json_member::text(object, "output")?,
            whole_bytes: json_member::count(object, "whole_bytes")?,
            error: json_member::text(object, "error")?,
            note: json_member::text(object, "note")?,
        })
    }

    fn told(&self) -> ToldResult<'_> {
        let foreign = |text: &Option<String>| text.clone().map(Foreign::new);
        ToldResult {
            name: Foreign::new(&self.name),
            id: Foreign::new(&self.id),
            status: self.status,
            error: foreign(&self.error),
            note: foreign(&self.note),
            output: foreign(&self.output),
            whole_bytes: self.whole_bytes,
        }
    }
}
