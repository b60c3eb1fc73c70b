//! Built-in tools for files in a directory, shell commands, web pages and questions to the user. They need Unix:
//! paths are opened without following links, and commands run in process groups.
//!
//! File tools are confined to the directory: no `..`, absolute path or link leaves it, even if files are swapped during a
//! call. `run_command` is not confined: it runs with the rights of this process. `fetch_url` does not reach this machine or
//! private networks. Tools that change something have the effect [`Write`](plaincall::Effect::Write) and need approval.

mod blocking;
mod command;
mod edit;
mod fetch;
mod glob;
mod ignored;
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
    /// `list_files`: lists a directory tree, optionally by glob.
    ListFiles,
    /// `read_file`: reads numbered lines of a text file.
    ReadFile,
    /// `search_files`: finds lines that match a regular expression.
    SearchFiles,
    /// `write_file`: creates or replaces a file.
    WriteFile,
    /// `edit_file`: replaces a text in a file.
    EditFile,
    /// `run_command`: runs a shell command. It is not confined.
    RunCommand,
    /// `fetch_url`: returns a web page as text.
    FetchUrl,
    /// `ask_user`: asks the user, if the program [sets one](Builtin::user).
    AskUser,
    /// `finish`: ends the agent run with an answer.
    Finish,
}

// In the order in which they are offered.
plaincall::names::named!(BuiltinTool {
    ListFiles = "list_files",
    ReadFile = "read_file",
    SearchFiles = "search_files",
    WriteFile = "write_file",
    EditFile = "edit_file",
    RunCommand = "run_command",
    FetchUrl = "fetch_url",
    AskUser = "ask_user",
    Finish = "finish",
});

/// A builder of the built-in tools for a directory.
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
    /// Selects all tools, for files in this directory. The directory is opened now, and file tools keep using it even if
    /// its path is replaced. `run_command` and the previews of changes for a gate use the path.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be opened.
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

    /// Keeps only these tools.
    pub fn only(mut self, tools: impl IntoIterator<Item = BuiltinTool>) -> Self {
        let tools: BTreeSet<BuiltinTool> = tools.into_iter().collect();
        self.chosen.retain(|tool| tools.contains(tool));
        self
    }

    /// Keeps only read-only tools. `fetch_url` is one if its [hosts](Self::fetch_hosts) are limited.
    pub fn read_only(mut self) -> Self {
        self.only_reading = true;
        self
    }

    /// Sets the user who answers questions. `ask_user` is offered only with a user.
    pub fn user(mut self, user: impl User) -> Self {
        self.user = Some(Arc::new(user));
        self
    }

    /// Sets the time limit of a command. Default: 2 minutes. Then the command and its child processes are killed.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command.timeout = timeout;
        self
    }

    /// Passes these variables of the run's [environment](plaincall::RunBuilder::environment) to commands, in addition to
    /// [the default ones](plaincall::Command::environment).
    pub fn command_environment<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.command.environment = names.into_iter().map(Into::into).collect();
        self
    }

    /// Limits `fetch_url` to these hosts and makes it a read-only tool. `*.example.org` matches all subdomains. Without this
    /// limit its effect is `Write`, because a URL can leak what the model has read.
    pub fn fetch_hosts<N: Into<String>>(mut self, hosts: impl IntoIterator<Item = N>) -> Self {
        self.fetch.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Also allows pages of this machine and of private networks.
    pub fn fetch_from_private_networks(mut self) -> Self {
        self.fetch.private = true;
        self
    }

    /// Sets the time limit of fetching a page, including redirects. Default: 30 seconds.
    pub fn fetch_timeout(mut self, timeout: Duration) -> Self {
        self.fetch.time = timeout;
        self
    }

    /// Returns the tools.
    ///
    /// # Errors
    /// Returns an error if commands cannot run in the directory or with these variables, or if TLS cannot be set up.
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

    /// Returns the tools in a new toolbox.
    ///
    /// # Errors
    /// See [`tools`](Self::tools).
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

/// An error that prevents the use of the built-in tools.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuiltinError {
    /// The directory cannot be opened.
    #[error("cannot open the directory {path} for the built-in tools: {error}")]
    Directory {
        /// Its path.
        path: PathBuf,
        /// The system error.
        error: io::Error,
    },
    /// Commands cannot run in the directory, or with these variables.
    #[error("`run_command` cannot be offered: {0}")]
    Command(CommandError),
    /// The HTTP client cannot be set up, for this reason.
    #[error("`fetch_url` cannot be offered: {0}")]
    Connections(String),
    /// The tools cannot be in one toolbox.
    #[error("{0}")]
    Toolbox(ToolboxError),
}
