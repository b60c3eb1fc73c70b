//! What is asked of this one reply.

use std::slice;

use plaincall_call::{Foreign, PassageBuilder};
use plaincall_syntax::{Dialect, DialectError};
use plaincall_wire::openai::ResponseFormat;
use serde_json::Value;

use crate::offer::{Choice, Offer};

/// What stands at the end of the request; `None` if nothing is asked.
///
/// A form is asked for here; a kept one stays in the request, so the server holds the model to it.
pub(super) fn ask(
    choice: &Choice,
    offer: &Offer,
    form: Option<&ResponseFormat<'_>>,
    kept: Option<&ResponseFormat<'_>>,
    dialect: &Dialect,
) -> Result<Option<String>, DialectError> {
    // Where a call must be made, nothing else has a form.
    let form = form.filter(|_| !choice.is_required());
    if *choice == Choice::Auto && form.is_none() {
        return Ok(None);
    }
    // A custom marker may be any word, so our own are escaped too.
    let mut words = PassageBuilder::new(slice::from_ref(dialect))?;
    match choice {
        Choice::Auto => {}
        Choice::None if offer.is_empty() => {}
        Choice::None => {
            // An answer in a form of its own is not one in words.
            let is_text = kept.and_then(|form| form.kind.as_deref()) == Some("text");
            words.foreign(&Foreign::new(if kept.is_none() || is_text {
                "(Call no tool in this reply. Answer in words.)"
            } else {
                "(Call no tool in this reply.)"
            }));
        }
        Choice::Required => {
            words.foreign(&Foreign::new("(Call a tool in this reply.)"));
        }
        Choice::Only { names, is_required } => {
            words.foreign(&Foreign::new(match (is_required, names.len()) {
                (true, 1) => "(In this reply, call the tool ",
                (true, _) => "(In this reply, call one or more of these tools and no others: ",
                (false, _) => "(In this reply, call no tools but these: ",
            }));
            for (place, name) in names.iter().enumerate() {
                if place > 0 {
                    words.foreign(&Foreign::new(", "));
                }
                words.foreign(&Foreign::new(&**name).on_one_line());
            }
            words.foreign(&Foreign::new(".)"));
        }
    }
    if let Some(form) = form {
        add_form(form, &mut words);
    }
    let words = words.finish().into_text();
    Ok(Some(words).filter(|words| !words.is_empty()))
}

/// The form of an answer that is no call.
fn add_form(form: &ResponseFormat<'_>, words: &mut PassageBuilder) {
    let schema = match form.kind.as_deref() {
        Some("json_object") => None,
        Some("json_schema") => {
            let given = form.json_schema.as_ref();
            let given = given.and_then(|json| serde_json::from_str::<Value>(json.text()).ok());
            given.and_then(|mut given| given.get_mut("schema").map(Value::take))
        }
        _ => return,
    };
    if !words.clone().finish().text().is_empty() {
        words.foreign(&Foreign::new("\n"));
    }
    words.foreign(&Foreign::new(
        "(If you call no tool, answer with JSON alone, without a code fence",
    ));
    if let Some(schema) = schema {
        words.foreign(&Foreign::new(". It must fit this JSON Schema: "));
        words.foreign(&Foreign::new(schema.to_string()));
    }
    words.foreign(&Foreign::new(".)"));
}
