//! One conversation: tools, gate, ids, results so far.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU32;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Collector, Limits, Unclosed};
use plaincall_plan::{Order, Plan};
use plaincall_syntax::{ByteParser, Dialect, DialectError};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::context::{RunDirectory, Surroundings};
use crate::driver::{Driver, Message};
use crate::event::RunEvents;
use crate::gate::Gate;
use crate::toolbox::Toolbox;
use crate::turn::Turn;

/// How many calls of a run may be running at the same time if nothing is said.
///
/// A running command holds file descriptors, of which a process often has 1,024, and the machine has only so many
/// processors. A model can write thousands of calls in one reply.
pub const DEFAULT_CONCURRENT: u32 = 32;

/// One conversation with a model: its tools, who may allow calls, its ids and the results so far.
///
/// A task of its own owns the calls that run. Dropping the run calls off what still runs, lets nothing of it live on,
/// and removes the run's directory.
///
/// ```
/// use plaincall::{Effect, Run, Stop, Tool, Toolbox};
///
/// # tokio_test(async {
/// let now = Tool::new("Now", |_: (), _| async { Ok("half past nine".to_owned()) }).effect(Effect::Read);
/// let mut run = Run::new(Toolbox::new([now])?)?;
/// let mut turn = run.turn();
/// turn.feed("One moment.\n!!!GADGET_START:Now\n!!!GADGET_END\n");
/// let results = turn.finish(Stop::Natural).await;
/// assert_eq!(results[0].output.as_deref(), Some("half past nine"));
/// # Ok(()) });
/// # fn tokio_test(f: impl Future<Output = Result<(), Box<dyn std::error::Error>>>) {
/// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f).unwrap();
/// # }
/// ```
#[derive(Debug)]
pub struct Run {
    pub(crate) inbox: UnboundedSender<Message>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) dialect: Dialect,
    /// A parser that has read nothing.
    pub(crate) parser: ByteParser,
    pub(crate) collector: Collector,
    pub(crate) unclosed: Unclosed,
    pub(crate) emoji_order: Order,
    surroundings: Arc<Surroundings>,
    runtime: Handle,
    driver: JoinHandle<()>,
}

impl Run {
    /// A run with these tools and otherwise the defaults of [`RunBuilder`].
    ///
    /// # Errors
    /// See [`RunBuilder::build`].
    pub fn new(toolbox: Toolbox) -> Result<Self, RunError> {
        Self::builder(toolbox).build()
    }

    /// Settings for a run with these tools.
    pub fn builder(toolbox: Toolbox) -> RunBuilder {
        RunBuilder {
            toolbox,
            dialect: Dialect::default(),
            gate: None,
            limits: Limits::for_running(),
            concurrent: DEFAULT_CONCURRENT,
            calls_per_turn: None,
            unclosed: Unclosed::default(),
            emoji_order: Order::Sequential {
                stop_on_error: false,
            },
            directory: None,
            environment: BTreeMap::new(),
        }
    }

    /// Begins the next reply of the model.
    pub fn turn(&mut self) -> Turn<'_> {
        Turn::new(self)
    }

    /// What happens from now on in all turns.
    pub fn events(&self) -> RunEvents {
        let (sender, events) = RunEvents::new();
        self.send(Message::Listen(sender));
        events
    }

    /// A handle by which the run can be cancelled from elsewhere.
    pub fn canceller(&self) -> Canceller {
        Canceller {
            inbox: self.inbox.downgrade(),
        }
    }

    /// The tools.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// The run's own directory, if it has one.
    pub fn directory(&self) -> Option<&Path> {
        self.surroundings.directory.as_ref().map(RunDirectory::path)
    }

    /// Ends the run as dropping it does, and waits until nothing of it is left. The run's directory is removed on a
    /// thread for work that blocks; a run that is dropped removes it on the thread where its last call ends.
    ///
    /// # Errors
    /// If the run's directory cannot be removed. A tool that has kept its [`Context`](crate::Context) keeps the
    /// directory for as long.
    pub async fn close(self) -> Result<(), CloseError> {
        let Self {
            inbox,
            runtime,
            driver,
            surroundings,
            ..
        } = self;
        drop(inbox);
        // It fails only if the runtime is gone, and then so is everything else.
        let _ = driver.await;
        let directory = Arc::into_inner(surroundings).and_then(|all| all.directory);
        let Some(RunDirectory::Temporary(directory)) = directory else {
            return Ok(());
        };
        let path = directory.path().to_owned();
        let removed = runtime.spawn_blocking(|| directory.close()).await;
        match removed.unwrap_or_else(|error| Err(error.into())) {
            // A tool may have removed it; if the runtime has gone down, so has the directory.
            Err(error) if path.exists() => Err(CloseError {
                directory: path,
                error,
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn send(&self, message: Message) {
        // It fails only if the runtime that the run was built on is gone, and then nothing can run any more.
        let _ = self.inbox.send(message);
    }
}

/// Cancels a run. See [`Canceller::cancel`].
#[derive(Clone, Debug)]
pub struct Canceller {
    inbox: WeakUnboundedSender<Message>,
}

impl Canceller {
    /// Calls off all calls of the run: those that have not started end as `cancelled`, running tools are stopped.
    /// Calls that still appear in the same turn are cancelled too; the next turn is free again.
    pub fn cancel(&self) {
        if let Some(inbox) = self.inbox.upgrade() {
            let _ = inbox.send(Message::Cancel);
        }
    }
}

/// Settings of a [`Run`].
#[derive(Clone)]
pub struct RunBuilder {
    toolbox: Toolbox,
    dialect: Dialect,
    gate: Option<Arc<dyn Gate>>,
    limits: Limits,
    concurrent: u32,
    calls_per_turn: Option<u32>,
    unclosed: Unclosed,
    emoji_order: Order,
    directory: Option<Place>,
    environment: BTreeMap<OsString, OsString>,
}

impl RunBuilder {
    /// Sets how the model's text is read; the automatic dialect if nothing is said.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets who decides whether a call may run; [`ReadOnly`](crate::ReadOnly) if nothing is said.
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gate = Some(Arc::new(gate));
        self
    }

    /// Sets how large a call may be; [`Limits::for_running`] if nothing is said.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many calls may run at the same time; [`DEFAULT_CONCURRENT`] if nothing is said, any number if 0.
    ///
    /// A command hears of the end of every other one that runs beside it. That is nothing beside the start of a process
    /// as long as there are dozens; with thousands at once it becomes most of the cost.
    pub fn concurrent(mut self, count: u32) -> Self {
        self.concurrent = count;
        self
    }

    /// Sets how many calls a turn may hold; those written after them are rejected. Any number if nothing is said.
    pub fn calls_per_turn(mut self, count: u32) -> Self {
        self.calls_per_turn = Some(count);
        self
    }

    /// Sets what becomes of emoji calls without an end marker; they are rejected if nothing is said.
    pub fn unclosed(mut self, unclosed: Unclosed) -> Self {
        self.unclosed = unclosed;
        self
    }

    /// Sets the order of emoji calls, which name no dependencies: in order of writing if nothing is said, all at once
    /// with [`Order::Graph`] (`spec/running.md`, "Order of writing").
    pub fn emoji_order(mut self, order: Order) -> Self {
        self.emoji_order = order;
        self
    }

    /// Gives the run a directory of its own, made in this one. It is removed at the end of the run.
    pub fn directory_in(mut self, parent: impl Into<PathBuf>) -> Self {
        self.directory = Some(Place::In(parent.into()));
        self
    }

    /// Makes this the run's own directory. It is made if it is not there, and it stays, with all that is in it.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(Place::At(directory.into()));
        self
    }

    /// Sets the environment from which commands get what they may see
    /// ([`Command::environment`](crate::Command::environment)). The library never looks at the process's own.
    pub fn environment<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = variables.into_iter();
        self.environment = variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        self
    }

    /// Makes the run and starts its task on the present tokio runtime.
    ///
    /// # Errors
    /// If there is no runtime, or one without what runs need (build it with `enable_all`), the dialect cannot work, the directory cannot be made, or a tool
    /// needs the run's directory and there is none.
    pub fn build(self) -> Result<Run, RunError> {
        let runtime = Handle::try_current().map_err(|_| RunError::NoRuntime)?;
        check_runtime(&self.toolbox)?;
        let parser = ByteParser::new(&self.dialect)?;
        let directory = make_directory(self.directory, &self.toolbox)?;
        let toolbox = Arc::new(self.toolbox);
        let plan = Plan::new(plaincall_plan::Limits {
            concurrent: NonZeroU32::new(self.concurrent),
            calls_per_turn: self.calls_per_turn,
        });
        let surroundings = Arc::new(Surroundings {
            directory,
            environment: self.environment,
        });
        let driver = Driver::new(
            plan,
            Arc::clone(&toolbox),
            self.gate,
            Arc::clone(&surroundings),
        );
        let (inbox, messages) = unbounded_channel();
        Ok(Run {
            driver: runtime.spawn(driver.run(messages)),
            inbox,
            toolbox,
            dialect: self.dialect,
            parser,
            collector: Collector::new(self.limits),
            unclosed: self.unclosed,
            emoji_order: self.emoji_order,
            surroundings,
            runtime,
        })
    }
}

/// Whether the present runtime has what the run and its tools need.
fn check_runtime(toolbox: &Toolbox) -> Result<(), RunError> {
    if !has_timers() {
        return Err(RunError::NoTimers);
    }
    match toolbox.iter().find(|tool| tool.code.is_command()) {
        Some(command) if !has_processes() => Err(RunError::NoProcesses {
            tool: command.name().to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The run's directory, if it was asked for.
fn make_directory(
    place: Option<Place>,
    toolbox: &Toolbox,
) -> Result<Option<RunDirectory>, RunError> {
    if let Some(place) = place {
        return place.make().map(Some);
    }
    match toolbox.iter().find(|tool| tool.code.needs_directory()) {
        Some(tool) => Err(RunError::NoDirectory {
            tool: tool.name().to_owned(),
        }),
        None => Ok(None),
    }
}

/// Whether the present runtime has timers. It cannot be asked; making a timer panics where there are none.
fn has_timers() -> bool {
    catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok()
}

/// Whether the present runtime can wait for processes. As with timers.
fn has_processes() -> bool {
    catch_unwind(|| drop(signal(SignalKind::child()))).is_ok()
}

/// Where the run's own directory is.
#[derive(Clone, Debug)]
enum Place {
    /// A new one in this one.
    In(PathBuf),
    /// This one.
    At(PathBuf),
}

impl Place {
    fn make(self) -> Result<RunDirectory, RunError> {
        match self {
            Self::In(parent) => tempfile::Builder::new()
                .prefix("plaincall-")
                .tempdir_in(&parent)
                .map(RunDirectory::Temporary)
                .map_err(|error| RunError::Directory { parent, error }),
            Self::At(directory) => {
                // Commands work elsewhere, so they need the whole path.
                let made = std::path::absolute(&directory)
                    .and_then(|path| std::fs::create_dir_all(&path).map(|()| path));
                match made {
                    Ok(path) => Ok(RunDirectory::Kept(path)),
                    Err(error) => Err(RunError::Directory {
                        parent: directory,
                        error,
                    }),
                }
            }
        }
    }
}

impl fmt::Debug for RunBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RunBuilder")
            .field("toolbox", &self.toolbox)
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

/// Why a run cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// There is no tokio runtime to run on.
    NoRuntime,
    /// The tokio runtime has no timers, and so no call could have a timeout.
    NoTimers,
    /// A tool is a command, and the tokio runtime cannot wait for processes.
    NoProcesses {
        /// The name of the tool.
        tool: String,
    },
    /// The dialect cannot work.
    Dialect(DialectError),
    /// The run's directory cannot be made.
    Directory {
        /// Where it was to be made, or which.
        parent: PathBuf,
        /// Why it cannot.
        error: std::io::Error,
    },
    /// A tool needs the run's directory, and the run has none.
    NoDirectory {
        /// The name of the tool.
        tool: String,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuntime => {
                formatter.write_str("a run needs a tokio runtime; make it inside one")
            }
            Self::NoTimers => formatter.write_str(
                "a run needs timers, and the tokio runtime has none; build it with `enable_all`",
            ),
            Self::NoProcesses { tool } => write!(
                formatter,
                "the tool `{tool}` is a command, and the tokio runtime cannot wait for processes; build it with `enable_all`"
            ),
            Self::Dialect(error) => error.fmt(formatter),
            Self::Directory { parent, error } => write!(
                formatter,
                "the run's directory cannot be made: {}: {error}",
                parent.display()
            ),
            Self::NoDirectory { tool } => write!(
                formatter,
                "the tool `{tool}` works in the run's directory, and the run has none; say where to make it"
            ),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dialect(error) => Some(error),
            Self::Directory { error, .. } => Some(error),
            Self::NoRuntime
            | Self::NoTimers
            | Self::NoProcesses { .. }
            | Self::NoDirectory { .. } => None,
        }
    }
}

impl From<DialectError> for RunError {
    fn from(error: DialectError) -> Self {
        Self::Dialect(error)
    }
}

/// Why a run that has ended has left something behind.
#[derive(Debug)]
pub struct CloseError {
    /// The run's directory, which is still there, with some or all of its files.
    pub directory: PathBuf,
    /// Why it cannot be removed.
    pub error: std::io::Error,
}

impl fmt::Display for CloseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the run's directory {} cannot be removed: {}; remove it by hand",
            self.directory.display(),
            self.error
        )
    }
}

impl std::error::Error for CloseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
