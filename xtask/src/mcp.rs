//! The reference server of MCP and a published client, unmodified, against ours.
//!
//! They are installed into the build folder, by the versions that `crates/agent/clients` names. So this needs Node and a
//! network.

use std::path::Path;
use std::process::Command;

use crate::{cargo, node, step, target};

/// The program of the client.
const CLIENT: &str = "mcp_client.mjs";
/// Where the program of the server lies, once it is installed.
const SERVER: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Calls the tools of the server over both transports, and lets the client call ours.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let clients = root.join("crates/agent/clients");
    let installed = std::path::absolute(target().join("mcp"))
        .map_err(|error| format!("{}: {error}", target().display()))?;
    node::install("MCP for Node", &clients, &[CLIENT], &installed)?;

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
