//! `write_file`: writes a whole file.

use plaincall::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{CallScope, file_tool};
use crate::builtin::replace::replace;
use crate::builtin::spelling::named;
use crate::builtin::text::{LineEnds, why_binary};
use crate::builtin::workspace::{Workspace, read_all};
use crate::text::count;

/// The largest file that is compared, in bytes.
const LONGEST: usize = 16 << 20;

/// Writes a whole file; replaces an existing one. Creates parent directories.
#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// The path of the file.
    #[schemars(example = &"src/main.rs")]
    path: String,
    /// The whole text of the file.
    content: String,
}

/// The effect is `Write`, although a repeated call has the same result: the earlier content is lost.
pub(super) fn tool(workspace: Workspace) -> Tool {
    let tool = BuiltinTool::WriteFile;
    let tool = file_tool(workspace, tool, Effect::Write, WriteFile::write);
    tool.positional(["path"]).body("content")
}

impl WriteFile {
    fn write(&self, scope: &CallScope<'_>) -> Result<String, String> {
        let written = scope.written(&self.path)?;
        let content = self.content.as_bytes();
        let name = named(&self.path);
        let changes = match scope.workspace.open(&written) {
            Ok((file, _)) => match read_all(file, LONGEST) {
                Ok(Some(before)) => self.changes(&before, &name)?,
                _ => String::new(),
            },
            Err(_) => String::new(),
        };
        let before = replace(scope.workspace, &written, content, None, scope.stop)?;
        let bytes = count(self.content.len(), "byte");
        let end = if self.content.is_empty() || self.content.ends_with('\n') {
            ""
        } else {
            "; no newline at end of file"
        };
        Ok(match before {
            None => format!("created {name}: {bytes}{end}\n"),
            Some(before) => {
                format!("replaced {name}: {bytes}, previously {before}{end}{changes}\n")
            }
        })
    }

    /// Returns what changes beside the text.
    ///
    /// # Errors
    /// Returns an error if U+FFFD would overwrite bytes that are shown as it.
    fn changes(&self, before: &[u8], name: &str) -> Result<String, String> {
        let was_binary = why_binary(before).is_some();
        let has_other_bytes = !was_binary && std::str::from_utf8(before).is_err();
        if has_other_bytes && self.content.contains('\u{fffd}') {
            return Err(format!(
                "{name} has bytes that are not UTF-8, which `read_file` shows as \u{fffd}; `content` has this character, and would overwrite them. Nothing was changed; change single places with `edit_file`"
            ));
        }
        let (old, new) = (LineEnds::of(before), LineEnds::of(self.content.as_bytes()));
        let mut changes = String::new();
        if was_binary {
            changes.push_str("; the file was not UTF-8 text before");
        }
        if has_other_bytes && !self.content.is_ascii() {
            changes.push_str("; the file is now UTF-8");
        }
        if old.crlf > 0 && old.lf == 0 && new.crlf == 0 && new.lf > 0 {
            changes.push_str("; line endings changed from CRLF to LF");
        }
        if before.starts_with("\u{feff}".as_bytes()) && !self.content.starts_with('\u{feff}') {
            changes.push_str("; the byte order mark was removed");
        }
        Ok(changes)
    }
}
