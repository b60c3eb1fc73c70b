//! Servers from a file.

use std::path::Path;

use plaincall::{rules::Pattern, tools_file::FileError};
use plaincall_config::servers::{ServerTable, expand, servers};
use plaincall_config::{AsText, Document, FilePath, Node, Place, child};

use super::{McpConfig, McpServer, McpTransport};

impl McpConfig {
    /// Reads a file: `mcpServers` as many programs write it in JSON (also `servers`, and with comments), or the same in
    /// TOML, `[mcpServers.NAME]` (also `mcp_servers` and `mcp.servers`). Other keys at the top of the file are ignored.
    ///
    /// `path` is the path of the file: a relative `cwd` begins in its folder. `${NAME}`, `${env:NAME}` and
    /// `${NAME:-default}` in values stand for `variable(NAME)`; the environment of the process is not looked at.
    ///
    /// # Errors
    /// All problems, each with its line and column.
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

    /// Reads a table of servers that is a part of other settings, with the keys of [`read`](Self::read) under one name each.
    /// A relative `cwd` begins in the folder, and `~` in it stands for the home.
    ///
    /// # Errors
    /// All problems; their lines and columns mean nothing.
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
    /// Variables of a server that is not used need not be set.
    is_disabled: bool,
}

impl Reader<'_> {
    fn below(&self, key: &str) -> String {
        format!("{}/{key}", self.at)
    }

    fn key(&mut self, key: &str, message: impl Into<String>) {
        self.document.problem(&Place::Key(self.below(key)), message);
    }

    fn value(&mut self, key: &str, message: impl Into<String>) {
        self.document
            .problem(&Place::Value(self.below(key)), message);
    }

    fn server(&mut self) -> Option<McpServer> {
        let name = self.at.rsplit('/').next().unwrap_or_default();
        let name = name.replace("~1", "/").replace("~0", "~");
        if name.is_empty() || name.chars().any(char::is_control) {
            let message = "a server needs a name without control characters";
            self.document.problem(&Place::key(&self.at), message);
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
            _ if !table.goes_together(&self.at, self.document) => None,
            (Some(command), _) => self.stdio(command, table),
            (None, url) => self.http(&url.as_ref()?.0, table),
        }
    }

    fn stdio(&mut self, command: &str, table: &ServerTable) -> Option<McpTransport> {
        let command = self.expanded("command", command)?;
        if command.is_empty() {
            self.value("command", "`command` is empty");
        }
        // A program with a relative path is the same wherever it is started.
        let whole = self.folder.join(&command);
        let is_relative = command.contains('/') && Path::new(&command).is_relative();
        let whole = whole.to_str().filter(|_| is_relative).map(str::to_owned);
        let is_wrong = |name: &str| name.is_empty() || name.contains(['=', '\0']);
        Some(McpTransport::Stdio {
            command: whole.unwrap_or(command),
            args: self.texts("args", &table.args),
            env: self.pairs("env", &table.env, is_wrong, "is not the name of a variable"),
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
            // The address may hold a secret, so the message does not repeat it.
            match url::Url::parse(&url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => {}
                Ok(_) => self.value("url", "an address begins with `http://` or `https://`"),
                Err(error) => self.value("url", format!("this is not an address: {error}")),
            }
        }
        let is_wrong =
            |name: &str| plaincall_http::http::header::HeaderName::try_from(name).is_err();
        let message = "is not the name of a header";
        let headers = self.pairs("headers", &table.headers, is_wrong, message);
        Some(McpTransport::Http { url, headers })
    }

    fn expanded(&mut self, key: &str, text: &str) -> Option<String> {
        if text.contains('\0') {
            self.value(key, "a NUL character is not possible here");
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
                self.key(&at, format!("`{name}` {message}"));
            }
            read.extend(self.expanded(&at, text).map(|text| (name.clone(), text)));
        }
        read
    }
}
