//! `write_file`: writes a whole file.

use plaincall::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{CallScope, file_tool};
use crate::builtin::replace::replace;
use crate::builtin::spelling::named;
use crate::builtin::workspace::Workspace;
use crate::text::count;

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
        let before = replace(scope.workspace, &written, content, None, scope.stop)?;
        let name = named(&self.path);
        let bytes = count(self.content.len(), "byte");
        let end = if self.content.is_empty() || self.content.ends_with('\n') {
            ""
        } else {
            "; no newline at end of file"
        };
        Ok(match before {
            None => format!("created {name}: {bytes}{end}\n"),
            Some(before) => format!("replaced {name}: {bytes}, previously {before}{end}\n"),
        })
    }
}
