//! How calls ended, from the record of a run.

use std::collections::BTreeMap;
use std::path::Path;

use plaincall_call::{CallStatus, Foreign, ToldResult, results};
use plaincall_syntax::Dialect;
use serde::Deserialize;
use serde_json::Value;

use crate::input::Input;
use crate::reading::refused;
use crate::render::sink::Sink;
use crate::status::{Failure, Outcome, Status};

/// A result, as the record of a run has it (`spec/log.md`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Ended {
    name: String,
    id: String,
    status: Option<String>,
    output: Option<String>,
    whole_bytes: Option<u64>,
    error: Option<String>,
    note: Option<String>,
}

/// What of a record's line matters here.
#[derive(Deserialize)]
struct Line {
    event: String,
    call: Option<u64>,
}

/// The calls of a turn, in the order of their appearance.
type Turn = BTreeMap<u64, Ended>;

/// Tells the results of a record, turn by turn, or those of a list.
pub(super) fn file(file: &Path, dialect: &Dialect, sink: &mut Sink<'_>) -> Outcome {
    let input = Input::open(file)?;
    let name = input.name.clone();
    let bytes = input.into_bytes()?;
    let mut turn = Turn::new();
    let mut number = 0;
    for (index, value) in serde_json::Deserializer::from_slice(&bytes)
        .into_iter::<Value>()
        .enumerate()
    {
        let wrong = |error: serde_json::Error| {
            Failure::Broken(format!(
                "{name}, value {}: {error}; what is read is the record that `plaincall run --json` prints, or a list of results",
                index + 1
            ))
        };
        let value = value.map_err(wrong)?;
        if value.is_array() {
            let ended: Vec<Ended> = serde_json::from_value(value).map_err(wrong)?;
            let list = (0..).zip(ended).collect();
            tell(&list, &name, dialect, sink)?;
            continue;
        }
        let line = Line::deserialize(&value).map_err(wrong)?;
        match (line.event.as_str(), line.call) {
            ("turn", _) => {
                tell(&std::mem::take(&mut turn), &label(number), dialect, sink)?;
                number += 1;
            }
            // A call of which nothing more is known, until its result comes.
            ("call", Some(call)) => {
                let appeared = Ended::deserialize(&value).map_err(wrong)?;
                turn.insert(
                    call,
                    Ended {
                        status: Some(CallStatus::Unknown.name().to_owned()),
                        error: Some("the record ends before its result".to_owned()),
                        ..appeared
                    },
                );
            }
            ("result", Some(call)) => {
                turn.insert(call, Ended::deserialize(&value).map_err(wrong)?);
            }
            _ => {}
        }
    }
    tell(&turn, &label(number), dialect, sink)?;
    Ok(Status::Good)
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
    fn told(&self) -> ToldResult<'_> {
        let foreign = |text: &Option<String>| text.clone().map(Foreign::new);
        ToldResult {
            name: Foreign::new(&self.name),
            id: Foreign::new(&self.id),
            status: self.status.as_deref().and_then(CallStatus::from_name),
            error: foreign(&self.error),
            note: foreign(&self.note),
            output: foreign(&self.output),
            whole_bytes: self.whole_bytes,
        }
    }
}
