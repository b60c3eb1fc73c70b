//! One call of a command: the argument vector, the environment and the input that come of a call's arguments.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use plaincall_call::Arguments;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::interpreted::Interpreted;
use crate::process::{Finished, Job, Program, run};
use crate::process_input::Input;
use crate::result::{Status, StatusName};
use crate::run_directory::Directories;
use crate::template::Piece;
use crate::tool_error::{Failure, ToolResult, Work};

/// The environment variables that every command sees, besides those that begin with `LC_`.
const ALWAYS_SEEN: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// What begins the names of the variables that tell a command about its call.
pub(crate) const OWN_PREFIX: &str = "PLAINCALL_";

#[derive(Clone, Debug)]
pub(crate) enum Line {
    Program(Vec<Vec<Piece>>),
    Shell(Script),
    /// The parameter whose text is the script.
    Written(Piece),
}

/// A script and its parameters, from `${1}` on.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) text: String,
    pub(crate) parameters: Vec<Piece>,
}

impl Script {
    pub(crate) fn new(pieces: Vec<Piece>) -> Self {
        let mut script = Self {
            text: String::new(),
            parameters: Vec::new(),
        };
        for piece in pieces {
            if let Piece::Text(text) = piece {
                script.text.push_str(&text);
                continue;
            }
            let known = script.parameters.iter().position(|known| *known == piece);
            let place = known.unwrap_or(script.parameters.len());
            if known.is_none() {
                script.parameters.push(piece);
            }
            let _ = write!(script.text, "${{{}}}", place + 1);
        }
        script
    }
}

const SHELL: &str = "/bin/sh";

/// How much of a command's standard error the model reads, in bytes from the end.
const ERROR_LIMIT: usize = 4096;

/// How much longer than its grace a command may take to be gone at most.
pub(crate) const MARGIN: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    pub(crate) line: Line,
    pub(crate) directory: Vec<Piece>,
    pub(crate) tools_directory: PathBuf,
    pub(crate) environment: Vec<String>,
    pub(crate) output_limit: usize,
    pub(crate) keeps_both_ends: bool,
    pub(crate) interpreted: Vec<Interpreted>,
}

/// The beginning of what a command finds on its standard input.
#[derive(Serialize)]
struct AboutCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: Value,
}

/// The beginning of what it is told about a call that its own depends on.
#[derive(Serialize)]
struct AboutDependency<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(with = "StatusName")]
    status: Status,
}

impl Invocation {
    pub(crate) fn start(&self, arguments: &Arguments, context: Context) -> Work {
        let job = self.job(arguments, &context);
        Box::pin(async move {
            let job = job?;
            let program = job.program.clone();
            let finished = run(job, context.cancellation()).await;
            outcome(finished.map_err(|error| failure(program.why_not_started(&error)))?)
        })
    }

    /// What would be run with these arguments, as people write it.
    pub(crate) fn text(&self, arguments: &Arguments) -> Option<String> {
        let fill = Fill {
            arguments,
            directories: &Directories {
                current: "{directory:current}".into(),
                run: Some("{directory:run}".into()),
            },
            tools_directory: &self.tools_directory,
        };
        // What cannot be filled in keeps the call from starting; there is no line to show.
        let text = match &self.line {
            Line::Program(elements) => {
                let words = fill.elements(elements).ok()?;
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                words.join(" ")
            }
            Line::Shell(script) => {
                let mut text = script.text.trim_end().to_owned();
                for (place, parameter) in script.parameters.iter().enumerate() {
                    let value = fill.piece(parameter).ok()?.unwrap_or_default();
                    let _ = write!(text, "\n# ${{{}}} is {}", place + 1, quoted(&value));
                }
                text
            }
            Line::Written(parameter) => {
                let script = fill.piece(parameter).ok()??;
                script.to_string_lossy().trim_end().to_owned()
            }
        };
        Some(text)
    }

    pub(crate) fn directory(&self, directories: &Directories) -> Option<PathBuf> {
        let fill = Fill {
            // The working directory comes from no argument.
            arguments: &Arguments::default(),
            directories,
            tools_directory: &self.tools_directory,
        };
        fill.whole(&self.directory).ok().map(PathBuf::from)
    }

    /// Whether it cannot do without the directory that this placeholder names.
    pub(crate) fn needs(&self, directory: &Piece) -> bool {
        let pieces: Box<dyn Iterator<Item = &Piece>> = match &self.line {
            Line::Program(elements) => Box::new(elements.iter().flatten()),
            Line::Shell(script) => Box::new(script.parameters.iter()),
            Line::Written(parameter) => Box::new(std::iter::once(parameter)),
        };
        pieces
            .chain(&self.directory)
            .any(|piece| piece == directory)
    }

    fn job(&self, arguments: &Arguments, context: &Context) -> Result<Job, Failure> {
        let fill = Fill {
            arguments,
            directories: &context.shared.directories(),
            tools_directory: &self.tools_directory,
        };
        let mut line = match &self.line {
            Line::Program(elements) => fill.elements(elements)?,
            Line::Shell(script) => {
                let mut line = vec![
                    SHELL.into(),
                    "-c".into(),
                    script.text.clone().into(),
                    SHELL.into(),
                ];
                for parameter in &script.parameters {
                    line.push(fill.piece(parameter)?.unwrap_or_default());
                }
                line
            }
            Line::Written(parameter) => {
                // On the line of the script, so that the shell counts its lines as they were written.
                let mut script = OsString::from("exec 2>&1; ");
                script.push(fill.piece(parameter)?.unwrap_or_default());
                vec![SHELL.into(), "-c".into(), script]
            }
        };
        let program = if line.is_empty() {
            OsString::new()
        } else {
            line.remove(0)
        };
        let input = match self.line {
            // What a model writes expects nobody at its keyboard, and no JSON either.
            Line::Written(_) => Input::default(),
            Line::Program(_) | Line::Shell(_) => input(arguments, context)?,
        };
        Ok(Job {
            program: Program {
                program,
                arguments: line,
                directory: fill.whole(&self.directory)?.into(),
                environment: self.environment(context),
            },
            input,
            output_limit: self.output_limit,
            keeps_both_ends: self.keeps_both_ends,
            error_limit: ERROR_LIMIT,
            grace: context.grace,
        })
    }

    fn environment(&self, context: &Context) -> Vec<(OsString, OsString)> {
        let is_seen = |name: &OsString| {
            is_inherited_variable(name) || self.environment.iter().any(|seen| name == seen.as_str())
        };
        let given = context.shared.environment.iter();
        let mut variables: Vec<(OsString, OsString)> = given
            .filter(|(name, _)| is_seen(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut set = |name: &str, value: OsString| {
            variables.push((format!("{OWN_PREFIX}{name}").into(), value));
        };
        set("ID", context.id().into());
        set("NAME", context.name().into());
        if let Some(directory) = context.directory() {
            set("RUN_DIRECTORY", directory.into());
        }
        variables
    }
}

/// What a command finds on its standard input, as JSON. The results of other calls stay where they are.
fn input(arguments: &Arguments, context: &Context) -> Result<Input, Failure> {
    let mut input = Input::default();
    input.push(open(&AboutCall {
        id: context.id(),
        name: context.name(),
        arguments: arguments.to_value(),
    })?);
    input.push(*b",\"dependencies\":[");
    for (place, dependency) in context.dependencies().iter().enumerate() {
        if place > 0 {
            input.push(*b",");
        }
        input.push(open(&AboutDependency {
            id: &dependency.id,
            name: &dependency.name,
            status: dependency.status,
        })?);
        input.push(*b",\"output\":");
        input.push_text(&dependency.output);
        if let Some(error) = &dependency.error {
            input.push(*b",\"error\":");
            input.push_text(error);
        }
        input.push(*b"}");
    }
    // Some readers wait for a whole line.
    input.push(*b"]}\n");
    Ok(input)
}

/// An object as JSON without its end.
fn open(object: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut json = serde_json::to_vec(object).map_err(|error| failure(error.to_string()))?;
    json.pop();
    Ok(json)
}

/// What placeholders stand for in one call.
struct Fill<'a> {
    arguments: &'a Arguments,
    directories: &'a Directories,
    tools_directory: &'a Path,
}

impl Fill<'_> {
    fn elements(&self, elements: &[Vec<Piece>]) -> Result<Vec<OsString>, Failure> {
        let mut line = Vec::new();
        for element in elements {
            if let [only] = element.as_slice() {
                line.extend(self.piece(only)?);
            } else {
                line.push(self.whole(element)?);
            }
        }
        Ok(line)
    }

    fn whole(&self, pieces: &[Piece]) -> Result<OsString, Failure> {
        let mut whole = OsString::new();
        for piece in pieces {
            whole.push(self.piece(piece)?.unwrap_or_default());
        }
        Ok(whole)
    }

    /// What a part stands for; `None` for an argument that was left out.
    fn piece(&self, piece: &Piece) -> Result<Option<OsString>, Failure> {
        Ok(Some(match piece {
            Piece::Text(text) => text.into(),
            Piece::CurrentDirectory => self.directories.current.clone().into(),
            Piece::RunDirectory => self.directories.run.clone().unwrap_or_default().into(),
            Piece::ToolsDirectory => self.tools_directory.into(),
            Piece::Argument(name) => match self.arguments.get(name) {
                Some(text) if text.contains('\0') => {
                    return Err(failure(format!(
                        "the argument `{name}` contains a NUL character, which a command line cannot contain"
                    )));
                }
                Some(text) => text.into(),
                None if self.has_parts(name) => {
                    return Err(failure(format!(
                        "the argument `{name}` is a list or an object, but the tool takes a string"
                    )));
                }
                None => return Ok(None),
            },
        }))
    }

    /// Whether an argument is there, but as a list or an object.
    fn has_parts(&self, name: &str) -> bool {
        let is_part = |pointer: &str| {
            pointer
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        self.arguments
            .iter()
            .any(|argument| is_part(argument.pointer))
    }
}

/// A word as one would type it in a shell.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn failure(message: impl Into<String>) -> Failure {
    Failure {
        message: message.into(),
        output: None,
    }
}

impl Program {
    /// Why it could not be started, in words for people.
    pub fn why_not_started(&self, error: &io::Error) -> String {
        let program = Path::new(&self.program).display();
        match error.kind() {
            _ if !self.directory.is_dir() => {
                format!("the working directory {} does not exist", self.directory.display())
            }
            io::ErrorKind::NotFound => {
                format!("the program `{program}` was not found; check that it is installed and in PATH")
            }
            io::ErrorKind::PermissionDenied => format!("the program `{program}` is not executable"),
            // The arguments were looked at before; what is left is the id, or what the run put into the environment.
            io::ErrorKind::InvalidInput => {
                "the id of the call or a variable of the environment contains a NUL character, which a command cannot receive".to_owned()
            }
            io::ErrorKind::ArgumentListTooLong => {
                "the arguments are too long for a command line; read them from standard input instead".to_owned()
            }
            _ => format!("the program `{program}` could not be started: {error}"),
        }
    }
}

fn outcome(finished: Finished) -> ToolResult {
    let Finished {
        status,
        was_stopped,
        output,
        errors,
    } = finished;
    if status.success() && !was_stopped {
        return Ok(output);
    }
    let mut message = if was_stopped {
        "the command was stopped".to_owned()
    } else {
        format!("the command {}", ending(status))
    };
    let errors = errors.trim_end();
    if !errors.is_empty() {
        message.push_str("; its standard error:\n");
        message.push_str(errors);
    }
    Err(Box::new(Failure {
        message,
        output: Some(output).filter(|output| !output.is_empty()),
    }))
}

/// How a program ended; words that go behind its name.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => {
            let name = Signal::from_named_raw(signal).map(|signal| format!("{signal:?}"));
            // The name comes as `"Signal::KILL"`.
            let name = name
                .as_deref()
                .map(|name| name.trim_matches('"').trim_start_matches("Signal::"));
            match name {
                Some(name) => format!("was killed by signal {signal} (SIG{name})"),
                None => format!("was killed by signal {signal}"),
            }
        }
        (None, None) => "ended for an unknown reason".to_owned(),
    }
}

/// Whether a command may see the variable without naming it.
pub fn is_inherited_variable(name: &OsString) -> bool {
    name.to_str()
        .is_some_and(|name| ALWAYS_SEEN.contains(&name) || name.starts_with("LC_"))
}
