//! The tools' definitions, from a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use plaincall::{Policy, Rules, Tool, ToolSpec, Toolbox};
use plaincall_call::Severity;

use crate::excerpt::{Excerpts, Remark};
use crate::input::Input;
use crate::status::Failure;

/// How many mistakes are shown of a file that is not even TOML, where one leads to the next.
const SHOWN: usize = 5;

/// Where the definitions of the tools are.
#[derive(Args, Clone, Debug)]
pub(crate) struct ToolsOption {
    /// The file with the definitions of the tools (`tools.toml`).
    ///
    /// Nothing in it is run by this command. A file is only read if it is named here.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
}

impl ToolsOption {
    /// The tools, if a file is named.
    ///
    /// # Errors
    /// The file cannot be read, or has mistakes; these are shown on standard error.
    pub(crate) fn load(&self) -> Result<Option<Tools>, Failure> {
        self.tools.as_deref().map(load).transpose()
    }
}

/// The definitions of tools, by name.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    toolbox: Toolbox,
    /// What the file says about runs.
    pub(crate) policy: Policy,
    /// What it says about who may run.
    pub(crate) rules: Rules,
    /// The CRC-32 of the file's text.
    pub(crate) crc32: u32,
}

impl Tools {
    /// All of them, and the built-in tool that reads on in long results, unless the file defines one of its name.
    pub(crate) fn toolbox_for_running(&self) -> Toolbox {
        let mut toolbox = self.toolbox.clone();
        // It is refused if there is one of this name.
        let _ = toolbox.add(Tool::read_result());
        toolbox
    }

    /// The definition of the tool of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.toolbox.get(name).map(Tool::spec)
    }
}

/// Reads a file of tools. Shows its mistakes, each in the line where it stands.
pub(crate) fn load(path: &Path) -> Result<Tools, Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let text = String::from_utf8(input.into_bytes()?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        let line = before.filter(|&&byte| byte == b'\n').count() + 1;
        Failure::Broken(format!(
            "cannot read {name}: line {line} is not UTF-8 text; save the file as UTF-8"
        ))
    })?;
    // The folder of the file has a meaning in it, so the path has to be a whole one.
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let file = plaincall::read_tools(&text, whole).map_err(|error| {
        let count = error.mistakes.len();
        let shown = if error.is_toml {
            count
        } else {
            count.min(SHOWN)
        };
        for mistake in error.mistakes.iter().take(shown) {
            show(&name, &text, mistake);
        }
        let mistakes = if count == 1 {
            "a mistake".to_owned()
        } else {
            format!("{count} mistakes")
        };
        let question = if shown < count {
            format!(" (the first {shown} are shown); is this a tools file?")
        } else {
            String::new()
        };
        Failure::Broken(format!(
            "{name} has {mistakes}, so its tools are not known{question}"
        ))
    })?;
    let toolbox =
        Toolbox::new(file.tools).map_err(|error| Failure::Broken(format!("{name}: {error}")))?;
    Ok(Tools {
        toolbox,
        policy: file.policy,
        rules: file.rules,
        crc32: crc32fast::hash(text.as_bytes()),
    })
}

fn show(name: &str, text: &str, mistake: &plaincall::Mistake) {
    let mut stderr = anstream::stderr();
    let excerpt = Excerpts::new(true).render(
        name,
        text,
        &Remark {
            severity: Severity::Error,
            code: None,
            message: &mistake.message,
            help: None,
            span: mistake.span.clone(),
            position: (mistake.line, mistake.column),
        },
    );
    // There is nobody left to tell if standard error is closed.
    let _ = writeln!(stderr, "{excerpt}\n");
}
