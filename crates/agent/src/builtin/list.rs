//! `list_files`: lists a directory.

use std::path::Path;

use plaincall::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{CallScope, file_tool};
use crate::builtin::glob::Glob;
use crate::builtin::spelling::{last_line, named, spelled};
use crate::builtin::walk::{DEEPEST, Entry, Kind, Step, walk};
use crate::builtin::workspace::{Target, Workspace};
use crate::text::count;

const WHAT: &str = "listed";
const LINES: usize = 1_000;
/// How much is shown, in bytes.
const SHOWN: usize = 48 << 10;

/// Lists the files and directories in a directory, with file sizes.
#[derive(Deserialize, JsonSchema)]
struct ListFiles {
    /// The directory.
    #[serde(default = "here")]
    #[schemars(example = &"src")]
    path: String,
    /// Only files that match this glob, at any depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", example = &"*.rs")]
    glob: Option<String>,
    /// Depth of subdirectories. Default: 1; with `glob`, unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize", range(min = 1, max = 64))]
    depth: Option<usize>,
}

/// The directory itself.
pub(super) fn here() -> String {
    ".".to_owned()
}

pub(super) fn tool(workspace: Workspace) -> Tool {
    let tool = BuiltinTool::ListFiles;
    file_tool(workspace, tool, Effect::Read, ListFiles::list).positional(["path", "glob", "depth"])
}

impl ListFiles {
    fn list(&self, scope: &CallScope<'_>) -> Result<String, String> {
        let workspace = scope.workspace;
        scope.written(&self.path)?;
        let glob = self.glob.as_deref().map(Glob::new).transpose()?;
        let (written, there) = workspace.find(&self.path, WHAT)?;
        let dir = match there {
            Target::Directory(dir) => dir,
            Target::Other(about) => {
                return Err(format!(
                    "{} is not a directory ({})",
                    named(&written.text),
                    count(about.len(), "byte")
                ));
            }
        };
        let depth = self
            .depth
            .unwrap_or(if glob.is_some() { DEEPEST } else { 1 });
        let mut lines = List::default();
        let mut visit = |entry: &Entry<'_>| {
            let is_shown = glob
                .as_ref()
                .is_none_or(|glob| entry.kind != Kind::Directory && glob.fits(entry.path));
            if !is_shown {
                return Ok(Step::On);
            }
            Ok(lines.add(&line(entry)))
        };
        let trouble = |error| workspace.trouble(&error, &written, WHAT);
        let left = walk(dir, &written.path, depth, scope.stop, trouble, &mut visit)?;
        let mut notes = left.notes();
        if lines.is_full {
            notes.push(format!(
                "more than these {} exist; use a deeper `path` or a `glob`",
                lines.count
            ));
        } else if lines.count == 0 {
            notes.push(match &self.glob {
                Some(glob) => format!("no file matches {}", named(glob)),
                None => "the directory is empty".to_owned(),
            });
        }
        Ok(lines.text + &last_line(&notes))
    }
}

#[derive(Default)]
struct List {
    text: String,
    count: usize,
    is_full: bool,
}

impl List {
    fn add(&mut self, line: &str) -> Step {
        if self.count >= LINES || self.text.len() + line.len() >= SHOWN {
            self.is_full = true;
            return Step::Enough;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
        Step::On
    }
}

fn line(entry: &Entry<'_>) -> String {
    let name = spelled(entry.path);
    match entry.kind {
        Kind::Directory => format!("{name}/"),
        Kind::File => match entry.dir.symlink_metadata(entry.name) {
            Ok(about) => format!("{name} ({})", count(about.len(), "byte")),
            Err(_) => name,
        },
        Kind::Link => {
            let target = entry.dir.read_link_contents(entry.name);
            let target = target.as_deref().unwrap_or(Path::new("?"));
            format!("{name} -> {}", spelled(target))
        }
        Kind::Other(what) => format!("{name} ({what})"),
    }
}
