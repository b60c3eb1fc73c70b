//! The MCP servers that a configuration asks for.

use plaincall_agent::mcp::{McpConfig, McpOptions, McpServers};
use serde_json::json;

use crate::commands::mcp::show_mistakes;
use crate::config::model::http;
use crate::config::{Configuration, From, layer};
use crate::environment::Environment;
use crate::status::{Failure, remark};

impl Configuration {
    /// Connects to the MCP servers. Those that cannot be used are named, and the others work without them.
    pub(super) async fn servers(
        &self,
        environment: &Environment,
    ) -> Result<Option<McpServers>, Failure> {
        let mut wanted = McpConfig::default();
        let is_projects = |path: &str| self.origin(path).from == From::Project;
        let variable = |name: &str| environment.get_set(name)?.to_str().map(str::to_owned);
        for file in &self.contents.mcp.files {
            let (name, text) = self.text(file)?;
            // Keys may be among the variables, and a project's file cannot hand them on.
            let read = if is_projects("mcp.files") {
                McpConfig::read(&text, &file.0, |_| None)
            } else {
                McpConfig::read(&text, &file.0, variable)
            };
            let read = read.map_err(|error| {
                show_mistakes(&name, &text, &error);
                Failure::Configuration(format!("{name} has mistakes, so nothing is done"))
            })?;
            wanted.servers.extend(read.servers);
        }
        for (name, server) in &self.contents.mcp.servers {
            let text = json!({"mcpServers": {name: server}}).to_string();
            let path = layer::below("mcp.servers", name);
            let read = if is_projects(&path) {
                McpConfig::read(&text, "/", |_| None)
            } else {
                McpConfig::read(&text, "/", variable)
            };
            let read = read.map_err(|error| {
                let messages: Vec<&str> = error
                    .mistakes
                    .iter()
                    .map(|mistake| mistake.message.as_str())
                    .collect();
                Failure::Configuration(format!("`{path}`: {}", messages.join("; ")))
            })?;
            wanted.servers.retain(|known| known.name != *name);
            wanted.servers.extend(read.servers);
        }
        if wanted.servers.is_empty() {
            return Ok(None);
        }
        let mut options = McpOptions::default();
        options.environment = environment.clone().into_variables();
        options.http = http(environment);
        let servers = McpServers::connect(wanted, options)
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        for failure in servers.failures() {
            remark(&format!("{failure}; its tools are missing"));
        }
        for skipped in servers.skipped() {
            remark(&format!(
                "the tool `{}` of the MCP server `{}` is not taken: {}",
                skipped.tool, skipped.server, skipped.reason
            ));
        }
        Ok(Some(servers))
    }
}
