//! Running a call of a command: its argument vector, environment and input, and its result.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitStatus;

use plaincall_tool::Arguments;
use serde::Serialize;
use serde_json::Value;

use crate::command::invocation::{Fill, Invocation, Line, failure};
use crate::context::{Context, Observed};
use crate::process::input::Input;
use crate::process::platform::{NOT_A_PROGRAM, is_inherited, is_name, killed_by};
use crate::process::{Finished, Job, Program, run};
use crate::result::Status;
use crate::tool_error::{BoxToolFuture, Failure, ToolResult};

/// How much of a script is read to find its interpreter, in bytes.
const LONGEST_FIRST_LINE: u64 = 256;

/// The note of a command that left processes behind.
const LEFT_BEHIND: &str =
    "processes that the command left in the background were ended when it exited";

/// The environment variables that describe a call to its command. The idempotency key is set only in durable runs.
pub const CALL_VARIABLES: [&str; 4] = [
    "PLAINCALL_ID",
    "PLAINCALL_NAME",
    "PLAINCALL_IDEMPOTENCY_KEY",
    "PLAINCALL_RUN_DIRECTORY",
];

const SHELL: &str = "/bin/sh";

/// How much of the end of a command's standard error the model reads, in bytes.
const ERROR_LIMIT: usize = 4096;

/// The beginning of a command's standard input.
#[derive(Serialize)]
struct AboutCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: Value,
}

/// The beginning of a dependency in a command's standard input.
#[derive(Serialize)]
struct AboutDependency<'a> {
    id: &'a str,
    name: &'a str,
    status: Status,
}

impl Invocation {
    pub(crate) fn start(&self, arguments: &Arguments, context: Context) -> BoxToolFuture {
        let job = self.job(arguments, &context);
        Box::pin(async move {
            let job = job?;
            let program = job.program.clone();
            let finished = run(job, context.cancellation()).await;
            let finished = finished.map_err(|error| failure(program.why_not_started(&error)))?;
            if finished.had_others {
                Observed::set_note(&context.observed, LEFT_BEHIND);
            }
            outcome(finished)
        })
    }

    fn job(&self, arguments: &Arguments, context: &Context) -> Result<Job, Failure> {
        let arguments = &self.spec.with_defaults(arguments);
        let fill = Fill {
            arguments,
            directories: &context.shared.directories(),
            tools_directory: &self.tools_directory,
        };
        let line = match &self.line {
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
                // On the first line of the script, so that the shell's line numbers are right.
                let mut script = OsString::from("exec 2>&1; ");
                script.push(fill.piece(parameter)?.unwrap_or_default());
                vec![SHELL.into(), "-c".into(), script]
            }
        };
        let mut line = line.into_iter();
        let program = line.next().unwrap_or_default();
        let input = match self.line {
            // A script that a model writes expects no input.
            Line::Written(_) => Input::default(),
            Line::Program(_) | Line::Shell(_) => input(arguments, context)?,
        };
        Ok(Job {
            program: Program {
                program,
                arguments: line.collect(),
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
            is_inherited_variable(name) || self.environment.iter().any(|seen| is_name(name, seen))
        };
        let given = context.shared.environment.iter();
        let mut variables: Vec<(OsString, OsString)> = given
            .filter(|(name, _)| is_seen(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let values: [Option<OsString>; CALL_VARIABLES.len()] = [
            Some(context.id().into()),
            Some(context.name().into()),
            context.idempotency_key().map(OsString::from),
            context.directory().map(OsString::from),
        ];
        let described = CALL_VARIABLES.into_iter().zip(values);
        variables.extend(described.filter_map(|(name, value)| Some((name.into(), value?))));
        variables
    }
}

/// Returns the standard input as JSON, without copying the outputs of dependencies.
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
    // Some programs wait for a whole line.
    input.push(*b"]}\n");
    Ok(input)
}

/// Serializes an object without its closing brace.
fn open(object: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut json = serde_json::to_vec(object).map_err(|error| failure(error.to_string()))?;
    json.pop();
    Ok(json)
}

impl Program {
    /// Returns a message for an error of starting it.
    pub fn why_not_started(&self, error: &io::Error) -> String {
        let program = Path::new(&self.program).display();
        if let Some(why) = self.interpreter_problem(error) {
            return why;
        }
        match error.kind() {
            _ if !self.directory.is_dir() => {
                format!("the working directory {} does not exist", self.directory.display())
            }
            io::ErrorKind::NotFound => {
                format!("the program `{program}` was not found; check that it is installed and in PATH")
            }
            io::ErrorKind::PermissionDenied => format!("the program `{program}` is not executable"),
            // The arguments were checked before, so it is the id or an environment variable of the run.
            io::ErrorKind::InvalidInput => {
                "the call's id or an environment variable contains a NUL character, which a command cannot receive".to_owned()
            }
            io::ErrorKind::ArgumentListTooLong => {
                "the arguments are too long for a command line; read them from standard input instead".to_owned()
            }
            _ => format!("the program `{program}` could not be started: {error}"),
        }
    }

    /// Returns what is wrong with the first line of a script.
    fn interpreter_problem(&self, error: &io::Error) -> Option<String> {
        let path = Path::new(&self.program);
        let is_path = path.components().count() > 1;
        let is_about_it =
            error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NOT_A_PROGRAM);
        let script = self.directory.join(path);
        // Opening another kind of file could wait for ever.
        let is_file = || script.metadata().is_ok_and(|about| about.is_file());
        if !is_path || !is_about_it || !self.directory.is_dir() || !is_file() {
            return None;
        }
        let mut first = Vec::new();
        let file = File::open(&script).ok()?;
        file.take(LONGEST_FIRST_LINE).read_to_end(&mut first).ok()?;
        let program = path.display();
        let first = String::from_utf8_lossy(&first).into_owned();
        let first = first.split('\n').next().unwrap_or_default();
        let Some(line) = first.strip_prefix("#!") else {
            return Some(format!(
                "`{program}` is neither a program for this system nor a script with a first line such as `#!/bin/sh`"
            ));
        };
        let interpreter = line.split_whitespace().next().unwrap_or_default();
        if cfg!(windows) {
            return Some(format!(
                "`{program}` is a script, which Windows does not start; begin the command with its interpreter, as in `python {program}`"
            ));
        }
        Some(if line.ends_with('\r') {
            format!(
                "the interpreter `{interpreter}` of `{program}` has a carriage return behind it; save the script with LF line ends"
            )
        } else {
            format!("the interpreter `{interpreter}` of `{program}` was not found")
        })
    }
}

fn outcome(finished: Finished) -> ToolResult {
    if finished.status.success() && !finished.was_stopped {
        return Ok(finished.output);
    }
    let mut message = if finished.was_stopped {
        "the command was stopped".to_owned()
    } else {
        format!("the command {}", ending(finished.status))
    };
    let errors = finished.errors.trim_end();
    if !errors.is_empty() {
        message.push_str("; its standard error:\n");
        message.push_str(errors);
    }
    let output = Some(finished.output).filter(|output| !output.is_empty());
    Err(Failure::new(message, output).into())
}

/// Returns how a program ended, as a predicate that follows its name.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), killed_by(status)) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was killed by {signal}"),
        (None, None) => "ended for an unknown reason".to_owned(),
    }
}

/// Returns whether commands inherit this environment variable by default.
pub fn is_inherited_variable(name: &OsString) -> bool {
    name.to_str().is_some_and(is_inherited)
}
