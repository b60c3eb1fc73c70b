//! The tools of a server.

use std::collections::HashSet;

use plaincall::tool::ToolSpec;
use plaincall::tool::definitions::read_usable_tools;
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ErrorCode, Extensions, ListToolsRequest, ListToolsRequestMethod,
    PaginatedRequestParams, ServerResult,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

use super::config::McpServer;
use super::connection::not_answered;
use super::secrets::Secrets;
use super::{SkippedTool, clipped};

const MOST_TOOLS: usize = 1000;
const MOST_PAGES: usize = 100;
/// The longest name of a tool, in characters.
const LONGEST_NAME: usize = 128;
/// The longest definition as JSON, in bytes. All of it is in the prompt.
const LONGEST_DEFINITION: usize = 32 << 10;
/// The largest total of a server's definitions, in bytes. They are in the prompt of every turn.
const LONGEST_OFFER: usize = 256 << 10;
const MOST_SKIPPED: usize = 100;

pub(super) struct Offered {
    pub(super) name: String,
    /// The definition for the model, which may have another name.
    pub(super) spec: ToolSpec,
}

/// The tools of a server, and those that are skipped.
#[derive(Default)]
pub(super) struct Offer {
    pub(super) tools: Vec<Offered>,
    pub(super) skipped: Vec<SkippedTool>,
    server: String,
    /// The number of further skipped tools, without names.
    unnamed: usize,
    /// The total size of the definitions, in bytes.
    length: usize,
}

impl Offer {
    fn skip(&mut self, name: &str, reason: String) {
        self.report(name, true, reason);
    }

    fn report(&mut self, name: &str, is_dropped: bool, reason: String) {
        if self.skipped.len() == MOST_SKIPPED {
            self.unnamed += 1;
            return;
        }
        self.push(name, is_dropped, reason);
    }

    fn push(&mut self, name: &str, is_dropped: bool, reason: String) {
        let (server, tool) = (self.server.clone(), clipped(name));
        self.skipped.push(SkippedTool {
            server,
            tool,
            is_dropped,
            reason,
        });
    }

    fn take(&mut self, name: String, tool: Value, server: &McpServer, secrets: &Secrets) {
        let (spec, length, lost) = match read(&name, tool, server, secrets) {
            Ok(read) => read,
            Err(why) => return self.skip(&name, why),
        };
        if self.length + length > LONGEST_OFFER {
            let why = format!(
                "the server's definitions exceed {LONGEST_OFFER} bytes; select tools with `tools`"
            );
            return self.skip(&name, why);
        }
        if let Some(why) = lost {
            self.report(&name, false, why);
        }
        self.length += length;
        self.tools.push(Offered { name, spec });
    }

    /// Adds the number of further skipped tools.
    fn ended(mut self) -> Self {
        if self.unnamed > 0 {
            let reason = format!("{} more tools of the server are skipped", self.unnamed);
            self.push("…", true, reason);
        }
        self
    }
}

pub(super) async fn offer(
    peer: &Peer<RoleClient>,
    server: &McpServer,
    secrets: &Secrets,
) -> Result<Offer, String> {
    let mut offer = Offer {
        server: server.name.clone(),
        ..Offer::default()
    };
    let mut cursors = HashSet::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let (tools, next) = match page(peer, cursor.take()).await {
            Ok(page) => page,
            // Some servers without tools answer like this.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(offer.ended());
            }
            Err(error) => {
                let why = not_answered(&error);
                let why = why.unwrap_or_else(|| "closed the connection".to_owned());
                return Err(format!("did not list its tools: it {why}"));
            }
        };
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            let name = secrets.redact(name.to_owned());
            if !server.takes(&name) {
                continue;
            }
            if offer.tools.len() == MOST_TOOLS {
                offer.skip(
                    &name,
                    format!("the server has more than {MOST_TOOLS} tools"),
                );
                return Ok(offer.ended());
            }
            if offer.tools.iter().any(|known| known.name == name) {
                offer.skip(&name, "the server has another tool of this name".to_owned());
            } else {
                offer.take(name, tool, server, secrets);
            }
        }
        match &next {
            None => return Ok(offer.ended()),
            Some(next) if !cursors.insert(next.clone()) => {
                let why = "the server's tool list repeats after its last page";
                offer.skip("…", why.to_owned());
                return Ok(offer.ended());
            }
            Some(_) => cursor = next,
        }
    }
    offer.skip(
        "…",
        format!("the server's tool list has more than {MOST_PAGES} pages"),
    );
    Ok(offer.ended())
}

type Page = (Vec<Value>, Option<String>);

async fn page(peer: &Peer<RoleClient>, cursor: Option<String>) -> Result<Page, ServiceError> {
    let mut params = PaginatedRequestParams::default();
    params.cursor = cursor;
    let request = ListToolsRequest {
        method: ListToolsRequestMethod,
        params: Some(params),
        extensions: Extensions::default(),
    };
    let result = peer
        .send_request(ClientRequest::ListToolsRequest(request))
        .await?;
    match result {
        ServerResult::ListToolsResult(list) => {
            let tools = list.tools.iter();
            let tools = tools.filter_map(|tool| serde_json::to_value(tool).ok());
            Ok((tools.collect(), list.next_cursor))
        }
        // An invalid definition does not affect the others.
        ServerResult::CustomResult(result) => {
            let mut result = result.0;
            let cursor = result.get("nextCursor").and_then(Value::as_str);
            let cursor = cursor.map(str::to_owned);
            match result.get_mut("tools").map(Value::take) {
                Some(Value::Array(tools)) => Ok((tools, cursor)),
                _ => Err(ServiceError::UnexpectedResponse),
            }
        }
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// The definition of a tool for the model, its size in bytes, and why a part of it is not used.
fn read(
    name: &str,
    mut tool: Value,
    server: &McpServer,
    secrets: &Secrets,
) -> Result<(ToolSpec, usize, Option<String>), String> {
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    if name.chars().count() > LONGEST_NAME {
        return Err(format!("its name has more than {LONGEST_NAME} characters"));
    }
    let Some(fields) = tool.as_object_mut() else {
        return Err("it is not an object".to_owned());
    };
    // The tool is renamed if calls cannot spell its name.
    fields.insert("name".to_owned(), "tool".into());
    let json = secrets.redact(tool.to_string());
    if json.len() > LONGEST_DEFINITION {
        return Err(format!(
            "its definition has {} bytes; at most {LONGEST_DEFINITION} are allowed",
            json.len()
        ));
    }
    let usable = read_usable_tools([&*json]);
    let changed = usable.changed.into_iter().next();
    let why = changed.map(|changed| {
        let at = changed.reason.at.trim_start_matches("/0").to_owned();
        (
            at.clone(),
            clipped(&format!("{at}: {}", changed.reason.message)),
        )
    });
    let in_a_parameter = |at: &str| at.contains("/properties") || at.contains("/required");
    let (mut spec, lost) = match (usable.tools.into_iter().next(), why) {
        (Some(spec), None) => (spec, None),
        (Some(spec), Some((at, why))) if in_a_parameter(&at) => (spec, Some(why)),
        (_, Some((_, why))) => return Err(why),
        (None, None) => return Err("it is not a tool definition".to_owned()),
    };
    spec.effect = server.effect_of(name, spec.hinted_effect);
    Ok((spec, json.len(), lost))
}
