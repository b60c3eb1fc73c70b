//! Files with MCP servers, as many programs write them.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use plaincall_call::names::nearest_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::node::last_key;
use crate::secret::{hide_arguments, hide_values};
use crate::{Address, AsText, Document, FilePath, Place, Time, child};

/// The names of the table of servers at the top of a file.
const TABLES: [&str; 3] = ["mcpServers", "mcp_servers", "servers"];

/// Other names that programs have for keys.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("url", "serverUrl httpUrl"),
    ("type", "transport"),
    ("headers", "http_headers"),
    ("tools", "includeTools enabledTools enabled_tools"),
    ("exclude_tools", "excludeTools disabledTools disabled_tools"),
];

/// Keys for other programs. `alwaysAllow` and the like are what a user allowed to another program; here rules say that.
const FOR_OTHERS: &str = "alwaysAllow autoAllow autoApprove description dev gallery icon icons note startup_timeout_ms startup_timeout_sec title trust version";

/// The table of a server: a command to start, or an address. What serde writes of it holds no secret.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ServerTable {
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    #[serde(serialize_with = "hide_arguments")]
    pub args: Vec<String>,
    /// Variables of its environment. `${NAME}` stands for a variable of this environment.
    #[serde(serialize_with = "hide_values")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: IndexMap<String, AsText>,
    /// Its working directory.
    pub cwd: Option<FilePath>,
    /// The address of a server that runs already.
    pub url: Option<Address>,
    /// `stdio` or `http`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Headers of each request to it. `${NAME}` stands for a variable of this environment.
    #[serde(serialize_with = "hide_values")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: IndexMap<String, AsText>,
    /// Whether it is not used.
    pub disabled: Option<bool>,
    /// Whether it is used, if `disabled` is not set.
    pub enabled: Option<bool>,
    /// The effects of its tools, by patterns of their names; the first that fits decides. Without it each tool counts as one
    /// that may change something, whatever the server says.
    #[schemars(with = "BTreeMap<String, McpEffect>")]
    pub effects: Effects,
    /// Patterns of the names of the tools that are taken. Default: all.
    pub tools: Vec<String>,
    /// Patterns of the names of tools that are not taken.
    pub exclude_tools: Vec<String>,
    /// How long a call of one of its tools may take.
    pub timeout: Option<Time>,
}

impl ServerTable {
    /// Reports which keys of the table at this pointer do not go together. Whether it is clear how the server is reached.
    pub fn goes_together(&self, at: &str, document: &mut Document) -> bool {
        let is_http = self.is_http(at, document);
        let mut problem = |key: &str, message: &str| {
            document.problem(&Place::Key(child(at, key)), message);
        };
        match (&self.command, &self.url, is_http) {
            (Some(_), Some(_), _) => {
                let message =
                    "a server has `command` or `url`, not both: it is started, or it runs already";
                problem("url", message);
            }
            (Some(_), None, Some(true)) => {
                problem("command", "`command` does not go with the server's `type`");
            }
            (None, Some(_), Some(false)) => {
                problem("url", "`url` does not go with the server's `type`");
            }
            (Some(_), None, _) => {
                if !self.headers.is_empty() {
                    let message =
                        "a server that is started has no `headers`; `env` sets its variables";
                    problem("headers", message);
                }
                return true;
            }
            (None, Some(_), _) => {
                document.refuse_keys(at, "args env cwd", |key| {
                    format!(
                        "a server at an address has no `{key}`: that is for one that is started"
                    )
                });
                return true;
            }
            // A key that is misspelled may be the one that is missing.
            (None, None, _) if document.is_wrong(at) => {}
            (None, None, _) => {
                let name = last_key(at);
                let message = format!(
                    "the server `{name}` has neither `command`, a program that is started, nor `url`, where it runs already"
                );
                document.problem(&Place::key(at), message);
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
            "sse" => "the transport `sse` of MCP's first version is not supported; most servers that offer it also offer streamable HTTP, often at an address that ends with `/mcp`: write that address, with `type` `http`".to_owned(),
            _ => format!(
                "there is no transport `{kind}`; write `stdio` (a program that is started) or `http` (a server that runs already)"
            ),
        };
        document.problem(&Place::Value(child(at, "type")), message);
        None
    }
}

/// The effects of a server's tools, by patterns of their names. One word is the effect of all.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Effects(pub IndexMap<String, McpEffect>);

/// The effect of a tool of a server, as the user sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpEffect {
    /// It changes nothing.
    Read,
    /// Twice is the same as once.
    Idempotent,
    /// It may change something.
    Write,
    /// Its server's hint is taken for true.
    Hinted,
}

/// The pointers to the tables of the servers in a file, whose keys have one name each from then on. Keys that are for other
/// programs are left out.
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
            document.leave_out(&at, key);
        }
        servers.push(at);
    }
    servers
}

/// The pointer to the table of servers.
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
                "the file names no MCP servers: it has no key `mcpServers`".to_owned(),
            ),
        };
        document.problem(&Place::Key(key), message);
        return None;
    };
    if node.table().is_none() {
        let kind = node.kind();
        let message =
            format!("the servers are {kind}; they must be a table with a table for each server");
        document.problem(&Place::value(&at), message);
    }
    Some(at)
}

/// Puts variables into a text: `${NAME}`, `${env:NAME}`, `${NAME:-default}`. A dollar sign without a brace stands for
/// itself.
///
/// # Errors
/// What is wrong with each variable.
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
        return Err(format!(
            "`${{{inside}}}` means nothing here; write `${{NAME}}` for a variable of the environment"
        ));
    }
    match (variable(name), default) {
        (Some(value), None) => Ok(value),
        // As in a shell, the default also replaces an empty variable.
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!(
            "the variable `{name}` is not set; set it, or write `${{{name}:-default}}`"
        )),
    }
}
