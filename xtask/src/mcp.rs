//! The reference server of MCP and a published client, unmodified, against Plaincall's.
//!
//! `crates/agent/clients` pins their versions. This needs Node and a network.

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{command, root};
use crate::{node, suites};

/// The folder of the client program.
const CLIENTS: &str = "crates/agent/clients";
const CLIENT: &str = "mcp_client.mjs";
/// The path of the installed server program.
const SERVER: &str = "@modelcontextprotocol/server-everything/dist/index.js";

/// Returns the job that calls the server's tools over both transports, and runs the client against Plaincall's server.
pub(crate) fn job() -> Job {
    let job = Job::new("mcp", "MCP", 20, || {
        let installed = node::member(CLIENTS, CLIENT)?;
        let mut server = suites::program("agent")?;
        server.args(["mcp::", "--ignored"]);
        server.env("MCP_EVERYTHING", node::packages().join(SERVER));
        step("the reference server of MCP", &mut server)?;
        let mut client = command("node");
        client.arg(installed.join(CLIENT)).arg(suites::plaincall());
        step(CLIENT, client.arg(root().join(CLIENTS).join("tools.toml")))
    });
    job.needs(&[node::PACKAGES, suites::BUILD]).least_tests(1)
}
