//! A tool: its definition, how it may run, and its code.

mod read_result;
mod typed;

use std::fmt::{self, Write as _};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::command::Interpreted;
use crate::command::invocation::Invocation;
use crate::context::Context;
pub use crate::context::DependencyResult;
use crate::request::Request;
use crate::rules::{Meaning, Meanings};
use crate::run_directory::Directories;
pub use crate::tool_error::Failure;
use crate::tool_error::{BoxToolFuture, ToolResult};
use crate::tool_policy::{Dependents, Retry, ToolBegin, ToolPolicy};
pub use plaincall_tool::*;
pub use typed::{ToolArguments, ToolFuture};

#[derive(Clone)]
pub(crate) enum Code {
    Function(Arc<dyn Fn(Arguments, Context) -> BoxToolFuture + Send + Sync>),
    Command(Arc<Invocation>),
}

impl Code {
    pub(crate) fn start(&self, arguments: Arguments, context: Context) -> BoxToolFuture {
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

/// A tool: its definition, its limits and its code.
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
    /// Creates a tool from an async function that takes typed arguments and the [`Context`] of the call.
    ///
    /// The fields of the type are the parameters ([`ToolSpec::of`]). The doc comment of the type describes the tool, and the
    /// doc comment of a field its parameter. A field with a default or of type `Option` is an optional parameter.
    ///
    /// Calls with other arguments are rejected before the function runs. If the type's own `Deserialize` fails, the call
    /// fails. For a tool without parameters, use the type `()`.
    ///
    /// ```
    /// use plaincall::{Effect, Tool};
    ///
    /// /// Writes a file of the project.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct WriteFile {
    ///     /// The path, relative to the project.
    ///     #[schemars(example = &"src/main.rs")]
    ///     path: String,
    ///     /// The whole text.
    ///     content: String,
    ///     /// Replaces an existing file.
    ///     #[serde(default)]
    ///     replace: bool,
    /// }
    ///
    /// let write_file = Tool::new("write-file", |file: WriteFile, context| async move {
    ///     let folder = context.directory().ok_or("this run has no directory")?;
    ///     let path = folder.join(&file.path);
    ///     if path.exists() && !file.replace {
    ///         return Err(format!("{} exists", file.path).into());
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

    /// Creates a tool from a definition and an async function that takes untyped arguments.
    ///
    /// Use it for tools that are defined at run time, and for types without `JsonSchema`. [`Arguments::to`] deserializes the
    /// arguments into any type.
    ///
    /// ```
    /// use plaincall::{Effect, Tool};
    /// use plaincall::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
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
        function: impl Fn(Arguments, Context) -> BoxToolFuture + Send + Sync + 'static,
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

    /// Sets the description for the model.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// Sets what the tool may change. Default: [`Effect::Write`].
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets the parameters on the first line of an emoji call, in order (`spec/emoji.md` 8).
    pub fn positional<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.spec = self.spec.positional(names);
        self
    }

    /// Sets the string parameter that takes the body of an emoji call (`spec/emoji.md` 8).
    pub fn body(mut self, name: impl Into<String>) -> Self {
        self.spec = self.spec.body(name);
        self
    }

    /// Adds an example of a call, which the prompt shows as the model has to write it.
    ///
    /// ```
    /// use plaincall::{Effect, Tool};
    /// use plaincall::tool::CallExample;
    ///
    /// /// Adds two numbers.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Add { a: i64, b: i64 }
    ///
    /// let add = Tool::new("Add", |add: Add, _| async move { Ok((add.a + add.b).to_string()) })
    ///     .effect(Effect::Read)
    ///     .example(CallExample::new(serde_json::json!({"a": -5, "b": 7})).result("2"));
    /// assert!(add.spec().check().is_ok());
    /// ```
    pub fn example(mut self, example: CallExample) -> Self {
        self.spec = self.spec.example(example);
        self
    }

    /// Sets the timeout of a call, from its start. Default: 60 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = timeout;
        self
    }

    /// Sets how long a call may take to end after it was asked to stop.
    ///
    /// Default: two seconds for a command, between `SIGTERM` and `SIGKILL`; zero for a function, whose future is polled once
    /// more and then dropped.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.policy.grace = grace;
        self
    }

    /// Sets the maximum number of calls of this tool at the same time; 0 means no limit.
    pub fn max_concurrent(mut self, count: u32) -> Self {
        self.policy.max_concurrent = NonZeroU32::new(count);
        self
    }

    /// Runs calls of this tool only while no other call runs.
    pub fn exclusive(mut self) -> Self {
        self.policy.exclusive = true;
        self
    }

    /// Retries calls that fail or time out (`spec/running.md`, "Retries"). A toolbox rejects this for tools that
    /// [write](Effect::Write).
    pub fn retry(mut self, retry: Retry) -> Self {
        self.policy.retry = Some(retry);
        self
    }

    /// Sets what happens to calls that depend on a failed call of this tool (`spec/running.md`, "Skipping"). Default: they
    /// are skipped.
    pub fn dependents(mut self, dependents: Dependents) -> Self {
        self.policy.dependents = dependents;
        self
    }

    /// Makes the tool end the run: after a call that ends `ok`, the run ends with its turn (`spec/running.md`, "A tool that
    /// ends the run").
    pub fn finishes(mut self) -> Self {
        self.policy.finishes = true;
        self
    }

    /// States that a call of the tool only waits for calls that it [submits](crate::Turn::submit_from), so it holds no slot
    /// (`spec/running.md`, "Slots"). An interrupted call starts again in a resumed run, with any effect; the tool must not
    /// submit calls again that have ended ([`Turn::submitted`](crate::Turn::submitted)).
    #[doc(hidden)]
    pub fn delegates(mut self) -> Self {
        self.policy.delegates = true;
        self
    }

    /// Hides the tool from the model: only submitted calls can call it.
    pub fn submitted_only(mut self) -> Self {
        self.policy.submitted_only = true;
        self
    }

    /// Replaces the code of the tool and keeps its definition, its policy and its meaning to rules.
    pub fn with_code_of<F, R>(mut self, function: F) -> Self
    where
        F: Fn(Arguments, Context) -> R + Send + Sync + 'static,
        R: ToolFuture<Output = ToolResult> + Send + 'static,
    {
        self.code = Self::raw(self.spec.clone(), function).code;
        self
    }

    /// Returns whether both tools run the same code: one is a clone of the other, or both have the same definition from the
    /// same [origin](Self::origin).
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_code = match (&self.code, &other.code) {
            (Code::Function(one), Code::Function(other)) => Arc::ptr_eq(one, other),
            (Code::Command(one), Code::Command(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let is_same_origin = self.origin.is_some() && self.origin == other.origin;
        self.spec == other.spec && (is_same_code || is_same_origin)
    }

    /// Sets the base directory of relative paths in the arguments, for display when a call needs approval. Only for
    /// functions; a [command](Self::command_directory) has its own.
    pub fn works_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.works_in = Some(directory.into());
        self
    }

    /// Marks a parameter as a command line, which a shell runs. Rules then compare it word by word, and a rule that allows
    /// matches only a simple command (`spec/running.md`, "Command lines"). Commands do this automatically.
    pub fn command_line(mut self, parameter: impl Into<String>) -> Self {
        self.meanings.set(parameter.into(), Meaning::CommandLine);
        self
    }

    /// Marks a parameter as a path below the directory, absolute or relative to it. Rules then compare the path relative to
    /// the directory, however it is written (`spec/running.md`, "Paths"). The tool itself must reject paths outside it.
    pub fn path_below(
        mut self,
        parameter: impl Into<String>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let meaning = Meaning::PathBelow(directory.into());
        self.meanings.set(parameter.into(), meaning);
        self
    }

    /// Sets the origin of a definition that neither the author nor the user of the program wrote, such as an MCP server. It
    /// is shown when a call that appears in the definition needs approval. Every definition is untrusted text, with or
    /// without an origin: a call that a model copies from it is held (`spec/running.md`, "Echoes").
    pub fn from_outside(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Returns the [origin](Self::from_outside) of the definition.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Creates a tool of a log that no longer exists. It never runs.
    pub(crate) fn gone(name: &str) -> Self {
        Self::raw(ToolSpec::new(name), |_, _| async {
            Err("the tool no longer exists".into())
        })
    }

    /// Sets the settings that a log contains.
    pub(crate) fn set_begin(&mut self, begin: &ToolBegin) {
        self.spec.effect = begin.effect;
        self.policy = begin.policy.clone();
    }

    pub(crate) fn begin(&self) -> ToolBegin {
        ToolBegin {
            effect: self.spec.effect,
            policy: self.policy.clone(),
        }
    }

    /// Returns the limits and retries of the tool.
    pub fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    /// Returns the definition.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns what a command runs with these arguments, for display: a program as a quoted command line, a script with the
    /// values of its parameters below it. Directories of the run are shown as placeholders. `None` for functions.
    pub fn command_text(&self, arguments: &Arguments) -> Option<String> {
        self.code.command()?.text(arguments)
    }

    /// Returns the working directory of a command, or the [base directory](Self::works_in) of a function, in a run.
    pub fn command_directory(&self, directories: &Directories) -> Option<PathBuf> {
        match self.code.command() {
            Some(command) => command.directory(directories),
            None => self.works_in.clone(),
        }
    }

    /// Returns the names of the environment variables that a command inherits in addition to the default ones.
    pub fn environment(&self) -> &[String] {
        self.code.command().map_or(&[], |one| &one.environment)
    }

    /// Returns the parameters that a command passes to an interpreter as code, as far as its definition shows. A parameter
    /// that is a shell's whole program is a [command line](Self::command_line) for rules.
    pub fn interpreted(&self) -> &[Interpreted] {
        self.code.command().map_or(&[], |one| &one.interpreted)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Returns a text that is the same for the same definition in the same build, on every machine: the description, the
    /// parameters, the effect, the limits and, of a command, its words, directory, variables and limit of output. The code of
    /// a function is not part of it.
    pub fn fingerprint(&self) -> String {
        let spec = &self.spec;
        let texts = (&spec.name, &spec.description, spec.schema(), &spec.examples);
        let forms = (spec.parameters(), &spec.positional, &spec.body, spec.effect);
        let mut text = format!("{texts:?} {forms:?} {:?}", self.policy);
        if let Some(command) = self.code.command() {
            let (line, directory) = (&command.line, &command.directory);
            let kept = (command.output_limit, command.keeps_both_ends);
            let _ = write!(
                text,
                " {line:?} {directory:?} {:?} {kept:?}",
                command.environment
            );
        }
        text
    }
}

impl Request {
    /// Creates a call of this tool, to evaluate [rules](crate::Rules::verdict) on it.
    pub fn of(tool: &Tool, arguments: Arc<Arguments>) -> Self {
        Self {
            call: 0,
            id: Arc::default(),
            name: tool.name().into(),
            effect: tool.spec.effect,
            parent: None,
            arguments,
            held: None,
            delegates: tool.policy.delegates,
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
