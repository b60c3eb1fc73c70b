//! A tool: its definition, how it may run, and its code.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, Effect, ToolSpec};

use crate::context::Context;
pub use crate::context::DependencyResult;
use crate::interpreted::Interpreted;
use crate::invocation::Invocation;
use crate::request::Request;
use crate::rules::{Meaning, Meanings};
use crate::run_directory::Directories;
pub use crate::tool_error::Failure;
use crate::tool_error::{ToolResult, Work};
use crate::tool_policy::{Dependents, Retry, ToolBegin, ToolPolicy};
pub use crate::typed::{ToolArguments, ToolFuture};

/// What happens when a tool is called.
#[derive(Clone)]
pub(crate) enum Code {
    Function(Arc<dyn Fn(Arguments, Context) -> Work + Send + Sync>),
    Command(Arc<Invocation>),
}

impl Code {
    pub(crate) fn start(&self, arguments: Arguments, context: Context) -> Work {
        match self {
            Self::Function(function) => function(arguments, context),
            Self::Command(command) => command.start(&arguments, context),
        }
    }

    pub(crate) fn command(&self) -> Option<&Invocation> {
        match self {
            Self::Function(_) => None,
            Self::Command(command) => Some(command),
        }
    }
}

/// A tool: what it is called, what it takes, how it may run, and what it does.
///
/// ```
/// use plaincall::{Effect, Tool};
///
/// /// Adds two numbers.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = Tool::new("Add", |add: Add, _| async move { Ok((add.a + add.b).to_string()) })
///     .effect(Effect::Read);
/// assert_eq!(add.spec().description, "Adds two numbers.");
/// assert_eq!(add.spec().parameters().len(), 2);
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) policy: ToolPolicy,
    pub(crate) code: Code,
    pub(crate) meanings: Meanings,
    works_in: Option<PathBuf>,
    origin: Option<Arc<str>>,
}

impl Tool {
    /// A tool from an async function of typed arguments and of the [`Context`] of the call.
    ///
    /// The fields of the type are the parameters ([`ToolSpec::of`]): what stands above the type in the source describes
    /// the tool, what stands above a field its parameter; an `Option` or a default makes it one that may be left out.
    /// A call with other arguments is rejected before the function sees it. What a type of its own refuses beyond
    /// that is an error of the call. A tool that takes nothing is a function of `()`.
    ///
    /// ```
    /// use plaincall::{Effect, Tool};
    ///
    /// /// Writes a text to a file of the project.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct WriteFile {
    ///     /// Its path below the project's folder.
    ///     #[schemars(example = &"src/main.rs")]
    ///     path: String,
    ///     /// The whole text.
    ///     content: String,
    ///     /// Whether it may replace a file that is there.
    ///     #[serde(default)]
    ///     replace: bool,
    /// }
    ///
    /// let write_file = Tool::new("write-file", |file: WriteFile, context| async move {
    ///     let folder = context.directory().ok_or("this run has no directory")?;
    ///     let path = folder.join(&file.path);
    ///     if path.exists() && !file.replace {
    ///         return Err(format!("{} is there already", file.path).into());
    ///     }
    ///     std::fs::write(path, &file.content)?;
    ///     Ok(format!("{} bytes written", file.content.len()))
    /// })
    /// .effect(Effect::Idempotent)
    /// .body("content");
    /// assert_eq!(write_file.spec().usage().to_string(), "write-file path replace? (body: content)");
    /// ```
    pub fn new<A, F, R>(name: impl Into<String>, function: F) -> Self
    where
        A: ToolArguments,
        F: Fn(A, Context) -> R + Send + Sync + 'static, // `|arguments: Add, context| async move { … }`
        R: ToolFuture<Output = ToolResult> + Send + 'static, // ends with `Ok(text)`; only `Send` values over an `.await`
    {
        Self::of_function(
            ToolSpec::of::<A>(name),
            move |arguments, context| match arguments.to::<A>() {
                Ok(arguments) => Box::pin(function(arguments, context)),
                Err(error) => Box::pin(async move { Err(error.into()) }),
            },
        )
    }

    /// A tool from a definition and an async function of the arguments as they were written.
    ///
    /// It is for tools that are only known when the program runs, and for types that cannot say what they take:
    /// [`Arguments::to`] makes any type with `Deserialize` of the arguments.
    ///
    /// ```
    /// use plaincall::{Effect, Tool, call::{Arguments, Parameter, ParameterKind, ToolSpec}};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Wait { seconds: u32 }
    ///
    /// let spec = ToolSpec::new("wait")
    ///     .describe("Waits.")
    ///     .parameter(Parameter::new("seconds", ParameterKind::Integer))
    ///     .effect(Effect::Read);
    /// let wait = Tool::raw(spec, |arguments: Arguments, _| async move {
    ///     let wait: Wait = arguments.to()?;
    ///     Ok(format!("waited {} s", wait.seconds))
    /// });
    /// ```
    pub fn raw<F, R>(spec: ToolSpec, function: F) -> Self
    where
        F: Fn(Arguments, Context) -> R + Send + Sync + 'static, // `|arguments, context| async move { … }`
        R: ToolFuture<Output = ToolResult> + Send + 'static, // ends with `Ok(text)`; only `Send` values over an `.await`
    {
        Self::of_function(spec, move |arguments, context| {
            Box::pin(function(arguments, context))
        })
    }

    fn of_function(
        spec: ToolSpec,
        function: impl Fn(Arguments, Context) -> Work + Send + Sync + 'static,
    ) -> Self {
        Self::with_code(spec, Code::Function(Arc::new(function)))
    }

    pub(crate) fn with_code(spec: ToolSpec, code: Code) -> Self {
        Self {
            spec,
            policy: ToolPolicy::default(),
            code,
            meanings: Meanings::default(),
            works_in: None,
            origin: None,
        }
    }

    /// Says what the tool does, in words for the model, in place of what its definition says.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// Says what the tool may do to the world. What says nothing counts as [`Effect::Write`].
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets the parameters on the line of an emoji call, in their order (`spec/emoji.md` 8).
    pub fn positional<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.spec = self.spec.positional(names);
        self
    }

    /// Sets the string parameter that takes the body of an emoji call (`spec/emoji.md` 8).
    pub fn body(mut self, name: impl Into<String>) -> Self {
        self.spec = self.spec.body(name);
        self
    }

    /// Sets how long a call may run, from its start; 60 seconds if nothing is said.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = timeout;
        self
    }

    /// Sets how long a call that is to stop may take to end by itself.
    ///
    /// Nothing for a function: its future is polled once more, then dropped. Two seconds for a command: its processes
    /// get `SIGTERM`, and after the grace `SIGKILL`.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.policy.grace = grace;
        self
    }

    /// Sets how many calls of this tool may run at the same time; 0 is any number.
    pub fn max_concurrent(mut self, count: u32) -> Self {
        self.policy.max_concurrent = NonZeroU32::new(count);
        self
    }

    /// Lets calls of this tool run only when nothing else runs.
    pub fn exclusive(mut self) -> Self {
        self.policy.exclusive = true;
        self
    }

    /// Tries a call again that has failed or run out of time (`spec/running.md`, "Retries"). Only for tools that
    /// [read](Effect::Read) or [can be repeated](Effect::Idempotent); a toolbox refuses others.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.policy.retry = Some(retry);
        self
    }

    /// Sets what becomes of the calls that depend on one of this tool that ran and failed; they are skipped if nothing
    /// is said (`spec/running.md`, "Skipping").
    pub fn dependents(mut self, dependents: Dependents) -> Self {
        self.policy.dependents = dependents;
        self
    }

    /// Makes it a tool that ends the run: when a call of it has ended `ok`, the run ends after the turn
    /// (`spec/running.md`, "A tool that ends the run").
    pub fn finishes(mut self) -> Self {
        self.policy.finishes = true;
        self
    }

    /// Says in which directory relative paths among its arguments begin, for people who are to allow a call and want to
    /// see what would change. It is for functions; a [`Command`](crate::Command) says it itself.
    pub fn works_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.works_in = Some(directory.into());
        self
    }

    /// Says that a shell runs the text of this parameter. Rules then compare it word by word, and one that allows fits
    /// only a simple command (`spec/running.md`, "Command lines"). A [`Command`](crate::Command) says it itself.
    pub fn command_line(mut self, parameter: impl Into<String>) -> Self {
        self.meanings.set(parameter.into(), Meaning::CommandLine);
        self
    }

    /// Says that this parameter takes a path below the directory, relative to it or absolute. Rules then see the path
    /// relative to it, in whatever way it is written (`spec/running.md`, "Paths"). The tool itself must refuse paths that
    /// lead elsewhere.
    pub fn path_below(
        mut self,
        parameter: impl Into<String>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let meaning = Meaning::PathBelow(directory.into());
        self.meanings.set(parameter.into(), meaning);
        self
    }

    /// Says in a few words where the definition comes from, if it was written by somebody else than the program's author and
    /// user, such as a server that offers the tool. A person who is asked about a call that stands in it reads that.
    ///
    /// Name, description and schema of every tool are untrusted text, whoever wrote them: a call that a model copies from
    /// them is held (`spec/running.md`, "Echoes").
    pub fn from_outside(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Where its definition comes from, if that is [outside](Self::from_outside).
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    pub(crate) fn begin(&self) -> ToolBegin {
        ToolBegin {
            effect: self.spec.effect,
            policy: self.policy.clone(),
        }
    }

    /// How its calls may run.
    pub fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    /// The tool's definition.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// What a command tool runs with these arguments, for people who are to allow it; `None` for other tools.
    ///
    /// A program is shown as the line that one would type in a shell, quoted where it has to be. A script is shown as
    /// it is, with the values of its parameters below it. A directory that is not known before the call starts is
    /// shown as its placeholder.
    pub fn command_text(&self, arguments: &Arguments) -> Option<String> {
        self.code.command()?.text(arguments)
    }

    /// The directory in which the tool would be run, if it is a command, in a run with these directories; for a function
    /// the one that it [works in](Self::works_in).
    pub fn command_directory(&self, directories: &Directories) -> Option<PathBuf> {
        match self.code.command() {
            Some(command) => command.directory(directories),
            None => self.works_in.clone(),
        }
    }

    /// The names of the variables that a command may see besides [the usual](crate::Command::environment).
    pub fn environment(&self) -> &[String] {
        self.code.command().map_or(&[], |one| &one.environment)
    }

    /// The parameters whose texts a command hands to an interpreter as a program or a part of one, as far as its definition
    /// tells. A shell's whole program is a [command line](Self::command_line) to rules.
    pub fn interpreted(&self) -> &[Interpreted] {
        self.code.command().map_or(&[], |one| &one.interpreted)
    }

    /// The name a model writes.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

impl Request {
    /// A call of this tool, to ask [rules](crate::Rules::verdict) about it.
    pub fn of(tool: &Tool, arguments: Arc<Arguments>) -> Self {
        Self {
            call: 0,
            id: Arc::default(),
            name: tool.name().into(),
            effect: tool.spec.effect,
            arguments,
            held: None,
            meanings: tool.meanings.clone(),
        }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tool")
            .field("spec", &self.spec)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
