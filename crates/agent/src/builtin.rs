//! The built-in tools: files below one directory, commands, pages, questions.
//!
//! The tools for files are confined to the directory: no `..`, absolute path or link leads out of it, also not while
//! something is being swapped. A command is not confined: it can do what the program's user can do. `fetch_url` reaches
//! no address of this machine or of a private network. Tools that change something have the effect
//! [`Write`](plaincall::Effect::Write), so a gate is asked about each call of them.

mod blocking;
mod command;
mod edit;
mod fetch;
mod glob;
mod list;
mod read;
mod replace;
mod rules;
mod search;
mod spelling;
mod suggest;
mod text;
mod user;
mod walk;
mod workspace;
mod write;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plaincall::{Effect, Tool, Toolbox, ToolboxError, command::CommandError};

use crate::builtin::workspace::{Root, Workspace};
use crate::user::User;
use plaincall_http::HttpError;

/// One of the built-in tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum BuiltinTool {
    /// `list_files`: what is in a directory, also below it, by pattern.
    ListFiles,
    /// `read_file`: lines of a text file, numbered.
    ReadFile,
    /// `search_files`: the lines that fit a regular expression.
    SearchFiles,
    /// `write_file`: a whole file, made or replaced.
    WriteFile,
    /// `edit_file`: a text in a file in place of another.
    EditFile,
    /// `run_command`: a command of the shell. It is not confined.
    RunCommand,
    /// `fetch_url`: a page of the web as text.
    FetchUrl,
    /// `ask_user`: a question to the user, if the program [says who answers](Builtin::user).
    AskUser,
    /// `finish`: the model says that it is done, and what it has to say.
    Finish,
}

impl BuiltinTool {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 9] = [
        Self::ListFiles,
        Self::ReadFile,
        Self::SearchFiles,
        Self::WriteFile,
        Self::EditFile,
        Self::RunCommand,
        Self::FetchUrl,
        Self::AskUser,
        Self::Finish,
    ];

    /// The name that a model writes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ListFiles => "list_files",
            Self::ReadFile => "read_file",
            Self::SearchFiles => "search_files",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::RunCommand => "run_command",
            Self::FetchUrl => "fetch_url",
            Self::AskUser => "ask_user",
            Self::Finish => "finish",
        }
    }

    /// The tool of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

/// The built-in tools for one directory, and which of them there are.
#[derive(Clone)]
pub struct Builtin {
    root: Arc<Root>,
    chosen: BTreeSet<BuiltinTool>,
    only_reading: bool,
    command: command::Settings,
    fetch: fetch::Settings,
    user: Option<Arc<dyn User>>,
}

impl Builtin {
    /// All of them, for the files below this directory. It is opened now: the tools for files do not see what takes its
    /// place later; `run_command`, and the previews of changes for a gate, use its path.
    ///
    /// # Errors
    /// Target is no such directory, or it cannot be opened.
    pub fn in_directory(path: impl AsRef<Path>) -> Result<Self, BuiltinError> {
        let path = path.as_ref();
        let root = Root::open(path).map_err(|error| BuiltinError::Directory {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self {
            root: Arc::new(root),
            chosen: BuiltinTool::ALL.into(),
            only_reading: false,
            command: command::Settings::default(),
            fetch: fetch::Settings::default(),
            user: None,
        })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.root.path
    }

    /// Leaves all others out.
    pub fn only(mut self, tools: impl IntoIterator<Item = BuiltinTool>) -> Self {
        let tools: BTreeSet<BuiltinTool> = tools.into_iter().collect();
        self.chosen.retain(|tool| tools.contains(tool));
        self
    }

    /// Leaves out what may change something. `fetch_url` stays if its [hosts](Self::fetch_hosts) are named.
    pub fn read_only(mut self) -> Self {
        self.only_reading = true;
        self
    }

    /// Says who answers the model's questions. Without it `ask_user` is not offered.
    pub fn user(mut self, user: impl User) -> Self {
        self.user = Some(Arc::new(user));
        self
    }

    /// Sets how long a command may run; 2 minutes if nothing is said. Then it is ended with all that it has started.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command.timeout = timeout;
        self
    }

    /// Names variables that commands may see, of those in the run's
    /// [environment](plaincall::RunBuilder::environment), besides [the usual](plaincall::Command::environment).
    pub fn command_environment<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.command.environment = names.into_iter().map(Into::into).collect();
        self
    }

    /// Lets pages only be fetched from these hosts; `*.example.org` means all below `example.org`. Then `fetch_url` counts as
    /// a tool that reads. Otherwise it counts as one that writes: an address can carry what a model has read to anyone.
    pub fn fetch_hosts<N: Into<String>>(mut self, hosts: impl IntoIterator<Item = N>) -> Self {
        self.fetch.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Lets pages also be fetched from this machine and from private networks.
    pub fn fetch_from_private_networks(mut self) -> Self {
        self.fetch.private = true;
        self
    }

    /// Sets how long the fetching of a page may take, redirects and all; 30 seconds if nothing is said.
    pub fn fetch_timeout(mut self, timeout: Duration) -> Self {
        self.fetch.time = timeout;
        self
    }

    /// The tools.
    ///
    /// # Errors
    /// Commands cannot run in the directory or with these variables, or connections cannot be made.
    pub fn tools(&self) -> Result<Vec<Tool>, BuiltinError> {
        let mut offered = self.chosen.clone();
        if self.user.is_none() {
            offered.remove(&BuiltinTool::AskUser);
        }
        if self.only_reading {
            offered.retain(|tool| self.only_reads(*tool));
        }
        let workspace = Workspace {
            root: Arc::clone(&self.root),
            offered: Arc::new(offered.clone()),
        };
        let mut tools = Vec::new();
        for tool in offered {
            let workspace = workspace.clone();
            tools.push(match tool {
                BuiltinTool::ListFiles => list::tool(workspace),
                BuiltinTool::ReadFile => read::tool(workspace),
                BuiltinTool::SearchFiles => search::tool(workspace),
                BuiltinTool::WriteFile => write::tool(workspace),
                BuiltinTool::EditFile => edit::tool(workspace),
                BuiltinTool::RunCommand => {
                    command::tool(&workspace, &self.command).map_err(BuiltinError::Command)?
                }
                BuiltinTool::FetchUrl => fetch::tool(&self.fetch)
                    .map_err(|error: HttpError| BuiltinError::Connections(error.to_string()))?,
                BuiltinTool::AskUser => match &self.user {
                    Some(user) => user::ask(Arc::clone(user)),
                    None => continue,
                },
                BuiltinTool::Finish => user::finish(),
            });
        }
        Ok(tools)
    }

    /// The tools in a toolbox of their own.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub fn toolbox(&self) -> Result<Toolbox, BuiltinError> {
        Toolbox::new(self.tools()?).map_err(BuiltinError::Toolbox)
    }

    fn only_reads(&self, tool: BuiltinTool) -> bool {
        use BuiltinTool::{EditFile, FetchUrl, RunCommand, WriteFile};
        match tool {
            WriteFile | EditFile | RunCommand => false,
            FetchUrl => self.fetch.effect() == Effect::Read,
            _ => true,
        }
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Builtin")
            .field("directory", &self.root.path)
            .field("chosen", &self.chosen)
            .finish_non_exhaustive()
    }
}

/// Why there are no built-in tools.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuiltinError {
    /// The directory cannot be opened.
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// No commands can be run in the directory, or with these variables.
    Command(CommandError),
    /// No connections can be made; why.
    Connections(String),
    /// The tools do not go together.
    Toolbox(ToolboxError),
}

impl fmt::Display for BuiltinError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path, error } => write!(
                formatter,
                "the directory {} for the built-in tools cannot be opened: {error}",
                path.display()
            ),
            Self::Command(error) => write!(formatter, "`run_command` cannot be offered: {error}"),
            Self::Connections(why) => write!(formatter, "`fetch_url` cannot be offered: {why}"),
            Self::Toolbox(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for BuiltinError {}
