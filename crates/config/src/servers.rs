//! Files with MCP servers, in the formats of other programs.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use plaincall_names::nearest_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::node::last_key;
use crate::secret::{Address, hide_arguments, hide_values};
use crate::settings::FilePath;
use crate::{AsText, Document, Location, Time, child};

/// The names of the top-level table of servers.
const TABLES: [&str; 3] = ["mcpServers", "mcp_servers", "servers"];

/// Names that other programs use for keys.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("url", "serverUrl httpUrl"),
    ("type", "transport"),
    ("headers", "http_headers"),
    ("tools", "includeTools enabledTools enabled_tools"),
    ("exclude_tools", "excludeTools disabledTools disabled_tools"),
];

/// Keys of other programs, which are ignored. `alwaysAllow` and the like grant permissions to other programs; here, rules do.
const FOR_OTHERS: &str = "alwaysAllow autoAllow autoApprove description dev gallery icon icons note startup_timeout_ms startup_timeout_sec title trust version";

/// The table of a server: a command to start, or a URL. Serializing it hides secrets.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerTable {
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    #[serde(serialize_with = "hide_arguments")]
    pub args: Vec<String>,
    /// Its environment variables. `${NAME}` is replaced with the value of your environment variable.
    #[serde(serialize_with = "hide_values")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: IndexMap<String, AsText>,
    /// Its working directory.
    pub cwd: Option<FilePath>,
    /// The URL of a running server.
    pub url: Option<Address>,
    /// The transport: `stdio` or `http`. Default: `stdio` with `command`, `http` with `url`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// HTTP headers of each request. `${NAME}` is replaced with the value of your environment variable.
    #[serde(serialize_with = "hide_values")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: IndexMap<String, AsText>,
    /// Whether the server is ignored.
    pub disabled: Option<bool>,
    /// The opposite of `disabled`, which takes precedence.
    pub enabled: Option<bool>,
    /// The effects of its tools, by name pattern; the first match decides. Default: every tool may change something, regardless
    /// of the server's hints.
    #[schemars(with = "BTreeMap<String, McpEffect>")]
    pub effects: Effects,
    /// Name patterns of the tools to offer. Default: all.
    pub tools: Vec<String>,
    /// Name patterns of tools to exclude.
    pub exclude_tools: Vec<String>,
    /// The timeout for calls of its tools.
    pub timeout: Option<Time>,
}

impl ServerTable {
    /// Reports keys that cannot be combined in the table at this pointer. Returns whether the transport is known.
    pub fn check_keys(&self, at: &str, document: &mut Document) -> bool {
        let is_http = self.is_http(at, document);
        let mut problem = |key: &str, message: &str| {
            document.problem(&Location::Key(child(at, key)), message);
        };
        match (&self.command, &self.url, is_http) {
            (Some(_), Some(_), _) => {
                let message = "a server has either `command` or `url`, not both; remove one";
                problem("url", message);
            }
            (Some(_), None, Some(true)) => {
                problem("command", "`command` cannot be used with this `type`");
            }
            (None, Some(_), Some(false)) => {
                problem("url", "`url` cannot be used with this `type`");
            }
            (Some(_), None, _) => {
                if !self.headers.is_empty() {
                    let message = "`headers` is only for servers with a `url`; use `env` to pass variables to a command";
                    problem("headers", message);
                }
                return true;
            }
            (None, Some(_), _) => {
                document.deny_keys(at, "args env cwd", |key| {
                    format!("`{key}` is only for servers with a `command`")
                });
                return true;
            }
            // The missing key may be a misspelled one.
            (None, None, _) if document.is_wrong(at) => {}
            (None, None, _) => {
                let name = last_key(at);
                let message = format!(
                    "the server `{name}` needs `command` (the program to start) or `url` (the address of a running server)"
                );
                document.problem(&Location::key(at), message);
            }
        }
        false
    }

    fn is_http(&self, at: &str, document: &mut Document) -> Option<bool> {
        let kind = self.kind.as_deref()?;
        let message = match kind.to_ascii_lowercase().as_str() {
            "stdio" | "local" => return Some(false),
            "http" | "streamable-http" | "streamablehttp" | "streamable_http" | "remote" => {
                return Some(true);
            }
            "sse" => "the deprecated transport `sse` is not supported; most of its servers also offer streamable HTTP, often at a URL that ends with `/mcp`: use that URL with `type` `http`".to_owned(),
            _ => format!(
                "unknown transport `{kind}`; it must be `stdio` (a program to start) or `http` (a running server)"
            ),
        };
        document.problem(&Location::Value(child(at, "type")), message);
        None
    }
}

/// The effects of a server's tools, by name pattern. A single string is the effect of all tools.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename = "$Effects")]
pub struct Effects(pub IndexMap<String, McpEffect>);

/// The effect of an MCP tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpEffect {
    /// It changes nothing.
    Read,
    /// Calling it twice has the same effect as calling it once.
    Idempotent,
    /// It may change something.
    Write,
    /// The effect is taken from the server's hints.
    Hinted,
}

/// Returns the pointers to the tables of all servers in a file. Renames aliases of keys and removes keys of other programs.
pub fn servers(document: &mut Document) -> Vec<String> {
    let mut servers = Vec::new();
    let Some(table) = table(document) else {
        return servers;
    };
    for name in document.keys(&table) {
        let at = child(&table, &name);
        for (key, others) in OTHER_NAMES {
            for other in others.split(' ') {
                document.rename(&at, other, key);
            }
        }
        for key in FOR_OTHERS.split(' ') {
            document.remove(&at, key);
        }
        servers.push(at);
    }
    servers
}

/// Returns the pointer to the table of servers.
fn table(document: &mut Document) -> Option<String> {
    if !document.is_well_formed() {
        return None;
    }
    let names = TABLES.into_iter().chain(["mcp/servers"]);
    let mut pointers = names.map(|name| format!("/{name}"));
    let found = pointers.find_map(|at| Some((document.root().get(&at)?, at)));
    let Some((node, at)) = found else {
        let keys = document.keys("");
        let mut near = keys
            .iter()
            .filter_map(|key| Some((key, nearest_name(key, TABLES)?)));
        let (key, message) = match near.next() {
            Some((key, meant)) => (
                child("", key),
                format!("unknown key `{key}`; did you mean `{meant}`?"),
            ),
            None => (
                String::new(),
                "the file has no MCP servers: the key `mcpServers` is missing".to_owned(),
            ),
        };
        document.problem(&Location::Key(key), message);
        return None;
    };
    if node.table().is_none() {
        let kind = node.kind();
        let message = format!(
            "the servers are {kind}; they must be a table that contains a table for each server"
        );
        document.problem(&Location::value(&at), message);
    }
    Some(at)
}

/// Expands variables in a text: `${NAME}`, `${env:NAME}`, `${NAME:-default}`. A dollar sign without a brace is literal.
///
/// # Errors
/// Returns a message for each invalid or unset variable.
pub fn expand(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Vec<String>> {
    let (mut whole, mut wrong, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        whole.push_str(before);
        let Some((inside, after)) = behind.split_once('}') else {
            wrong.push("`${` has no `}`".to_owned());
            break;
        };
        rest = after;
        match value(inside, variable) {
            Ok(value) => whole.push_str(&value),
            Err(message) => wrong.push(message),
        }
    }
    whole.push_str(rest);
    Some(whole).filter(|_| wrong.is_empty()).ok_or(wrong)
}

fn value(inside: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = inside.split_once(":-").unzip();
    let name = name.unwrap_or(inside);
    let name = name.strip_prefix("env:").unwrap_or(name);
    if name.is_empty() || name.contains([':', '=', '\0']) {
        // What follows may be a secret.
        let name = name.split_inclusive([':', '=']).next().unwrap_or_default();
        return Err(format!(
            "invalid `${{{name}}}`; use `${{NAME}}` for an environment variable"
        ));
    }
    match (variable(name), default) {
        (Some(value), None) => Ok(value),
        // As in a shell, the default also replaces an empty variable.
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!(
            "the environment variable `{name}` is not set; set it, or use `${{{name}:-default}}`"
        )),
    }
}
