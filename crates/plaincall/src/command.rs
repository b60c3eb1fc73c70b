//! Tools that are commands: what is run is fixed by the definition, the model only fills in arguments.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{
    Parameter, ToolSpec,
    names::{did_you_mean, nearest_name},
};

pub use crate::interpreted::Interpreted;
use crate::interpreted::{Source, interpreted};
use crate::invocation::{Invocation, Line, OWN_PREFIX, Script};
pub use crate::run_directory::Directories;
use crate::template::{DIRECTORY, Host, Piece, pieces, single_quoted};
use crate::tool::{Code, Tool};

/// How much of a command's standard output is kept if it does not say, in bytes.
pub const DEFAULT_OUTPUT_LIMIT: usize = 1 << 20;

/// How long a command has to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// A command that is a tool.
///
/// Its texts may hold placeholders: `{name}` for the text of an argument, exactly as the model wrote it;
/// `{directory:current}` for the directory where the run was started; `{directory:tools}` for the folder of the tools
/// file; `{directory:run}` for the run's scratch directory. `{{name}}` stands for `{name}` itself; all other braces are
/// ordinary characters.
///
/// The command finds its arguments and the results of the calls it depends on as one JSON object on its standard
/// input: `{"id", "name", "arguments": {…}, "dependencies": [{"id", "name", "status", "output"}]}`. What it writes to
/// its standard output is the result. If it ends with another exit status than 0, or by a signal, the call has failed,
/// and the model reads the end of its standard error.
///
/// It runs in a process group of its own. When it has ended, ran out of time or is cancelled, all of the group is
/// ended; nothing that it has started lives on, unless it has left the group.
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
    /// A program and its arguments, which never pass through a shell.
    ///
    /// Each is one element of the argument vector, whatever the placeholders in it stand for. If an optional argument
    /// is left out, the element goes away that is its placeholder. So such a placeholder is an element of its own:
    /// inside a larger one, such as `--count={count}`, it would leave half an element behind and is refused.
    pub fn new<E: Into<String>>(elements: impl IntoIterator<Item = E>) -> Self {
        Self::of(Form::Program(
            elements.into_iter().map(Into::into).collect(),
        ))
    }

    /// A script that is run by `sh -c`.
    ///
    /// The arguments do not become part of the script: `{name}` stands for a parameter of the shell (`${1}`, …), to be
    /// quoted like every other, `"{name}"`. Between single quotes a shell does not look for its parameters, so a
    /// placeholder there is refused. An argument that is left out is empty. `${name}` is the shell's own.
    ///
    /// The parameters are those of the script as a whole: a function of the script has its own, and `shift` and `set`
    /// change them. Hand a function what it needs: `f "{name}"`.
    pub fn shell(script: impl Into<String>) -> Self {
        Self::of(Form::Shell(script.into()))
    }

    /// A script that the model writes: the text of this parameter is run by `sh -c`.
    ///
    /// Whoever allows a call of it allows anything that a shell can do, so the effect of such a tool is that it
    /// [writes](crate::Effect::Write). The script finds nothing on its standard input. What it writes to its standard
    /// error stands in the result among its output, in the order in which it was written.
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

    /// Sets the working directory: an absolute path, one that begins with a placeholder for a directory, or one relative
    /// to the [folder of the tools](Self::tools_directory).
    ///
    /// Default: `{directory:current}`, where the run was started
    /// ([`RunBuilder::current_directory`](crate::RunBuilder::current_directory)). In `{directory:run}` the calls of a run
    /// can pass files to each other that nobody needs afterwards. A working directory is no cage: a model can write an
    /// absolute path, or one with `..`, and a tool that takes paths must refuse them itself.
    pub fn directory(mut self, directory: impl Into<String>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets what `{directory:tools}` stands for: an absolute path.
    pub fn tools_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tools_directory = Some(directory.into());
        self
    }

    /// Names variables that the command may see besides `PATH`, `HOME`, `LANG`, `LC_…` and `TMPDIR`, as far as the
    /// run's [environment](crate::RunBuilder::environment) has them. `PLAINCALL_ID`, `PLAINCALL_NAME` and
    /// `PLAINCALL_RUN_DIRECTORY` are always set.
    pub fn environment<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.environment = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how many bytes of the standard output are kept; the rest is read and dropped, and a line at the end says
    /// so. [`DEFAULT_OUTPUT_LIMIT`] if nothing is said.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Keeps the beginning and the end of an output that is too long, half of the limit each, and says between them
    /// what is missing. Otherwise only the beginning is kept.
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
        let directory = check.directory(self.directory.as_deref());
        check.environment(&self.environment);
        if let Some(folder) = &self.tools_directory
            && !folder.is_absolute()
        {
            check.find(
                CommandLocation::Directory,
                format!(
                    "the directory of the tools, {}, must be an absolute path",
                    folder.display()
                ),
            );
        }
        if check.problems.is_empty() {
            Ok(Invocation {
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
    fn find(&mut self, place: CommandLocation, message: impl Into<String>) {
        self.find_in(place, "", 0, message.into());
    }

    /// Notes a problem with the placeholder of this name, of several the one with this number.
    fn find_in(&mut self, place: CommandLocation, name: &str, occurrence: usize, message: String) {
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
            self.find(CommandLocation::Whole, message);
        }
        let mut line = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let place = CommandLocation::Element(index);
            let pieces = self.pieces(place, element, Host::Plain);
            if index == 0
                && pieces
                    .iter()
                    .any(|piece| matches!(piece, Piece::Argument(_)))
            {
                let message =
                    "the program must be fixed; with a placeholder the model could run anything";
                self.find(place, message);
            }
            self.leaves_nothing_half(place, element, &pieces);
            line.push(pieces);
        }
        line
    }

    /// An element goes away as a whole or not at all.
    fn leaves_nothing_half(&mut self, place: CommandLocation, element: &str, pieces: &[Piece]) {
        if pieces.len() < 2 {
            return;
        }
        for piece in pieces {
            if let Piece::Argument(name) = piece
                && self.spec.get(name).is_some_and(|one| !one.required)
            {
                self.find_in(place, name, 0, format!(
                    "`{name}` is optional, but `{element}` would remain without it; make `{{{name}}}` an element of its own, which is dropped if the argument is missing, or make `{name}` required, or write a `shell` script"
                ));
            }
        }
    }

    fn script(&mut self, script: &str) -> Vec<Piece> {
        if script.trim().is_empty() {
            self.find(CommandLocation::Whole, "the script is empty");
        }
        for (at, piece) in single_quoted(script) {
            let name = match &piece {
                // What is no parameter is named as that.
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
            self.find_in(CommandLocation::Whole, name, occurrence, format!(
                "`{placeholder}` is between single quotes, where the shell expands nothing; use double quotes, or close the quotes around it, as in `'…'\"{placeholder}\"'…'`; for the literal text write `{{{placeholder}}}`"
            ));
        }
        self.pieces(CommandLocation::Whole, script, Host::Shell)
    }

    fn written(&mut self, parameter: &str) -> Piece {
        match self.spec.get(parameter) {
            Some(declared) => {
                self.takes_one_text(CommandLocation::Whole, declared);
                if !declared.required {
                    let message = format!(
                        "`{parameter}` is the script, so it cannot be optional; make it required"
                    );
                    self.find(CommandLocation::Whole, message);
                }
            }
            None => self.find(
                CommandLocation::Whole,
                format!(
                    "`{parameter}`, which should be the script, is not a parameter of the tool"
                ),
            ),
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
            self.find(
                place,
                "the working directory must be fixed, without arguments",
            );
        }
        match pieces.first() {
            None => self.find(place, "the working directory is empty; write a path, or leave `directory` out"),
            Some(Piece::Text(text)) if text.starts_with('~') => self.find(place, format!(
                "`~` in the working directory `{directory}` is not expanded; write the whole path, or one relative to the tools file"
            )),
            Some(Piece::Text(text)) if !Path::new(text).is_absolute() => {
                if self.has_tools_directory {
                    pieces.splice(0..0, [Piece::ToolsDirectory, Piece::Text("/".to_owned())]);
                } else {
                    self.find(place, format!(
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
                self.find(
                    place,
                    format!("`{name}` is not a valid name of an environment variable"),
                );
            } else if name.starts_with(OWN_PREFIX) {
                self.find(place, format!(
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
                    Some(parameter) => self.takes_one_text(place, parameter),
                    None => self.unknown(place, name),
                },
                Piece::ToolsDirectory if !self.has_tools_directory => {
                    let message = "`{directory:tools}` has no value here";
                    self.find_in(place, "directory:tools", 0, message.to_owned());
                }
                Piece::Text(text) if text.contains('\0') => {
                    self.find(place, "a command cannot contain a NUL character");
                }
                Piece::Text(_)
                | Piece::CurrentDirectory
                | Piece::RunDirectory
                | Piece::ToolsDirectory => {}
            }
        }
        pieces
    }

    fn takes_one_text(&mut self, place: CommandLocation, parameter: &Parameter) {
        use plaincall_call::ParameterKind::{Array, Object};
        if matches!(parameter.kind, Array | Object) {
            let name = &parameter.name;
            let kind = parameter.kind.in_words();
            self.find_in(
                place,
                name,
                0,
                format!(
                    "`{{{name}}}` is {kind} and not a string; read it from standard input instead"
                ),
            );
        }
    }

    fn unknown(&mut self, place: CommandLocation, name: &str) {
        if let Some(directory) = name.strip_prefix(DIRECTORY) {
            let near = nearest_name(directory, ["current", "tools", "run"]);
            let near = near.map(|near| format!("; did you mean `{{{DIRECTORY}{near}}}`?"));
            let near = near.unwrap_or_default();
            self.find_in(place, name, 0, format!(
                "there is no directory `{{{name}}}`; the directories are `{{directory:current}}`, `{{directory:tools}}` and `{{directory:run}}`; for the literal text write `{{{{{name}}}}}`{near}"
            ));
            return;
        }
        let (parameters, near) = parameters_like(self.spec, name);
        self.find_in(place, name, 0, format!(
            "`{{{name}}}` is not a parameter of the tool; {parameters}; for the literal text write `{{{{{name}}}}}`{near}"
        ));
    }
}

/// The parameters of a tool in words, and which of them a wrong name may mean.
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
    /// A tool from a definition and a command.
    ///
    /// # Errors
    /// If the command does not fit the definition; all problems at once.
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

/// Why a command cannot be a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// All that is wrong with it; at least one.
    pub problems: Vec<CommandProblem>,
}

/// One thing that is wrong with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandProblem {
    /// Where.
    pub place: CommandLocation,
    /// The placeholder there that is meant, if it is one.
    pub placeholder: Option<String>,
    /// Which of the texts there that are the same as the placeholder it is, from 0.
    pub occurrence: usize,
    /// What, and what to do, in one sentence.
    pub message: String,
}

/// A part of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandLocation {
    /// The command or script as a whole.
    Whole,
    /// An element of the command, from 0.
    Element(usize),
    /// The working directory.
    Directory,
    /// One of the names of environment variables, from 0.
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
