//! Applies the rules of a run to files that a call does not name: behind a link, or in a searched directory.

use std::path::Path;
use std::sync::Arc;

use plaincall::rules::Verdict;
use plaincall::tool::{Arguments, ToolSpec};
use plaincall::{Context, Effect, Request, Tool};

use crate::builtin::BuiltinTool;
use crate::builtin::spelling::named;
use crate::builtin::workspace::{RelPath, Workspace};

pub(super) struct PathRules<'c> {
    context: &'c Context,
    /// The called tool and, if it shows file contents, `read_file`; empty without rules.
    tools: Vec<Tool>,
    /// Whether this call was approved because a rule requires it.
    was_asked: bool,
}

impl<'c> PathRules<'c> {
    pub(super) fn new(
        context: &'c Context,
        workspace: &Workspace,
        tool: BuiltinTool,
        path: &str,
    ) -> Self {
        let mut rules = Self {
            context,
            tools: Vec::new(),
            was_asked: false,
        };
        if !context.has_rules() {
            return rules;
        }
        let named = |tool: BuiltinTool| {
            let effect = match tool {
                BuiltinTool::WriteFile | BuiltinTool::EditFile => Effect::Write,
                _ => Effect::Read,
            };
            let spec = ToolSpec::new(tool.name()).effect(effect);
            let nothing = |_, _| async { Ok(String::new()) };
            Tool::raw(spec, nothing).path_below("path", &workspace.root.path)
        };
        rules.tools.push(named(tool));
        if tool == BuiltinTool::SearchFiles {
            rules.tools.push(named(BuiltinTool::ReadFile));
        }
        rules.was_asked = rules.verdict(0, path) == Some(Verdict::Ask);
        rules
    }

    fn verdict(&self, tool: usize, path: &str) -> Option<Verdict> {
        let arguments = Arguments::from_pairs([("path", path)]).ok()?;
        let request = Request::of(self.tools.get(tool)?, Arc::new(arguments));
        self.context.verdict(&request)
    }

    pub(super) fn hides(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        (0..self.tools.len()).any(|tool| match self.verdict(tool, &path) {
            Some(Verdict::Deny { .. }) => true,
            Some(Verdict::Ask) => !self.was_asked,
            Some(Verdict::Allow) | None => false,
        })
    }

    pub(super) fn check(&self, workspace: &Workspace, written: &RelPath) -> Result<(), String> {
        if self.tools.is_empty() {
            return Ok(());
        }
        let path = workspace.behind_links(&written.path);
        if !self.hides(&path) {
            return Ok(());
        }
        Err(format!(
            "{} leads to {}, and a rule denies access to it",
            named(&written.text),
            named(&path)
        ))
    }
}
