//! Saving a conversation to a file.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use plaincall::private;
use plaincall_agent::model::{Message, Role};
use serde_json::json;

use crate::status::reason;

/// Writes the conversation to a new file that only its owner can read: JSON if the name ends with `.json`, else text.
pub(super) fn save(path: &Path, messages: &[Message]) -> Result<(), String> {
    let text = if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        let messages: Vec<_> = messages
            .iter()
            .map(|message| json!({"role": message.role.name(), "content": &*message.text}))
            .collect();
        let mut text =
            serde_json::to_string_pretty(&messages).map_err(|error| error.to_string())?;
        text.push('\n');
        text
    } else {
        as_text(messages)
    };
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("{} already exists; name another file", path.display())
        }
        _ => format!("cannot write {}: {}", path.display(), reason(&error)),
    };
    private::open(path, OpenOptions::new().write(true).create_new(true))
        .map_err(failed)?
        .write_all(text.as_bytes())
        .map_err(failed)
}

/// Formats the messages without the system prompt.
fn as_text(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let heading = match message.role {
            Role::System => continue,
            Role::User => "To the model",
            Role::Assistant => "The model",
        };
        text.push_str("## ");
        text.push_str(heading);
        text.push_str("\n\n");
        text.push_str(message.text.trim_end());
        text.push_str("\n\n");
    }
    text
}
