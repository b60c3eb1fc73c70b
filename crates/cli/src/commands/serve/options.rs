//! What can be asked of `plaincall serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plaincall_config::{Arguments, MOST_REPAIR_ROUNDS};

use crate::commands::serve::limits::{LimitOptions, TimeOptions, from_to};
use crate::options::{TeachingOptions, UnclosedChoice};

/// Give native tool calls to clients of a model that only writes text.
///
/// Clients speak the OpenAI API, with `tools`; the model's server is asked in plain text; the calls that the model writes
/// come back as `tool_calls`, while it still writes. Requests without tools are passed on as they are. Whoever has a
/// client changes one URL: that of this server, with `/v1` at its end.
///
/// `POST /v1/chat/completions` and `GET /v1/models` are for clients, and so are completions, embeddings, rerank,
/// moderations, audio and images below `/v1`, which are passed on as they are. `GET /health`, `/ready` and `/metrics`
/// are for those who watch. Of each request one line of JSON goes to standard output, without anything that was said in
/// it.
///
/// Keys are read from files or from the environment: `PLAINCALL_KEYS` (what clients must show, separated by commas),
/// `PLAINCALL_UPSTREAM_KEY` (what the model's server wants) and `PLAINCALL_SECRET` (what the keys of markers come from).
///
/// SIGTERM, SIGHUP and Ctrl-C end it: it takes no more requests and waits for those that are being answered. A second
/// one ends it at once. Under `nohup` SIGHUP does nothing.
///
/// Files of keys, secrets and models are read once, at the start: to change them, start it anew.
///
/// Times are seconds, or a number with `ms`, `s`, `m` or `h`; sizes are bytes, or a number with `KiB`, `MiB` or `GiB`.
///
/// Exit status: 0 if it was ended by a signal and all requests had their answers; 1 if it could not begin, or if it
/// ended before some had; 2 for wrong usage; 128 and the number of the signal if a second one ended it, so 130 for Ctrl-C.
#[derive(Args, Debug)]
pub(crate) struct ServeOptions {
    /// The model's server, up to `/v1`; or `replay:FILE`, which answers with recorded replies.
    ///
    /// Such a file holds one JSON document a line: a text, or an object with `content` and perhaps `finish_reason`. The
    /// first request of a conversation gets the first, the next the second.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,

    /// Where to listen. Port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// Listen where other machines can reach it, although nobody is asked for a key.
    #[arg(long)]
    pub(crate) open: bool,

    /// Let pages of this origin ask from a browser, such as `https://chat.example`. Can be given several times.
    ///
    /// Without it no page may. `*` stands for every origin.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,

    /// Also put into the log what was said: requests, replies and answers. Meant for looking for mistakes.
    ///
    /// Whoever can read the log can then read the conversations. Each text is cut at 64 KiB. Keys of at least eight
    /// characters are left out.
    #[arg(long)]
    pub(crate) log_contents: bool,

    /// A file with the keys of clients, one a line. A file that holds none is refused.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) keys: Option<PathBuf>,

    /// A file with the key that the model's server wants.
    ///
    /// Without one, and if clients need no key of this server, it gets what the client shows.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) upstream_key: Option<PathBuf>,

    /// A file with a secret that the keys of markers come from, at least 16 bytes: the same for all servers of one address.
    ///
    /// Without one it is drawn anew with each start.
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) secret: Option<PathBuf>,

    /// A file with what differs from the options below for models of these names (TOML).
    ///
    /// Each has a table `[models."NAME"]` with any of `syntax`, `start_prefix`, `end_prefix`, `arg_prefix`, `keyed`,
    /// `reasoning` (two markers, or `false`), `in_reasoning`, `arguments`, `unclosed`, `repair_rounds` and `developer_role`. In a name
    /// `*` stands for any characters; of several names that fit, the one with the most characters besides counts, and
    /// one without `*` before all others.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) models: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) teaching: TeachingOptions,

    /// The markers around the reasoning at the beginning of the model's text. Default: `<think>` and `</think>`.
    #[arg(long, num_args = 2, value_names = ["OPEN", "CLOSE"], help_heading = "Model")]
    pub(crate) reasoning: Option<Vec<String>>,

    /// The model's prompt opens the reasoning, so that a reply begins inside it.
    #[arg(long, help_heading = "Model")]
    pub(crate) in_reasoning: bool,

    /// The model's text holds no reasoning.
    #[arg(long, conflicts_with_all = ["reasoning", "in_reasoning"], help_heading = "Model")]
    pub(crate) no_reasoning: bool,

    /// When the arguments of a call are sent: `checked` sends each call when it has ended and is valid; `stream` sends the
    /// arguments while the model writes them.
    ///
    /// With `stream`, a call that proves invalid reaches the client, with arguments that are not valid JSON. Some clients
    /// run such a call anyway. Replies that are not streamed, and those to a request with a `strict` function, are checked
    /// in any case.
    #[arg(
        long,
        value_name = "MODE",
        default_value = "checked",
        help_heading = "Model"
    )]
    pub(crate) arguments: Arguments,

    /// What to do with calls without an end marker: `run` is for models that forget them, and sends such a call if the next
    /// call or the end of a complete reply ended it.
    #[arg(
        long,
        value_name = "CHOICE",
        default_value = "reject",
        help_heading = "Model"
    )]
    pub(crate) unclosed: UnclosedChoice,

    /// How often the model is asked again, hidden from the client, before an invalid call is an error.
    #[arg(long, value_name = "N", default_value = "2", value_parser = from_to(0, MOST_REPAIR_ROUNDS.into()), help_heading = "Model")]
    pub(crate) repair_rounds: u32,

    /// The model's server knows messages of the role `developer`; without it they go to it as `system`.
    #[arg(long, help_heading = "Model")]
    pub(crate) developer_role: bool,

    #[command(flatten)]
    pub(crate) limits: LimitOptions,

    #[command(flatten)]
    pub(crate) times: TimeOptions,
}

/// An address to listen on. Names are not looked up: they may stand for several.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().unwrap_or_default();
        let port = port.parse::<u16>().unwrap_or(8080);
        format!("write an IP address and a port; did you mean 127.0.0.1:{port}?")
    })
}
