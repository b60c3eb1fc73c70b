//! What the tree of a file says about MCP servers.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plaincall::call::{did_you_mean, nearest_name};
use plaincall::{Effect, Pattern};
use plaincall_config::Time;

use super::expand::expand;
use super::tree::{Key, Node, Value, problems, read};
use super::{McpConfig, McpConfigError, McpEffect, McpReach, McpServer};

/// What the table of servers is called at the top of a file.
const SERVERS: [&str; 3] = ["mcpServers", "mcp_servers", "servers"];

/// What a server may have, each with its other names. The first is the one that messages use.
const KEYS: [&[&str]; 13] = [
    &["command"],
    &["args"],
    &["env"],
    &["cwd"],
    &["url", "serverUrl", "httpUrl"],
    &["type", "transport"],
    &["headers", "http_headers"],
    &["disabled"],
    &["enabled"],
    &["effects"],
    &["tools", "includeTools", "enabledTools", "enabled_tools"],
    &[
        "exclude_tools",
        "excludeTools",
        "disabledTools",
        "disabled_tools",
    ],
    &["timeout"],
];

/// What other programs write into the table of a server, without meaning for what it does. `alwaysAllow` and the like are
/// what a user allowed to another program; here rules say that.
const PASSED_OVER: [&str; 14] = [
    "alwaysAllow",
    "autoAllow",
    "autoApprove",
    "description",
    "dev",
    "gallery",
    "icon",
    "icons",
    "note",
    "startup_timeout_ms",
    "startup_timeout_sec",
    "title",
    "trust",
    "version",
];

/// The effects that a user may say.
const EFFECTS: [(&str, McpEffect); 4] = [
    ("read", McpEffect::Is(Effect::Read)),
    ("idempotent", McpEffect::Is(Effect::Idempotent)),
    ("write", McpEffect::Is(Effect::Write)),
    ("hinted", McpEffect::AsHinted),
];

type Variable<'v> = dyn Fn(&str) -> Option<String> + 'v;

pub(super) fn config(
    text: &str,
    path: &Path,
    variable: &Variable<'_>,
) -> Result<McpConfig, McpConfigError> {
    let document = read(text).map_err(|mistakes| McpConfigError { mistakes })?;
    let mut reader = Reader {
        folder: path.parent().unwrap_or(Path::new("")),
        variable,
        mistakes: Vec::new(),
        passed_over: Vec::new(),
    };
    let servers = reader.document(&document);
    if reader.mistakes.is_empty() {
        return Ok(McpConfig {
            servers,
            passed_over: problems(text, reader.passed_over),
        });
    }
    Err(McpConfigError {
        mistakes: problems(text, reader.mistakes),
    })
}

struct Reader<'r> {
    folder: &'r Path,
    variable: &'r Variable<'r>,
    mistakes: Found,
    passed_over: Found,
}

/// What was found, and where.
type Found = Vec<(Range<usize>, String)>;

impl Reader<'_> {
    fn add(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.mistakes.push((span.clone(), message.into()));
    }

    /// The value is another one than it should be.
    fn refuse(&mut self, key: &str, node: &Node, wanted: &str) {
        let message = format!("`{key}` is {}; it must be {wanted}", node.kind());
        self.add(&node.span, message);
    }

    fn document(&mut self, document: &Node) -> Vec<McpServer> {
        // Both forms of a file have a table at their top.
        let entries = document.table().unwrap_or_default();
        let at_top = entries
            .iter()
            .find(|(key, _)| SERVERS.contains(&key.name.as_str()));
        let named = at_top.or_else(|| {
            let (_, mcp) = entries.iter().find(|(key, _)| key.name == "mcp")?;
            mcp.table()?.iter().find(|(key, _)| key.name == "servers")
        });
        let Some((key, servers)) = named else {
            let near = entries
                .iter()
                .find_map(|(key, _)| Some((key, nearest_name(&key.name, SERVERS)?)));
            match near {
                Some((key, meant)) => {
                    let message =
                        format!("there is no key `{}`; did you mean `{meant}`?", key.name);
                    self.add(&key.span, message);
                }
                None => self.add(
                    &(0..0),
                    "the file names no MCP servers: it has no key `mcpServers`",
                ),
            }
            return Vec::new();
        };
        let Some(servers) = servers.table() else {
            self.refuse(&key.name, servers, "a table with a table for each server");
            return Vec::new();
        };
        servers
            .iter()
            .filter_map(|(name, node)| self.server(name, node))
            .collect()
    }

    fn server(&mut self, name: &Key, node: &Node) -> Option<McpServer> {
        if name.name.is_empty() || name.name.chars().any(char::is_control) {
            self.add(
                &name.span,
                "a server needs a name without control characters",
            );
            return None;
        }
        let Some(entries) = node.table() else {
            self.refuse(&name.name, node, "a table, with `command` or `url`");
            return None;
        };
        let first = self.mistakes.len();
        let fields = self.fields(entries);
        let before = self.mistakes.len();
        let get = |key: &str| {
            let found = fields.iter().find(|(known, ..)| *known == key);
            found.map(|(_, key, node)| (*key, *node))
        };
        let disabled = match (get("disabled"), get("enabled")) {
            (Some((key, node)), _) => self.boolean(key, node)?,
            (None, Some((key, node))) => !self.boolean(key, node)?,
            (None, None) => false,
        };
        let kind = match get("type") {
            Some((key, node)) => self.kind(key, node),
            None => None,
        };
        let reach = match (get("command"), get("url"), kind) {
            (Some(_), Some((key, _)), _) => {
                let message = format!(
                    "a server has `command` or `{}`, not both: it is started, or it runs already",
                    key.name
                );
                self.add(&key.span, message);
                None
            }
            // A key that is misspelled may be the one that is missing.
            (None, None, _) if before > first => None,
            (None, None, _) => {
                let message = format!(
                    "the server `{}` has neither `command`, a program that is started, nor `url`, where it runs already",
                    name.name
                );
                self.add(&name.span, message);
                None
            }
            (Some((key, _)), None, Some("http")) | (None, Some((key, _)), Some("stdio")) => {
                let message = format!("`{}` does not go with the server's `type`", key.name);
                self.add(&key.span, message);
                None
            }
            (Some(command), None, _) => self.stdio(command, &get, disabled),
            (None, Some(url), _) => self.http(url, &get, disabled),
        };
        let effects = get("effects").map_or_else(Vec::new, |(key, node)| self.effects(key, node));
        let mut patterns = |key: &str| {
            get(key).map_or_else(Vec::new, |(key, node)| {
                let texts = self.texts(key, node, true);
                texts.into_iter().map(Pattern::new).collect()
            })
        };
        let (tools, exclude_tools) = (patterns("tools"), patterns("exclude_tools"));
        let timeout = get("timeout").and_then(|(key, node)| self.timeout(key, node));
        if self.mistakes.len() > first {
            return None;
        }
        Some(McpServer {
            name: name.name.clone(),
            reach: reach?,
            disabled,
            effects,
            tools,
            exclude_tools,
            timeout,
        })
    }

    /// The entries under the names that messages use. What is unknown is a mistake.
    fn fields<'n>(&mut self, entries: &'n [(Key, Node)]) -> Vec<(&'static str, &'n Key, &'n Node)> {
        let mut fields: Vec<(&'static str, &Key, &Node)> = Vec::new();
        for (key, node) in entries {
            let name = key.name.as_str();
            let known = KEYS.iter().find(|names| names.contains(&name));
            if let Some(own) = known.and_then(|names| names.first()) {
                if let Some((_, other, _)) = fields.iter().find(|(known, ..)| known == own) {
                    let message = format!("`{}` says the same already", other.name);
                    self.add(&key.span, message);
                }
                fields.push((own, key, node));
            } else if PASSED_OVER.contains(&name) {
                let message = format!("`{name}` is for other programs; nothing is made of it here");
                self.passed_over.push((key.span.clone(), message));
            } else {
                let own = || KEYS.iter().filter_map(|names| names.first().copied());
                let all = KEYS.iter().flat_map(|names| names.iter().copied());
                let end = match nearest_name(name, all) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("a server may have {}", own().collect::<Vec<_>>().join(", ")),
                };
                self.add(&key.span, format!("there is no key `{name}`; {end}"));
            }
        }
        fields
    }

    fn kind(&mut self, key: &Key, node: &Node) -> Option<&'static str> {
        let Value::Text(kind) = &node.value else {
            self.refuse(&key.name, node, "`stdio` or `http`");
            return None;
        };
        match kind.to_ascii_lowercase().as_str() {
            "stdio" | "local" => Some("stdio"),
            "http" | "streamable-http" | "streamablehttp" | "streamable_http" | "remote" => {
                Some("http")
            }
            "sse" => {
                let message = "the transport `sse` of MCP's first version is not spoken here; most servers that offer it offer streamable HTTP too, often at an address that ends with `/mcp`: name that, with `type` `http`";
                self.add(&node.span, message);
                None
            }
            _ => {
                let message = format!(
                    "there is no transport `{kind}`; write `stdio` (a program that is started) or `http` (a server that runs already)"
                );
                self.add(&node.span, message);
                None
            }
        }
    }

    fn stdio<'n>(
        &mut self,
        (key, node): (&Key, &Node),
        get: &impl Fn(&str) -> Option<(&'n Key, &'n Node)>,
        disabled: bool,
    ) -> Option<McpReach> {
        if let Some((headers, _)) = get("headers") {
            self.add(
                &headers.span,
                "a server that is started has no `headers`; `env` sets its variables",
            );
        }
        let command = self.text(key, node, disabled)?;
        if command.is_empty() {
            self.add(&node.span, "`command` is empty");
        }
        let args = get("args").map_or_else(Vec::new, |(key, node)| self.texts(key, node, disabled));
        let env = get("env").map_or_else(Vec::new, |(key, node)| {
            self.pairs(key, node, disabled, |name| {
                if name.is_empty() || name.contains(['=', '\0']) {
                    Some("is no name of a variable")
                } else {
                    None
                }
            })
        });
        let cwd = match get("cwd") {
            Some((key, node)) => Some(self.folder.join(self.text(key, node, disabled)?)),
            None => None,
        };
        Some(McpReach::Stdio {
            command: self.program(command),
            args,
            env,
            cwd,
        })
    }

    /// A program that is named by a relative path lies where the file says, wherever it is started.
    fn program(&self, command: String) -> String {
        let path = Path::new(&command);
        if path.is_absolute() || !command.contains('/') {
            return command;
        }
        let whole: PathBuf = self.folder.join(path);
        whole.to_str().map_or(command.clone(), str::to_owned)
    }

    fn http<'n>(
        &mut self,
        (key, node): (&Key, &Node),
        get: &impl Fn(&str) -> Option<(&'n Key, &'n Node)>,
        disabled: bool,
    ) -> Option<McpReach> {
        for name in ["args", "env", "cwd"] {
            if let Some((other, _)) = get(name) {
                let message = format!(
                    "a server at an address has no `{}`: that is for one that is started",
                    other.name
                );
                self.add(&other.span, message);
            }
        }
        let url = self.text(key, node, disabled)?;
        if !disabled {
            match url::Url::parse(&url) {
                Ok(parsed) if !matches!(parsed.scheme(), "http" | "https") => {
                    let message = "an address begins with `http://` or `https://`";
                    self.add(&node.span, message);
                }
                // It may hold a secret, so it is not said again.
                Err(error) => {
                    let message = format!("this is no address: {error}");
                    self.add(&node.span, message);
                }
                Ok(_) => {}
            }
        }
        let headers = get("headers").map_or_else(Vec::new, |(key, node)| {
            self.pairs(key, node, disabled, |name| {
                match plaincall_http::http::header::HeaderName::from_bytes(name.as_bytes()) {
                    Ok(_) => None,
                    Err(_) => Some("is no name of a header"),
                }
            })
        });
        Some(McpReach::Http { url, headers })
    }

    fn boolean(&mut self, key: &Key, node: &Node) -> Option<bool> {
        if let Value::Boolean(value) = node.value {
            return Some(value);
        }
        self.refuse(&key.name, node, "true or false");
        None
    }

    fn timeout(&mut self, key: &Key, node: &Node) -> Option<Duration> {
        let time = match &node.value {
            Value::Text(text) | Value::Number(text) => text.parse().ok().map(|time: Time| time.0),
            _ => None,
        };
        if time.is_none() {
            self.refuse(
                &key.name,
                node,
                "a time above 0: seconds, such as 10, or a number with its unit, such as \"500ms\", \"10s\", \"2m\"",
            );
        }
        time
    }

    /// A text with its variables put in; those of a server that is switched off need not be there.
    fn text(&mut self, key: &Key, node: &Node, disabled: bool) -> Option<String> {
        let Value::Text(text) = &node.value else {
            self.refuse(&key.name, node, "a text");
            return None;
        };
        self.expanded(text, &node.span, disabled)
    }

    fn expanded(&mut self, text: &str, span: &Range<usize>, disabled: bool) -> Option<String> {
        if text.contains('\0') {
            self.add(span, "a NUL character cannot stand here");
            return None;
        }
        match expand(text, self.variable) {
            Ok(text) => Some(text),
            Err(_) if disabled => Some(text.to_owned()),
            Err(wrong) => {
                for message in wrong {
                    self.add(span, message);
                }
                None
            }
        }
    }

    fn texts(&mut self, key: &Key, node: &Node, disabled: bool) -> Vec<String> {
        let Value::List(items) = &node.value else {
            self.refuse(&key.name, node, "a list of texts");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            if let Value::Text(text) = &item.value {
                texts.extend(self.expanded(text, &item.span, disabled));
            } else {
                let message = format!(
                    "an element of `{}` is {}; all must be texts",
                    key.name,
                    item.kind()
                );
                self.add(&item.span, message);
            }
        }
        texts
    }

    /// Names and values; `fault` says what is wrong with a name.
    fn pairs(
        &mut self,
        key: &Key,
        node: &Node,
        disabled: bool,
        fault: impl Fn(&str) -> Option<&'static str>,
    ) -> Vec<(String, String)> {
        let Some(entries) = node.table() else {
            self.refuse(&key.name, node, "a table of texts");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, value) in entries {
            if let Some(fault) = fault(&name.name) {
                self.add(&name.span, format!("`{}` {fault}", name.name));
            }
            let text = match &value.value {
                // As some write a port or a switch.
                Value::Number(text) => Some(text.clone()),
                Value::Boolean(value) => Some(value.to_string()),
                _ => self.text(name, value, disabled),
            };
            pairs.extend(text.map(|text| (name.name.clone(), text)));
        }
        pairs
    }

    /// What tools may do: one word for all, or a table of patterns.
    fn effects(&mut self, key: &Key, node: &Node) -> Vec<(Pattern, McpEffect)> {
        let mut effects = Vec::new();
        match &node.value {
            Value::Text(_) => {
                effects.extend(self.effect(node).map(|effect| (Pattern::new("**"), effect)));
            }
            Value::Table(entries) => {
                for (name, node) in entries {
                    let effect = self.effect(node);
                    effects.extend(effect.map(|effect| (Pattern::new(&*name.name), effect)));
                }
            }
            _ => self.refuse(
                &key.name,
                node,
                "an effect for all tools, or a table, such as { \"get_*\" = \"read\" }",
            ),
        }
        effects
    }

    fn effect(&mut self, node: &Node) -> Option<McpEffect> {
        let known = match &node.value {
            Value::Text(text) => EFFECTS.iter().find(|(word, _)| word == text),
            _ => None,
        };
        if known.is_none() {
            let near = match &node.value {
                Value::Text(text) => did_you_mean(text, EFFECTS.iter().map(|(word, _)| *word)),
                _ => String::new(),
            };
            let message = format!(
                "{} is no effect; write `read` (it changes nothing), `idempotent` (twice is the same as once), `write`, or `hinted` (what the server says of its tools is taken for true){near}",
                node.kind()
            );
            self.add(&node.span, message);
        }
        known.map(|(_, effect)| *effect)
    }
}
