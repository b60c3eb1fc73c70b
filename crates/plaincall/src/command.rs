//! Commands as tools: the definition fixes what runs, and the model supplies only arguments.

mod interpreted;
pub(crate) mod invocation;
pub(crate) mod template;

use std::fmt;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plaincall_names::{did_you_mean, nearest_name};
use plaincall_tool::{Parameter, ToolSpec};

pub use crate::command::interpreted::Interpreted;
use crate::command::interpreted::{Source, interpreted};
use crate::command::invocation::{Invocation, Line, OWN_PREFIX, Script};
use crate::command::template::{DIRECTORY, Host, Piece, pieces, single_quoted};
pub use crate::run_directory::Directories;
use crate::tool::{Code, Tool};

/// The default limit of a command's standard output, in bytes.
pub const DEFAULT_OUTPUT_LIMIT: usize = 1 << 20;

/// The default grace period of a command, between `SIGTERM` and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(2);

/// Why this system cannot run scripts for `sh -c`.
const WITHOUT_SHELL: Option<&str> = if cfg!(windows) {
    Some(
        "scripts for `sh -c` need Unix; on Windows, name a program and its arguments with `command`",
    )
} else {
    None
};

/// A command, which [`Tool::command`] makes a tool.
///
/// Its texts may contain placeholders: `{name}` for an argument, exactly as the model wrote it; `{directory:current}` for
/// the directory where the run was started; `{directory:tools}` for the directory of the tools file; `{directory:run}` for
/// the run's scratch directory. `{{name}}` is the literal text `{name}`. All other braces are ordinary characters.
///
/// The command receives one JSON object on standard input, with its arguments and the results of its dependencies:
/// `{"id", "name", "arguments": {…}, "dependencies": [{"id", "name", "status", "output"}]}`. Its standard output is the
/// result. If it exits with a status other than 0 or is killed by a signal, the call fails, and the model reads the end of
/// its standard error.
///
/// It runs in its own process group. When it exits, times out or is cancelled, the whole group is killed. Only processes
/// that have left the group survive. On Windows it runs in a job object, which none of its processes can leave and which is killed
/// without a grace period.
#[derive(Clone, Debug)]
pub struct Command {
    form: Form,
    directory: Option<String>,
    tools_directory: Option<PathBuf>,
    environment: Vec<String>,
    output_limit: usize,
    keeps_both_ends: bool,
}

#[derive(Clone, Debug)]
enum Form {
    Program(Vec<String>),
    Shell(String),
    Written(String),
}

impl Command {
    /// Creates a command from a program and its arguments, without a shell.
    ///
    /// Each element is exactly one argument, regardless of the values of its placeholders. If a call omits an optional
    /// argument, the element that consists of its placeholder is omitted too. The placeholder of an optional argument must
    /// therefore be an element of its own: `--count={count}` is rejected.
    pub fn new<E: Into<String>>(elements: impl IntoIterator<Item = E>) -> Self {
        Self::of(Form::Program(
            elements.into_iter().map(Into::into).collect(),
        ))
    }

    /// Creates a command from a script for `sh -c`. Needs Unix.
    ///
    /// Arguments do not become part of the script: `{name}` is replaced by a positional parameter of the shell (`${1}`, …).
    /// Quote it like any other parameter: `"{name}"`. A placeholder between single quotes is rejected, because the shell does
    /// not expand it. An omitted argument is empty. `${name}` is a shell variable.
    ///
    /// Functions of the script have their own positional parameters, and `shift` and `set` change those of the script. Pass
    /// arguments to functions: `f "{name}"`.
    pub fn shell(script: impl Into<String>) -> Self {
        Self::of(Form::Shell(script.into()))
    }

    /// Creates a command that runs a script written by the model: the text of this parameter, with `sh -c`. Needs
    /// Unix.
    ///
    /// Such a script can do anything that a shell can, so give the tool the effect [`Effect::Write`](crate::Effect::Write).
    /// Its standard input is empty. The result contains its standard output and standard error in the order in which they
    /// were written.
    pub fn script_of(parameter: impl Into<String>) -> Self {
        Self::of(Form::Written(parameter.into()))
    }

    fn of(form: Form) -> Self {
        Self {
            form,
            directory: None,
            tools_directory: None,
            environment: Vec::new(),
            output_limit: DEFAULT_OUTPUT_LIMIT,
            keeps_both_ends: false,
        }
    }

    /// Sets the working directory: an absolute path, a path that begins with a directory placeholder, or a path relative to
    /// the [tools directory](Self::tools_directory).
    ///
    /// Default: `{directory:current}`, where the run was started
    /// ([`RunBuilder::current_directory`](crate::RunBuilder::current_directory)). In `{directory:run}` the calls of a run
    /// share temporary files. A working directory is not a sandbox: a model can write an absolute path or one with `..`, and
    /// a tool that takes paths must reject them itself.
    pub fn directory(mut self, directory: impl Into<String>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the value of `{directory:tools}`, which must be an absolute path.
    pub fn tools_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tools_directory = Some(directory.into());
        self
    }

    /// Sets the names of the environment variables that the command inherits in addition to `PATH`, `HOME`, `LANG`, `LC_…`
    /// and `TMPDIR`, or those that most programs of Windows need, such as `SystemRoot` and `TEMP`. Values come from the run's [environment](crate::RunBuilder::environment). `PLAINCALL_ID` and
    /// `PLAINCALL_NAME` are always set, `PLAINCALL_RUN_DIRECTORY` if the run has a scratch directory, and
    /// `PLAINCALL_IDEMPOTENCY_KEY` in a [durable run](crate::durable) ([`Context::idempotency_key`](crate::Context::idempotency_key)).
    pub fn environment<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.environment = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the limit of the standard output, in bytes. The rest is discarded, with a note at the end. Default:
    /// [`DEFAULT_OUTPUT_LIMIT`].
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Keeps the beginning and the end of an output that is too long, half of the limit each, with a note between them.
    /// Default: only the beginning is kept.
    pub fn keep_both_ends(mut self) -> Self {
        self.keeps_both_ends = true;
        self
    }

    fn compile(self, spec: &ToolSpec) -> Result<Invocation, Vec<CommandProblem>> {
        let mut check = Check {
            spec,
            has_tools_directory: self.tools_directory.is_some(),
            problems: Vec::new(),
        };
        let (line, interpreted) = match &self.form {
            Form::Program(elements) => {
                let elements = check.program(elements);
                let interpreted = interpreted(spec, Source::Elements(&elements));
                (Line::Program(elements), interpreted)
            }
            Form::Shell(script) => {
                let pieces = check.script(script);
                let interpreted = interpreted(spec, Source::Script(&pieces));
                (Line::Shell(Script::new(pieces)), interpreted)
            }
            Form::Written(parameter) => {
                let interpreted = vec![Interpreted {
                    parameter: parameter.clone(),
                    interpreter: "sh -c",
                    is_command_line: true,
                }];
                (Line::Written(check.written(parameter)), interpreted)
            }
        };
        if let (Form::Shell(_) | Form::Written(_), Some(reason)) = (&self.form, WITHOUT_SHELL) {
            check.problem(CommandLocation::Whole, reason);
        }
        let directory = check.directory(self.directory.as_deref());
        check.environment(&self.environment);
        if let Some(folder) = &self.tools_directory
            && !folder.is_absolute()
        {
            let folder = folder.display();
            let message = format!("the tools directory {folder} is not an absolute path");
            check.problem(CommandLocation::Directory, message);
        }
        if check.problems.is_empty() {
            Ok(Invocation {
                spec: spec.clone(),
                line,
                directory,
                tools_directory: self.tools_directory.unwrap_or_default(),
                environment: self.environment,
                output_limit: self.output_limit,
                keeps_both_ends: self.keeps_both_ends,
                interpreted,
            })
        } else {
            Err(check.problems)
        }
    }
}

struct Check<'s> {
    spec: &'s ToolSpec,
    has_tools_directory: bool,
    problems: Vec<CommandProblem>,
}

impl Check<'_> {
    fn problem(&mut self, place: CommandLocation, message: impl Into<String>) {
        self.report(place, "", 0, message.into());
    }

    /// Adds a problem with this occurrence of a placeholder.
    fn report(&mut self, place: CommandLocation, name: &str, occurrence: usize, message: String) {
        self.problems.push(CommandProblem {
            place,
            placeholder: (!name.is_empty()).then(|| format!("{{{name}}}")),
            occurrence,
            message,
        });
    }

    fn program(&mut self, elements: &[String]) -> Vec<Vec<Piece>> {
        if elements.first().is_none_or(String::is_empty) {
            let message = "the command is empty; its first element is the program";
            self.problem(CommandLocation::Whole, message);
        }
        let mut line = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let place = CommandLocation::Element(index);
            let pieces = self.pieces(place, element, Host::Plain);
            let mut arguments = pieces.iter();
            if index == 0 && arguments.any(|piece| matches!(piece, Piece::Argument(_))) {
                let message =
                    "the program must be fixed; with a placeholder the model could run any program";
                self.problem(place, message);
            }
            self.check_optional(place, element, &pieces);
            line.push(pieces);
        }
        line
    }

    /// Rejects the placeholder of an optional argument inside a larger element.
    fn check_optional(&mut self, place: CommandLocation, element: &str, pieces: &[Piece]) {
        if pieces.len() < 2 {
            return;
        }
        for piece in pieces {
            if let Piece::Argument(name) = piece
                && self.spec.get(name).is_some_and(|one| !one.required)
            {
                self.report(place, name, 0, format!(
                    "`{name}` is optional, so `{element}` could be incomplete; make `{{{name}}}` an element of its own, which is omitted with it, or make `{name}` required, or write a `shell` script"
                ));
            }
        }
    }

    fn script(&mut self, script: &str) -> Vec<Piece> {
        if script.trim().is_empty() {
            self.problem(CommandLocation::Whole, "the script is empty");
        }
        for (at, piece) in single_quoted(script) {
            let name = match &piece {
                // Unknown parameters are reported by `pieces`.
                Piece::Argument(name) if self.spec.get(name).is_none() => continue,
                Piece::Argument(name) => name,
                Piece::CurrentDirectory => "directory:current",
                Piece::RunDirectory => "directory:run",
                Piece::ToolsDirectory => "directory:tools",
                Piece::Text(_) => continue,
            };
            let placeholder = format!("{{{name}}}");
            let before = script.get(..at).unwrap_or_default();
            let occurrence = before.matches(placeholder.as_str()).count();
            self.report(CommandLocation::Whole, name, occurrence, format!(
                "`{placeholder}` is between single quotes, where the shell expands nothing; use double quotes, or close the quotes around it, as in `'…'\"{placeholder}\"'…'`; for the literal text write `{{{placeholder}}}`"
            ));
        }
        self.pieces(CommandLocation::Whole, script, Host::Shell)
    }

    fn written(&mut self, parameter: &str) -> Piece {
        if let Some(declared) = self.spec.get(parameter) {
            self.check_string(CommandLocation::Whole, declared);
            if !declared.required {
                let message = format!(
                    "`{parameter}` is the script, so it cannot be optional; make it required"
                );
                self.problem(CommandLocation::Whole, message);
            }
        } else {
            let message = format!("unknown parameter `{parameter}` for the script");
            self.problem(CommandLocation::Whole, message);
        }
        Piece::Argument(parameter.to_owned())
    }

    fn directory(&mut self, directory: Option<&str>) -> Vec<Piece> {
        let Some(directory) = directory else {
            return vec![Piece::CurrentDirectory];
        };
        let place = CommandLocation::Directory;
        let mut pieces = self.pieces(place, directory, Host::Plain);
        if pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Argument(name) if !name.starts_with(DIRECTORY)))
        {
            let message = "the working directory must be fixed, without arguments";
            self.problem(place, message);
        }
        match pieces.first() {
            None => self.problem(place, "the working directory is empty; write a path, or omit `directory`"),
            Some(Piece::Text(text)) if text.starts_with('~') => self.problem(place, format!(
                "`~` in the working directory `{directory}` is not expanded; write the whole path, or one relative to the tools file"
            )),
            Some(Piece::Text(text)) if !Path::new(text).is_absolute() => {
                if self.has_tools_directory {
                    pieces.splice(0..0, [Piece::ToolsDirectory, Piece::Text(MAIN_SEPARATOR_STR.to_owned())]);
                } else {
                    self.problem(place, format!(
                        "the working directory `{directory}` is a relative path; begin it with `/`, `{{directory:current}}` or `{{directory:run}}`"
                    ));
                }
            }
            Some(_) => {}
        }
        pieces
    }

    fn environment(&mut self, names: &[String]) {
        for (index, name) in names.iter().enumerate() {
            let place = CommandLocation::Environment(index);
            if name.is_empty() || name.contains(['=', '\0']) {
                // What follows `=` may be a secret.
                let name = name.split_inclusive('=').next().unwrap_or_default();
                let message = format!(
                    "`{name}` is not a valid name of an environment variable; write only the name"
                );
                self.problem(place, message);
            } else if name.starts_with(OWN_PREFIX) {
                self.problem(place, format!(
                    "the variables that begin with `{OWN_PREFIX}` are set automatically and cannot be listed"
                ));
            }
        }
    }

    fn pieces(&mut self, place: CommandLocation, text: &str, host: Host) -> Vec<Piece> {
        let pieces = pieces(text, host);
        for piece in &pieces {
            match piece {
                Piece::Argument(name) => match self.spec.get(name) {
                    Some(parameter) => self.check_string(place, parameter),
                    None => self.unknown(place, name),
                },
                Piece::ToolsDirectory if !self.has_tools_directory => {
                    let message = "`{directory:tools}` has no value here";
                    self.report(place, "directory:tools", 0, message.to_owned());
                }
                Piece::Text(text) if text.contains('\0') => {
                    self.problem(place, "a command cannot contain a NUL character");
                }
                _ => {}
            }
        }
        pieces
    }

    fn check_string(&mut self, place: CommandLocation, parameter: &Parameter) {
        use plaincall_tool::ParameterKind::{Array, Object};
        if matches!(parameter.kind, Array | Object) {
            let name = &parameter.name;
            let kind = parameter.kind.in_words();
            self.report(
                place,
                name,
                0,
                format!(
                    "`{{{name}}}` is {kind}, not a string; read it from standard input instead"
                ),
            );
        }
    }

    fn unknown(&mut self, place: CommandLocation, name: &str) {
        if let Some(directory) = name.strip_prefix(DIRECTORY) {
            let near = nearest_name(directory, ["current", "tools", "run"]);
            let near = near.map(|near| format!("; did you mean `{{{DIRECTORY}{near}}}`?"));
            let near = near.unwrap_or_default();
            self.report(place, name, 0, format!(
                "unknown directory `{{{name}}}`; the directories are `{{directory:current}}`, `{{directory:tools}}` and `{{directory:run}}`; for the literal text write `{{{{{name}}}}}`{near}"
            ));
            return;
        }
        let (parameters, near) = parameters_like(self.spec, name);
        self.report(place, name, 0, format!(
            "unknown parameter `{{{name}}}`; {parameters}; for the literal text write `{{{{{name}}}}}`{near}"
        ));
    }
}

/// Returns the parameters of a tool for an error message, and a suggestion for a misspelled name.
pub(crate) fn parameters_like(spec: &ToolSpec, name: &str) -> (String, String) {
    let names = || spec.parameters().iter().map(|one| one.name.as_str());
    let quoted: Vec<String> = names().map(|name| format!("`{name}`")).collect();
    let parameters = if quoted.is_empty() {
        "the tool has no parameters".to_owned()
    } else {
        format!("the parameters are {}", quoted.join(", "))
    };
    (parameters, did_you_mean(name, names()))
}

impl Tool {
    /// Creates a tool from a definition and a command.
    ///
    /// # Errors
    /// Returns all problems if the command does not match the definition.
    pub fn command(spec: ToolSpec, command: Command) -> Result<Self, CommandError> {
        let invocation = command.compile(&spec);
        let invocation = invocation.map_err(|problems| CommandError { problems })?;
        let interpreted = invocation.interpreted.iter();
        let lines = interpreted.filter(|one| one.is_command_line);
        let lines: Vec<String> = lines.map(|one| one.parameter.clone()).collect();
        let tool = Self::with_code(spec, Code::Command(Arc::new(invocation))).grace(GRACE);
        Ok(lines.into_iter().fold(tool, Self::command_line))
    }
}

/// The error of [`Tool::command`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandError {
    /// All problems; at least one.
    pub problems: Vec<CommandProblem>,
}

/// A problem of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandProblem {
    /// The part of the command.
    pub place: CommandLocation,
    /// The placeholder, if the problem is with one.
    pub placeholder: Option<String>,
    /// The index among equal placeholders in this part, from 0.
    pub occurrence: usize,
    /// The problem and the fix, in one sentence.
    pub message: String,
}

/// A part of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandLocation {
    /// The command or script as a whole.
    Whole,
    /// An element of the command, from 0.
    Element(usize),
    /// The working directory.
    Directory,
    /// A name of an environment variable, from 0.
    Environment(usize),
}

impl fmt::Display for CommandError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for CommandError {}
