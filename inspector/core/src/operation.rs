//! The operations of the page.

use plaincall_report::log;
use serde::{Deserialize, Serialize};

use crate::detect::detect;
use crate::replay::{every_split, replay};
use crate::reply::{calls, reply};
use crate::settings::{Inspected, Settings};
use crate::texts;

#[derive(Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
enum Operation {
    /// The detection of a log, of tools or of a dialect.
    Detect { no_reasoning: bool },
    /// The trace of a log, which is the reply.
    Log,
    /// The interpretation of a reply's bytes.
    Reply { settings: Settings },
    /// The calls of a reply.
    Calls { settings: Settings },
    /// The calls as a client gets them.
    Json { settings: Settings },
    /// A moment after some chunks.
    Replay {
        settings: Settings,
        size: usize,
        chunks: usize,
    },
    /// Tries some of the splits.
    Splits {
        settings: Settings,
        from: usize,
        count: usize,
    },
    /// The system prompt.
    Prompt { settings: Settings },
    /// The message about invalid calls.
    Repair { settings: Settings },
    /// A grammar.
    Grammar { settings: Settings, engine: String },
}

/// Performs an operation, and returns its output as JSON.
pub(crate) fn perform(operation: &[u8], tools: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
    let operation = serde_json::from_slice(operation).map_err(|error| error.to_string())?;
    let inspect = |settings: Settings| Inspected::new(settings, tools, text);
    match operation {
        Operation::Detect { no_reasoning } => json(&detect(text, no_reasoning)),
        Operation::Log => {
            let (trace, _) = log::trace(text).map_err(|error| error.to_string())?;
            json(&trace)
        }
        Operation::Reply { settings } => json(&reply(&inspect(settings)?)?),
        Operation::Calls { settings } => json(&calls(&inspect(settings)?)?),
        Operation::Json { settings } => json(&texts::tool_calls(&inspect(settings)?)?),
        Operation::Replay {
            settings,
            size,
            chunks,
        } => json(&replay(&inspect(settings)?, size, chunks)?),
        Operation::Splits {
            settings,
            from,
            count,
        } => json(&every_split(&inspect(settings)?, from, count)?),
        Operation::Prompt { settings } => json(&texts::prompt_text(&inspect(settings)?)?),
        Operation::Repair { settings } => json(&texts::repair(&inspect(settings)?)?),
        Operation::Grammar { settings, engine } => {
            json(&texts::grammar_text(&inspect(settings)?, &engine)?)
        }
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(value).map_err(|error| error.to_string())
}
