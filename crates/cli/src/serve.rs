//! `plaincall serve`: the gateway.
#![allow(
    clippy::doc_markdown,
    reason = "help has no markup that would be read, so a proper name stands in it as it is"
)]

mod models;

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use plaincall_gateway::{
    GatewayConfig, Markers, Mode, ModelSettings, ReasoningSpan, Replay, Report, Secret, Upstream,
};
use plaincall_syntax::Dialect;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::environment::Environment;
use crate::status::{Failure, Outcome, Status, remark};

/// What stands before the name of a file with recorded replies.
const REPLAY: &str = "replay:";
const CLIENT_KEYS: &str = "PLAINCALL_KEYS";
const UPSTREAM_KEY: &str = "PLAINCALL_UPSTREAM_KEY";
const SECRET: &str = "PLAINCALL_SECRET";

/// Give native tool calls to clients of a model that only writes text.
///
/// Clients speak the OpenAI API, with `tools`; the model's server is asked in plain text; the calls that the model writes
/// come back as `tool_calls`, while it still writes. Requests without tools are passed on as they are. Whoever has a
/// client changes one URL: that of this server, with `/v1` at its end.
///
/// `POST /v1/chat/completions` and `GET /v1/models` are for clients, `GET /health`, `/ready` and `/metrics` for those who
/// watch. Of each request one line of JSON goes to standard error, without anything that was said in it.
///
/// Keys are read from files or from the environment: `PLAINCALL_KEYS` (what clients must show, separated by commas),
/// `PLAINCALL_UPSTREAM_KEY` (what the model's server wants) and `PLAINCALL_SECRET` (what the keys of markers come from).
///
/// SIGTERM and Ctrl-C end it: it takes no more requests and waits up to 30 seconds for those that are being answered.
///
/// Exit status: 0 if it was ended so; 1 if it could not begin; 2 for wrong usage.
#[derive(Args, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct ServeOptions {
    /// The model's server, up to `/v1`; or `replay:FILE`, which answers with recorded replies.
    ///
    /// Such a file holds one JSON document a line: a text, or an object with `content` and perhaps `finish_reason`. The
    /// first request of a conversation gets the first, the next the second.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,

    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// Listen where other machines can reach it, although nobody is asked for a key.
    #[arg(long)]
    pub(crate) open: bool,

    /// A file with the keys of clients, one a line.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) keys: Option<PathBuf>,

    /// A file with the key that the model's server wants.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) upstream_key: Option<PathBuf>,

    /// A file with a secret that the keys of markers come from: the same for all servers of one address.
    ///
    /// Without one it is drawn anew with each start.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) secret: Option<PathBuf>,

    /// A file that says for models, by their names, what differs from the options below (TOML).
    ///
    /// Each has a table `[models."NAME"]` with any of `syntax`, `start_prefix`, `end_prefix`, `arg_prefix`, `keyed`,
    /// `reasoning` (two markers, or `false`), `in_reasoning`, `checked` and `repair_rounds`.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) models: Option<PathBuf>,

    /// The syntax that the model is taught.
    #[arg(
        long,
        value_name = "SYNTAX",
        default_value = "block",
        help_heading = "Model"
    )]
    pub(crate) syntax: Taught,

    /// The start marker of the block syntax.
    #[arg(long, value_name = "MARKER", help_heading = "Model")]
    pub(crate) start_prefix: Option<String>,

    /// The end marker of the block syntax.
    #[arg(long, value_name = "MARKER", help_heading = "Model")]
    pub(crate) end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    #[arg(long, value_name = "MARKER", help_heading = "Model")]
    pub(crate) arg_prefix: Option<String>,

    /// Put a key into the markers that belongs to the conversation, so that no document can hold a call.
    #[arg(long, help_heading = "Model")]
    pub(crate) keyed: bool,

    /// What stands around the reasoning in the model's text; without it `<think>` and `</think>`.
    #[arg(long, num_args = 2, value_names = ["OPEN", "CLOSE"], help_heading = "Model")]
    pub(crate) reasoning: Option<Vec<String>>,

    /// The model's prompt opens the reasoning, so that a reply begins inside it.
    #[arg(long, help_heading = "Model")]
    pub(crate) in_reasoning: bool,

    /// The model's text holds no reasoning.
    #[arg(long, conflicts_with_all = ["reasoning", "in_reasoning"], help_heading = "Model")]
    pub(crate) no_reasoning: bool,

    /// Give out calls only when all of a reply are complete and right; ask the model again for wrong ones.
    ///
    /// So it is done anyway where a client offers a function as `strict`.
    #[arg(long, help_heading = "Model")]
    pub(crate) checked: bool,

    /// How often the model is asked again.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Model")]
    pub(crate) repair_rounds: u32,
}

/// The syntax that a model is taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Taught {
    /// The block syntax.
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

impl Taught {
    fn dialect(self) -> Dialect {
        match self {
            Self::Block => Dialect::block(),
            Self::Emoji => Dialect::emoji(),
        }
    }
}

/// Serves until it is told to end.
pub(crate) fn serve(options: &ServeOptions) -> Outcome {
    let config = config(options, &Environment::read())?;
    if !options.open {
        config
            .check_address(options.listen)
            .map_err(|error| Failure::Usage(format!("{error}; `--open` does it all the same")))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Broken(format!("cannot begin: {error}")))?;
    runtime.block_on(async {
        let failed =
            |error| Failure::Broken(format!("cannot listen on {}: {error}", options.listen));
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stopped =
            stopped().map_err(|error| Failure::Broken(format!("cannot heed signals: {error}")))?;
        remark(&format!(
            "http://{address}/v1 gives tool calls to the clients of {}",
            options.upstream
        ));
        let served = plaincall_gateway::serve(listener, config, stopped).await;
        served.map_err(|error| Failure::Broken(error.to_string()))
    })?;
    Ok(Status::Good)
}

fn config(options: &ServeOptions, environment: &Environment) -> Result<GatewayConfig, Failure> {
    let word = |name: &str| {
        let value = environment
            .get(name)
            .map(|value| value.to_str().map(str::to_owned));
        value
            .map(|value| value.ok_or_else(|| Failure::Usage(format!("{name} is no text"))))
            .transpose()
    };
    let from = |file: &Option<PathBuf>, name: &str| match file {
        Some(file) => read(file).map(Some),
        None => word(name),
    };
    let upstream = match options.upstream.strip_prefix(REPLAY) {
        Some(file) => {
            let replay = Replay::read(&read(Path::new(file))?);
            Upstream::Replay(replay.map_err(|error| Failure::Broken(format!("{file}: {error}")))?)
        }
        None => Upstream::Http {
            url: options.upstream.clone(),
            key: from(&options.upstream_key, UPSTREAM_KEY)?.map(|key| key.trim().to_owned()),
        },
    };
    let secret = match from(&options.secret, SECRET)? {
        Some(secret) => Secret::new(secret.trim().as_bytes()),
        None => Secret::random().map_err(|error| {
            Failure::Broken(format!("the system gives no random numbers: {error}"))
        })?,
    };
    let keys = from(&options.keys, CLIENT_KEYS)?.unwrap_or_default();
    let keys = keys
        .split(['\n', ','])
        .map(str::trim)
        .filter(|key| !key.is_empty());
    let settings = settings(options);
    settings
        .check()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let mut config = GatewayConfig::new(upstream, secret);
    if let Some(file) = &options.models {
        config.models = models::read(&read(file)?, &settings)
            .map_err(|error| Failure::Broken(format!("{}: {error}", file.display())))?;
    }
    config.keys = keys.map(str::to_owned).collect();
    config.other_models = settings;
    config.observe = Arc::new(tell);
    Ok(config)
}

fn settings(options: &ServeOptions) -> ModelSettings {
    let mut dialect = options.syntax.dialect();
    if let Some(marker) = &options.start_prefix {
        dialect = dialect.start(marker);
    }
    if let Some(marker) = &options.end_prefix {
        dialect = dialect.end(marker);
    }
    if let Some(marker) = &options.arg_prefix {
        dialect = dialect.arg(marker);
    }
    let mut span = ReasoningSpan::think();
    if let Some([open, close]) = options.reasoning.as_deref() {
        span.open.clone_from(open);
        span.close.clone_from(close);
    }
    span.is_begun = options.in_reasoning;
    ModelSettings {
        dialect,
        markers: if options.keyed {
            Markers::Keyed
        } else {
            Markers::Plain
        },
        reasoning: (!options.no_reasoning).then_some(span),
        mode: if options.checked {
            Mode::Checked
        } else {
            Mode::Streamed
        },
        repair_rounds: options.repair_rounds,
        ..ModelSettings::default()
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|error| Failure::Broken(format!("{}: {error}", file.display())))
}

/// Completes with the first signal that ends the server.
fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Writes the line of a request.
fn tell(report: &Report) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let milliseconds = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
    put(
        "time",
        json!(now.map_or(0.0, |time| (time.as_secs_f64() * 1e3).round() / 1e3)),
    );
    put("request_id", json!(report.request_id));
    put("path", json!(report.path));
    put("model", json!(report.model));
    put("stream", json!(report.is_streamed));
    put("translated", json!(report.is_translated));
    put("status", json!(report.status));
    put("ms", json!(milliseconds(report.time)));
    if let Some(time) = report.first_piece {
        put("first_ms", json!(milliseconds(time)));
    }
    if let Some(error) = &report.error {
        put("error", json!(error));
    }
    if report.is_abandoned {
        put("abandoned", json!(true));
    }
    let counts = report.counts;
    for (name, count) in [
        ("calls", counts.calls),
        ("wrong_calls", counts.wrong_calls),
        ("cut_calls", counts.cut_calls),
        ("unwanted_calls", counts.unwanted_calls),
        ("stray_markers", counts.stray_markers),
        ("dependent_calls", counts.dependent_calls),
        ("surplus_calls", counts.surplus_calls),
        ("missing_calls", counts.missing_calls),
        ("repair_rounds", counts.repair_rounds),
    ] {
        if count > 0 {
            put(name, json!(count));
        }
    }
    // If nobody listens any more, the server still serves.
    let _ = writeln!(std::io::stderr().lock(), "{}", Value::Object(line));
}
