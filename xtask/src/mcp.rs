//! The reference server of MCP and a published client, unmodified, against Plaincall's.
//!
//! They are installed into the build folder, in the versions that `crates/agent/clients` pins. This needs Node and a network.

use std::path::Path;
use std::process::Command;

use crate::node;
use crate::step::step;
use crate::workspace::{cargo, target};

/// The client program.
const CLIENT: &str = "mcp_client.mjs";
/// The path of the installed server program.
const SERVER: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Calls the server's tools over both transports, and runs the client against Plaincall's server.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let clients = root.join("crates/agent/clients");
    let installed = std::path::absolute(target().join("mcp"))
        .map_err(|error| format!("{}: {error}", target().display()))?;
    node::install("MCP for Node", "ci", &clients, &[CLIENT], &installed)?;

    let mut server = cargo(&["test", "--package", "plaincall-agent", "--all-features"]);
    server.args(["--test", "tests", "mcp::", "--", "--ignored"]);
    server.env("MCP_EVERYTHING", installed.join(SERVER));
    step("the reference server of MCP", &mut server)?;
    let build = ["build", "--workspace", "--bin", "plaincall"];
    step("build of plaincall", &mut cargo(&build))?;
    let mut client = Command::new("node");
    client
        .arg(installed.join(CLIENT))
        .arg(target().join("debug/plaincall"))
        .arg(clients.join("tools.toml"));
    step(CLIENT, &mut client)
}
