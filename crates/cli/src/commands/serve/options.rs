//! The options of `plaincall serve`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plaincall_config::settings::{ArgumentMode, MAX_REPAIR_ROUNDS, ToolMode};

use crate::commands::serve::limits::{LimitOptions, TimeOptions, in_range};
use crate::options::{TeachingOptions, UnclosedChoice};

/// Serve the APIs of OpenAI and Anthropic, with tool calls, for a model that only writes text.
///
/// Clients send requests with tools. Plaincall sends plain text to the model server, and converts the calls in the
/// model's text to native tool calls. Chat completions requests without tools pass through unchanged. To use the gateway,
/// set the base URL of your client to this server: with `/v1` at the end for clients of OpenAI's API, without it for
/// clients of Anthropic's.
///
/// Clients use `POST /v1/chat/completions`, `POST /v1/responses`, `POST /v1/messages` and `GET /v1/models`. Completions,
/// embeddings, rerank, moderations, audio and images below `/v1` pass through unchanged. `GET /health`, `/ready` and
/// `/metrics` are for monitoring. The access log on standard output has one line of JSON per request, without message
/// content.
///
/// Keys are read from files or from the environment: `PLAINCALL_KEYS` (client keys, separated by commas),
/// `PLAINCALL_UPSTREAM_KEY` (the key for the model server) and `PLAINCALL_SECRET` (the secret that marker keys are
/// derived from). SIGHUP reloads the files with keys and models.
///
/// Without `--upstream`, `serve` looks for Ollama (at `OLLAMA_HOST` or port 11434), llama.cpp (8080), LM Studio (1234)
/// and vLLM (8000) on this machine, uses the first that has models, and prints the variables for your client.
///
/// With `-- COMMAND`, `serve` runs the command with `OPENAI_BASE_URL`, `OPENAI_API_BASE` (its older name),
/// `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL` and `ANTHROPIC_AUTH_TOKEN` set for the gateway, forwards signals to it, stops
/// when it ends, and exits with its status. Standard output then belongs to the command, and there is no access log.
///
/// SIGTERM and Ctrl-C shut down the server. After SIGTERM it first keeps answering for `--drain-delay`, while `/ready`
/// returns 503; Ctrl-C skips this phase. Then it accepts no new requests and waits for those in progress. A second signal
/// exits immediately. A closed terminal shuts down the server like SIGTERM. SIGHUP reloads the files of `--models`,
/// `--keys` and `--upstream-key` without interrupting any request; if one is invalid, the old settings stay in use. Under
/// `nohup` and with COMMAND, nothing is reloaded.
///
/// Times are seconds, or a number with `ms`, `s`, `m` or `h`. Sizes are bytes, or a number with `KiB`, `MiB` or `GiB`.
///
/// Exit status: 0 after a signal if all requests were answered; 1 if the server could not start, or stopped before all
/// requests were answered; 2 for wrong usage; 128 plus the signal number after a second signal (130 for Ctrl-C). With
/// COMMAND, its status: 128 plus the signal number after a signal, 127 if it does not exist, 126 if it cannot be run.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeOptions {
    /// A command to run with the gateway, and its arguments. The command is a client of the OpenAI or the Anthropic API.
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "log_contents")]
    pub(crate) command: Vec<OsString>,

    /// The base URL of the model server, up to `/v1`, or `replay:FILE` for recorded replies. Default: the first server
    /// found on this machine.
    ///
    /// A replay file has one JSON document per line: a string, or an object with `content` and an optional
    /// `finish_reason`. The first request of a conversation gets the first reply, the second request the second, and so
    /// on.
    #[arg(long, short, value_name = "URL")]
    pub(crate) upstream: Option<String>,

    /// The address to listen on. Port 0 selects a free port. Default: `127.0.0.1:8080`; if the model server is on this
    /// port or `--upstream` is not set, the first free port from 8080 to 8099; with COMMAND, any free port.
    #[arg(long, short, value_name = "ADDRESS", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Allow other machines to connect without a key, under any host name.
    #[arg(long)]
    pub(crate) open: bool,

    /// Allow browser requests from this origin, such as `https://chat.example`. May be repeated. Default: none.
    ///
    /// `*` allows every origin.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,

    /// Log the content of requests, replies and answers, for debugging.
    ///
    /// Anyone who can read the log can then read the conversations. At most 64 KiB of each text are logged. Keys of at
    /// least eight characters are redacted.
    #[arg(long)]
    pub(crate) log_contents: bool,

    /// A file with client keys, one per line. At least one is required. A key has at least 16 characters.
    ///
    /// `requests=N` and `rate=N` after a key replace `--key-requests` and `--key-rate` for this key.
    /// A line that begins with `#` is a comment.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) keys: Option<PathBuf>,

    /// A file with the key for the model server.
    ///
    /// Default: the client's own key, if the gateway does not require client keys.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) upstream_key: Option<PathBuf>,

    /// A file with the secret that marker keys are derived from. At least 16 bytes. Use the same secret on all servers
    /// behind one address.
    ///
    /// Default: a random secret at each start.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) secret: Option<PathBuf>,

    /// A TOML file with settings for individual models, which override the options below. It can be your configuration.
    ///
    /// Each model has a table `[models."NAME"]` with the keys of `plaincall ask` (docs/configuration.md). `*` in a name matches any
    /// characters. If several names match, one without `*` takes precedence, then the one with the most other characters.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) models: Option<PathBuf>,

    /// How tools are offered: `text` in the prompt, for any model; `native` as tools of the model server, whose calls are
    /// returned unchanged. In `native` mode, a complete call that arrives as text in a known format becomes a call. If it is not
    /// accepted, the model is asked once more (`--repair-rounds 0`: never).
    #[arg(long, default_value = "text", help_heading = "Model")]
    pub(crate) mode: ToolMode,

    #[command(flatten)]
    pub(crate) teaching: TeachingOptions,

    /// The markers around reasoning at the start of a reply. Default: `<think>` and `</think>`.
    #[arg(long, num_args = 2, value_names = ["OPEN", "CLOSE"], help_heading = "Model")]
    pub(crate) reasoning: Option<Vec<String>>,

    /// Replies start inside reasoning, because the prompt of the model opens it.
    #[arg(long, help_heading = "Model")]
    pub(crate) in_reasoning: bool,

    /// Replies contain no reasoning.
    #[arg(long, conflicts_with_all = ["reasoning", "in_reasoning"], help_heading = "Model")]
    pub(crate) no_reasoning: bool,

    /// When to send the arguments of a call: `checked` sends each call once it is complete and valid; `stream` sends
    /// the arguments as the model writes them.
    ///
    /// With `stream`, the client may receive part of a call that turns out to be invalid. Its arguments are then not
    /// valid JSON, but some clients run it anyway. Replies that are not streamed, and replies to requests with a
    /// `strict` function, are always checked.
    #[arg(
        long,
        value_name = "MODE",
        default_value = "checked",
        help_heading = "Model"
    )]
    pub(crate) arguments: ArgumentMode,

    /// Whether calls without an end marker are sent. With `reject`, a call without an end marker is sent only if it is a block
    /// call at the end of a complete reply. `run` is for models that forget end markers: it also accepts a call of either
    /// syntax that ends at the next call or at the end of a complete reply.
    #[arg(
        long,
        value_name = "CHOICE",
        default_value = "reject",
        help_heading = "Model"
    )]
    pub(crate) unclosed: UnclosedChoice,

    /// How many times to ask the model to repair invalid calls, hidden from the client, before returning an error. In `native`
    /// mode, the model is asked at most once more, and its reply is then the answer: no error follows.
    #[arg(long, value_name = "N", default_value = "2", value_parser = in_range(0, MAX_REPAIR_ROUNDS.into()), help_heading = "Model")]
    pub(crate) repair_rounds: u32,

    /// The model server supports messages with the role `developer`. Default: they are sent as `system`.
    #[arg(long, help_heading = "Model")]
    pub(crate) developer_role: bool,

    #[command(flatten)]
    pub(crate) limits: LimitOptions,

    #[command(flatten)]
    pub(crate) times: TimeOptions,
}

/// Parses an address to listen on. Host names are rejected, because they may resolve to several addresses.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().unwrap_or_default();
        let port = port.parse::<u16>().unwrap_or(8080);
        format!("expected an IP address and a port; did you mean 127.0.0.1:{port}?")
    })
}
