//! `plaincall tools check`: check a tools file and show its part of the prompt.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use plaincall::tool::ToolSpec;
use plaincall::{Effect, Rules};
use plaincall_config::{Document, Node, child};
use plaincall_prompt::{PromptOptions, PromptPart, prompt};
use plaincall_report::diagnostics::counted;
use plaincall_report::source::Counter;
use plaincall_syntax::Dialect;
use plaincall_syntax::Severity;

use crate::definitions::{self, DefinitionFile};
use crate::output::{Output, is_quiet};
use crate::sanitize::sanitize;
use crate::status::{Failure, Outcome, Status, print_note};
use crate::terminal::excerpt::{Excerpt, Excerpts};

/// Estimated bytes per token in definitions.
const TOKEN_BYTES: usize = 4;

/// Check a tools file, and show how the tools are presented to a model.
///
/// The file is a `tools.toml`, or JSON in the format of OpenAI, Anthropic or MCP. Errors and warnings are shown in the
/// source. No tool is run. With `--quiet`, only errors and warnings are printed.
///
/// Exit status: 0 without errors, even with warnings; 1 with errors, or if a file cannot be read.
#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// The files to check.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Exit with status 1 on warnings too.
    #[arg(long)]
    deny_warnings: bool,
}

pub(super) fn check(options: &CheckOptions, output: &mut Output) -> Outcome {
    let mut warnings = 0;
    for path in &options.files {
        warnings += check_file(path, output)?;
    }
    output.flush()?;
    Ok(if warnings > 0 && options.deny_warnings {
        Status::Failed
    } else {
        Status::Success
    })
}

fn check_file(path: &Path, output: &mut Output) -> Result<usize, Failure> {
    let DefinitionFile {
        name,
        text,
        tools,
        rules,
        interpreted,
        ..
    } = definitions::load(path)?;
    let locations = Locations::new(&text, rules.is_some());
    let mut warnings = Vec::new();
    for tool in &tools {
        warnings.extend(warnings_about(tool, rules.as_ref(), &locations));
    }
    for (tool, found) in &interpreted {
        warnings.push(Warning {
            code: "interpreted",
            message: format!(
                "`{tool}` passes `{}` to {} as {}, so the model decides what runs",
                found.parameter,
                found.interpreter,
                if found.is_command_line { "a program" } else { "part of a program" }
            ),
            help: if found.is_command_line {
                "rules match it as a command line, word by word; allow the commands you expect, and ask for approval of the rest"
            } else {
                "pass it as data: as an argument after the program (`sh -c 'cat -- \"$1\"' sh {path}`), as a variable (`awk -v`), or on standard input"
            },
            span: locations.of_parameter(tool, &found.parameter),
        });
    }
    let excerpts = Excerpts::new(output.has_color);
    let mut counter = Counter::new(text.as_bytes());
    warnings.sort_by_key(|warning| warning.span.start);
    for warning in &warnings {
        let diagnostic = Excerpt {
            severity: Severity::Warning,
            code: Some(warning.code),
            message: &warning.message,
            help: Some(warning.help),
            note: None,
            position: counter.position(warning.span.start),
            span: warning.span.clone(),
        };
        let excerpt = excerpts.render(&name, &text, &diagnostic);
        output.text(format_args!("{excerpt}\n\n"))?;
    }
    if !is_quiet() {
        output.text(format_args!(
            "{}",
            in_prompt(&name, &tools, warnings.len())?
        ))?;
    }
    Ok(warnings.len())
}

/// Returns the tools as the prompt lists them, and their size in tokens.
fn in_prompt(name: &str, tools: &[ToolSpec], warnings: usize) -> Result<String, Failure> {
    let prompt = prompt(tools, &Dialect::block().escaped(), &PromptOptions::new())
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    for skipped in prompt.skipped_examples() {
        print_note(skipped);
    }
    let list = prompt
        .parts()
        .iter()
        .find(|(part, _)| *part == PromptPart::Tools)
        .map_or(0..0, |(_, span)| span.start..span.end);
    let list = prompt.text().get(list).unwrap_or_default().trim_end();
    Ok(format!(
        "{}\n\n{}: {}, {}; the prompt has the lines above (about {} tokens) and instructions for writing calls (about {} tokens)\n",
        sanitize(list),
        sanitize(name),
        counted(tools.len(), "tool"),
        counted(warnings, "warning"),
        list.len().div_ceil(TOKEN_BYTES),
        (prompt.text().len() - list.len()).div_ceil(TOKEN_BYTES)
    ))
}

/// A warning about a tool.
struct Warning {
    code: &'static str,
    message: String,
    help: &'static str,
    span: Range<usize>,
}

fn warnings_about(
    tool: &ToolSpec,
    rules: Option<&Rules>,
    locations: &Locations<'_>,
) -> Vec<Warning> {
    let name = &tool.name;
    let mut warnings = Vec::new();
    let mut warning = |code, message: String, help| {
        warnings.push(Warning {
            code,
            message,
            help,
            span: locations.of(name),
        });
    };
    if tool.description.trim().is_empty() {
        warning(
            "no_description",
            format!("`{name}` has no description, so the model knows only its name"),
            "describe in one sentence what it does and when to use it",
        );
    }
    if let Some(rules) = rules
        && tool.effect == Effect::Write
    {
        if locations.get(name, "/effect").is_none() {
            warning(
                "no_effect",
                format!("`{name}` has no effect; the default is `write`, which needs approval"),
                "set `effect = \"read\"` if it changes nothing, or `effect = \"write\"` if it does",
            );
        }
        let has_rule = rules
            .iter()
            .any(|rule| rule.tools.iter().any(|pattern| pattern.matches(name)));
        if !has_rule {
            warning(
                "write_without_rule",
                format!(
                    "`{name}` may change something, and no rule matches it, so it never runs without a terminal"
                ),
                "add a rule that allows harmless calls or denies harmful ones",
            );
        }
    }
    warnings
}

/// Finds the locations of tools in their file.
struct Locations<'t> {
    text: &'t str,
    /// The tables of a `tools.toml`.
    tools: Option<Node>,
}

impl<'t> Locations<'t> {
    fn new(text: &'t str, is_toml: bool) -> Self {
        let document = is_toml.then(|| Document::toml("", text));
        let tools = document.and_then(|document| document.root().get("/tools").cloned());
        Self { text, tools }
    }

    /// Returns the span of the tool's name in its definition.
    fn of(&self, name: &str) -> Range<usize> {
        if let Some(table) = self.get(name, "") {
            return table.key.clone();
        }
        // In JSON, use the first string equal to the name, which is usually the definition.
        let quoted = serde_json::to_string(name).unwrap_or_default();
        match self.text.find(&quoted) {
            Some(at) => at..at + quoted.len(),
            None => 0..0,
        }
    }

    /// Returns the span of a placeholder in the tool's command.
    fn of_parameter(&self, name: &str, parameter: &str) -> Range<usize> {
        let placeholder = format!("{{{parameter}}}");
        let found = ["/command", "/shell"].iter().find_map(|key| {
            let span = &self.get(name, key)?.span;
            let at = span.start + self.text.get(span.clone())?.find(&placeholder)?;
            Some(at..at + placeholder.len())
        });
        found.unwrap_or_else(|| self.of(name))
    }

    /// Returns the table of a tool, or the value at this pointer in it.
    fn get(&self, name: &str, pointer: &str) -> Option<&Node> {
        let tools = self.tools.as_ref()?;
        tools.get(&format!("{}{pointer}", child("", name)))
    }
}
