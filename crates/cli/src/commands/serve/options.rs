//! The options of `plaincall serve`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use plaincall_config::{Node, Origin, SocketAddress};
use serde_json::Value;

use crate::options::TaughtDialect;

/// Serve the APIs of OpenAI, Anthropic and Ollama, with tool calls, for models that only write text.
///
/// Clients send requests with tools. Plaincall sends plain text to the model server, and converts the calls in the
/// model's text to native tool calls. Chat completions requests without tools pass through unchanged. To use the gateway,
/// set the base URL of your client to this server: with `/v1` at the end for clients of OpenAI's API, without it for
/// clients of Anthropic's and Ollama's.
///
/// The models are the tables `[models.NAME]` of the configuration, and `[serve]` has the limits, timeouts and keys
/// (docs/configuration.md). `--upstream` serves one model server without a configuration. Without models and `--upstream`,
/// `serve` looks for Ollama (at `OLLAMA_HOST` or port 11434), llama.cpp (8080), LM Studio (1234) and vLLM (8000) on this
/// machine, uses the first that has models, and prints the variables for your client.
///
/// With `-- COMMAND`, `serve` runs the command with `OPENAI_BASE_URL`, `OPENAI_API_BASE`, `OPENAI_API_KEY`,
/// `ANTHROPIC_BASE_URL`, `ANTHROPIC_AUTH_TOKEN`, `OLLAMA_HOST` and `OLLAMA_API_KEY` set for the gateway, forwards signals
/// to it, stops when it ends, and exits with its status. Standard output then belongs to the command. Otherwise it has the access log: one line of JSON
/// per request, without message content. `GET /health`, `/ready` and `/metrics` are for monitoring.
///
/// SIGHUP reloads models and keys without interrupting any request; if a file is invalid, the old settings stay in use.
/// SIGTERM and Ctrl-C complete the requests in progress and stop; a second signal exits immediately.
///
/// Exit status: 0 after a signal if all requests were answered; 1 if the server could not start, or stopped before all
/// requests were answered; 2 for wrong usage or configuration; 128 plus the signal number after a second signal (130 for
/// Ctrl-C). With COMMAND, its status: 128 plus the signal number after a signal, 127 if it does not exist, 126 if it
/// cannot be run.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeOptions {
    /// A command to run with the gateway, and its arguments. The command is a client of one of the APIs.
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "log_contents")]
    pub(crate) command: Vec<OsString>,

    /// The base URL of the model server, up to `/v1`, or `replay:FILE` for recorded replies. It gets the requests for all
    /// models, and replaces the servers of the configuration. Its key is read from `PLAINCALL_UPSTREAM_KEY`. Default: the
    /// key of the client, if the gateway does not require client keys.
    ///
    /// A replay file has one JSON document per line: a string, or an object with `content` and an optional
    /// `finish_reason`. The first request of a conversation gets the first reply, the second request the second, and so
    /// on.
    #[arg(long, short, value_name = "URL")]
    pub(crate) upstream: Option<String>,

    /// The dialect that the models at `--upstream` are taught, as for `ask`: `block` or `emoji`, and options after it, separated by
    /// blanks. Default: the settings of the model, else `block`.
    #[arg(long, value_name = "DIALECT", requires = "upstream")]
    pub(crate) dialect: Option<TaughtDialect>,

    /// The address to listen on. Port 0 selects a free port. Default: `listen` in `[serve]`, else `127.0.0.1:8080`; if a
    /// model server is on this port or there are neither models nor `--upstream`, the first free port from 8080 to 8099;
    /// with COMMAND, any free port.
    #[arg(long, short, value_name = "ADDRESS", value_parser = address)]
    pub(crate) listen: Option<SocketAddress>,

    /// Allow other machines to connect without a key, under any host name.
    #[arg(long)]
    pub(crate) open: bool,

    /// Log the content of requests, replies and answers, for debugging.
    ///
    /// Anyone who can read the log can then read the conversations. At most 64 KiB of each text are logged. Keys of at
    /// least eight characters are redacted.
    #[arg(long)]
    pub(crate) log_contents: bool,

    /// The configuration file. Default: `PLAINCALL_CONFIG`, else your user configuration. A project's file is not read.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl ServeOptions {
    /// Returns the options as a configuration layer.
    pub(super) fn layer(&self) -> Node {
        let listen = self.listen.map(|address| address.0.to_string().into());
        let values: [(_, _, Option<Value>); 2] = [
            ("/serve/listen", "--listen", listen),
            ("/serve/open", "--open", self.open.then_some(true.into())),
        ];
        let mut layer = Node::default();
        for (pointer, option, value) in values {
            if let Some(value) = value {
                layer.set(pointer, Node::new(value, Origin::Option(option.into())));
            }
        }
        layer
    }
}

fn address(text: &str) -> Result<SocketAddress, String> {
    text.parse()
        .map_err(|wanted| format!("it must be {wanted}"))
}
