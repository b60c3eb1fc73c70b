//! Reads servers from a file.

use std::path::Path;

use plaincall::names::pointers::unescape;
use plaincall::{rules::Pattern, tools_file::FileError};
use plaincall_config::servers::{ServerTable, expand, servers};
use plaincall_config::settings::FilePath;
use plaincall_config::{AsText, Document, Location, Node, child};

use super::{McpConfig, McpServer, McpTransport};

impl McpConfig {
    /// Reads a JSON file with `mcpServers` (also `servers`; comments are allowed), or a TOML file with `[mcpServers.NAME]`
    /// (also `mcp_servers` and `mcp.servers`). Other top-level keys are ignored.
    ///
    /// A relative `cwd` is relative to the folder of `path`, the path of the file. `${NAME}`, `${env:NAME}` and
    /// `${NAME:-default}` in values are replaced by `variable(NAME)`; the process environment is not read.
    ///
    /// # Errors
    /// Returns all problems with their lines and columns.
    pub fn read(
        text: &str,
        path: impl AsRef<Path>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, FileError> {
        let path = path.as_ref();
        let mut document = Document::json_or_toml(path.display().to_string(), text);
        let tables = servers(&mut document);
        let folder = path.parent().unwrap_or(Path::new(""));
        let servers = read(&mut document, tables, (folder, None), &variable);
        document.finish(Self { servers })
    }

    /// Reads a table of servers by name, with the keys of [`read`](Self::read). A relative `cwd` is relative to the folder,
    /// and `~` in it is the home directory.
    ///
    /// # Errors
    /// Returns all problems; their lines and columns are meaningless.
    pub fn of_table(
        table: Node,
        (folder, home): (&Path, Option<&Path>),
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, FileError> {
        let mut document = Document::of(table);
        let tables = document
            .keys("")
            .iter()
            .map(|name| child("", name))
            .collect();
        let servers = read(&mut document, tables, (folder, home), &variable);
        document.finish(Self { servers })
    }
}

fn read(
    document: &mut Document,
    tables: Vec<String>,
    (folder, home): (&Path, Option<&Path>),
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<McpServer> {
    let mut servers = Vec::new();
    for at in tables {
        let before = document.count();
        let mut reader = Reader {
            document: &mut *document,
            at,
            folder,
            home,
            variable,
            is_disabled: false,
        };
        let server = reader.server();
        servers.extend(server.filter(|_| document.count() == before));
    }
    servers
}

struct Reader<'r> {
    document: &'r mut Document,
    at: String,
    folder: &'r Path,
    home: Option<&'r Path>,
    variable: &'r dyn Fn(&str) -> Option<String>,
    /// Whether variables must be set: those of a disabled server need not be.
    is_disabled: bool,
}

impl Reader<'_> {
    fn below(&self, key: &str) -> String {
        format!("{}/{key}", self.at)
    }

    fn key(&mut self, key: &str, message: impl Into<String>) {
        self.document
            .problem(&Location::Key(self.below(key)), message);
    }

    fn value(&mut self, key: &str, message: impl Into<String>) {
        self.document
            .problem(&Location::Value(self.below(key)), message);
    }

    fn server(&mut self) -> Option<McpServer> {
        let name = self.at.rsplit('/').next().unwrap_or_default();
        let name = unescape(name).into_owned();
        if name.is_empty() || name.chars().any(char::is_control) {
            let message = "the name of a server must not contain control characters";
            self.document.problem(&Location::key(&self.at), message);
            return None;
        }
        let table: ServerTable = self.document.read(&self.at)?;
        self.is_disabled = match (table.disabled, table.enabled) {
            (Some(disabled), _) => disabled,
            (None, enabled) => enabled == Some(false),
        };
        let transport = self.transport(&table);
        let tools = self.texts("tools", &table.tools);
        let exclude_tools = self.texts("exclude_tools", &table.exclude_tools);
        let effects = table.effects.0.into_iter();
        Some(McpServer {
            name,
            transport: transport?,
            disabled: self.is_disabled,
            effects: effects
                .map(|(tools, effect)| (Pattern::new(tools), effect))
                .collect(),
            tools: tools.into_iter().map(Pattern::new).collect(),
            exclude_tools: exclude_tools.into_iter().map(Pattern::new).collect(),
            timeout: table.timeout.map(|time| time.0),
        })
    }

    fn transport(&mut self, table: &ServerTable) -> Option<McpTransport> {
        match (&table.command, &table.url) {
            _ if !table.check_keys(&self.at, self.document) => None,
            (Some(command), _) => self.stdio(command, table),
            (None, url) => self.http(&url.as_ref()?.0, table),
        }
    }

    fn stdio(&mut self, command: &str, table: &ServerTable) -> Option<McpTransport> {
        let command = self.expanded("command", command)?;
        if command.is_empty() {
            self.value("command", "`command` is empty");
        }
        // A relative path of a program does not depend on the working directory.
        let whole = self.folder.join(&command);
        let is_relative = command.contains('/') && Path::new(&command).is_relative();
        let whole = whole.to_str().filter(|_| is_relative).map(str::to_owned);
        let is_wrong = |name: &str| name.is_empty() || name.contains(['=', '\0']);
        Some(McpTransport::Stdio {
            command: whole.unwrap_or(command),
            args: self.texts("args", &table.args),
            env: self.pairs("env", &table.env, is_wrong, "is not a valid variable name"),
            cwd: match table.cwd.as_ref().and_then(|cwd| cwd.0.to_str()) {
                Some(cwd) => {
                    let cwd = FilePath(self.expanded("cwd", cwd)?.into());
                    Some(cwd.resolve(self.folder, self.home))
                }
                None => None,
            },
        })
    }

    fn http(&mut self, url: &str, table: &ServerTable) -> Option<McpTransport> {
        let url = self.expanded("url", url)?;
        if !self.is_disabled {
            // The URL may contain a secret, so the message does not repeat it.
            match url::Url::parse(&url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => {}
                Ok(_) => self.value("url", "a URL must begin with `http://` or `https://`"),
                Err(error) => self.value("url", format!("this is not a valid URL: {error}")),
            }
        }
        let is_wrong =
            |name: &str| plaincall_http::http::header::HeaderName::try_from(name).is_err();
        let message = "is not a valid header name";
        let headers = self.pairs("headers", &table.headers, is_wrong, message);
        Some(McpTransport::Http { url, headers })
    }

    fn expanded(&mut self, key: &str, text: &str) -> Option<String> {
        if text.contains('\0') {
            self.value(key, "NUL characters are not allowed here");
            return None;
        }
        match expand(text, self.variable) {
            Ok(text) => Some(text),
            Err(_) if self.is_disabled => Some(text.to_owned()),
            Err(wrong) => {
                for message in wrong {
                    self.value(key, message);
                }
                None
            }
        }
    }

    fn texts(&mut self, key: &str, texts: &[String]) -> Vec<String> {
        let texts = texts.iter().enumerate();
        texts
            .filter_map(|(index, text)| self.expanded(&format!("{key}/{index}"), text))
            .collect()
    }

    fn pairs<'p>(
        &mut self,
        key: &str,
        pairs: impl IntoIterator<Item = (&'p String, &'p AsText)>,
        is_wrong: impl Fn(&str) -> bool,
        message: &str,
    ) -> Vec<(String, String)> {
        let mut read = Vec::new();
        for (name, AsText(text)) in pairs {
            let at = child(key, name);
            if is_wrong(name) {
                // What follows may be a secret.
                let shown = name.split_inclusive([':', '=']).next().unwrap_or_default();
                self.key(&at, format!("`{shown}` {message}"));
            }
            read.extend(self.expanded(&at, text).map(|text| (name.clone(), text)));
        }
        read
    }
}
