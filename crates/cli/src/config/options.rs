//! What the command line says of an agent, on top of the configuration.
#![allow(
    clippy::doc_markdown,
    reason = "help has no markup that would be read, so a proper name stands in it as it is"
)]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::config::contents::{Kind, Syntax};
use crate::config::layer::{Layer, Place};
use crate::config::parts::whole;
use crate::config::print::FileOptions;
use crate::config::{Configuration, Sources};
use crate::environment::Environment;
use crate::serve::quantity::time;
use crate::status::Failure;

/// What the model of `--url` is called among the others.
pub(crate) const GIVEN: &str = "given";

/// Which model is asked, with which tools, and how far it may go.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AgentOptions {
    /// The model: one of the configuration, or `ollama:ID`, `openai:ID`, `anthropic:ID`; `replay:FILE` answers with
    /// recorded replies. With `--url` what its server calls it.
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) model: Option<String>,

    /// The address of the model's server, up to `/v1`, for a model that is not in the configuration. `PLAINCALL_KEY` is its
    /// key.
    #[arg(long, value_name = "URL", requires = "model", help_heading = "Model")]
    pub(crate) url: Option<String>,

    /// What the server of `--url` speaks; `openai` if nothing is said.
    #[arg(long, value_name = "KIND", requires = "url", help_heading = "Model")]
    pub(crate) kind: Option<KindOption>,

    /// The syntax in which the model is taught to write calls, in the place of its own.
    #[arg(long, value_name = "SYNTAX", help_heading = "Model")]
    pub(crate) syntax: Option<SyntaxOption>,

    /// The start marker of the block syntax.
    #[arg(
        long,
        value_name = "MARKER",
        allow_hyphen_values = true,
        help_heading = "Model"
    )]
    pub(crate) start_prefix: Option<String>,

    /// The end marker of the block syntax.
    #[arg(
        long,
        value_name = "MARKER",
        allow_hyphen_values = true,
        help_heading = "Model"
    )]
    pub(crate) end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    #[arg(
        long,
        value_name = "MARKER",
        allow_hyphen_values = true,
        help_heading = "Model"
    )]
    pub(crate) arg_prefix: Option<String>,

    /// Put a random key into the markers, so that no text from outside can hold a call.
    #[arg(long, help_heading = "Model")]
    pub(crate) keyed: bool,

    /// What the model is told beforehand.
    #[arg(long, value_name = "WORDS", help_heading = "Model")]
    pub(crate) system: Option<String>,

    /// A file with tools that are commands (`tools.toml`), in the place of those of the configuration; may be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Tools")]
    pub(crate) tools: Vec<PathBuf>,

    /// Offer the built-in tools, confined to this directory.
    #[arg(long, value_name = "DIR", help_heading = "Tools")]
    pub(crate) builtin: Option<PathBuf>,

    /// A file with MCP servers (`mcpServers`), in the place of those of the configuration; may be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Tools")]
    pub(crate) mcp: Vec<PathBuf>,

    /// Offer no tools, whatever the configuration says.
    #[arg(long, conflicts_with_all = ["tools", "builtin", "mcp"], help_heading = "Tools")]
    pub(crate) no_tools: bool,

    /// Let tools run that may change something, and calls about which a rule wants somebody to be asked, without asking.
    ///
    /// A rule that denies a call still does, and a call that also stands in untrusted text is still asked
    /// about.
    #[arg(long, help_heading = "Tools")]
    pub(crate) yes: bool,

    /// Run so many calls at the same time at most; 0 is any number.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) concurrency: Option<u32>,

    /// How many replies the model may write to one question.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub(crate) max_turns: Option<u32>,

    /// How many calls it may write for one question.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub(crate) max_calls: Option<u32>,

    /// How many tokens may be read and written for one question.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub(crate) max_tokens: Option<u32>,

    /// How often the model is told what is wrong with its calls.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) max_repairs: Option<u32>,

    /// How long one question may take: seconds, or a number with `ms`, `s`, `m` or `h`.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) files: FileOptions,
}

/// What a model's server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindOption {
    /// Chat completions.
    Openai,
    /// Messages, as Anthropic has them.
    Anthropic,
}

/// The syntax that a model is taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyntaxOption {
    /// The block syntax.
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

impl AgentOptions {
    /// The configuration with these options on top.
    ///
    /// # Errors
    /// See [`Configuration::load`].
    pub(crate) fn configuration(
        &self,
        environment: &Environment,
    ) -> Result<Configuration, Failure> {
        let sources: Sources = self.files.sources(self.layer());
        let mut configuration = Configuration::load(sources, environment)?;
        if self.no_tools {
            configuration.contents.tools.clear();
            configuration.contents.builtin.directory = None;
            configuration.contents.mcp = super::contents::Mcp::default();
        }
        Ok(configuration)
    }

    /// The options as a layer.
    fn layer(&self) -> Layer {
        let mut layer = Layer::default();
        let mut set = |keys: &[&str], value: Option<Value>, option: &'static str| {
            if let Some(value) = value {
                layer.set(keys, value, Place::Option(option));
            }
        };
        let paths = |paths: &[PathBuf]| {
            let paths: Vec<Value> = paths.iter().map(path_value).collect();
            (!paths.is_empty()).then_some(Value::Array(paths))
        };
        if let Some(url) = &self.url {
            let kind = match self.kind {
                Some(KindOption::Anthropic) => Kind::Anthropic,
                Some(KindOption::Openai) | None => Kind::OpenAi,
            };
            let model = json!({"url": url, "kind": kind, "model": self.model});
            set(&["models", GIVEN], Some(model), "--url");
            set(&["model"], Some(GIVEN.into()), "--url");
        } else {
            set(&["model"], self.model.clone().map(Value::from), "--model");
        }
        set(
            &["system"],
            self.system.clone().map(Value::from),
            "--system",
        );
        set(&["tools"], paths(&self.tools), "--tools");
        set(&["mcp", "files"], paths(&self.mcp), "--mcp");
        let builtin = self.builtin.as_deref().map(path_value);
        set(&["builtin", "directory"], builtin, "--builtin");
        let limits = [
            ("turns", self.max_turns, "--max-turns"),
            ("calls", self.max_calls, "--max-calls"),
            ("tokens", self.max_tokens, "--max-tokens"),
            ("repairs", self.max_repairs, "--max-repairs"),
            ("concurrent", self.concurrency, "--concurrency"),
        ];
        for (key, value, option) in limits {
            set(&["limits", key], value.map(Value::from), option);
        }
        let time = self.timeout.map(|time| format!("{}ms", time.as_millis()));
        set(&["limits", "time"], time.map(Value::from), "--timeout");
        layer
    }

    /// What the options say of the dialect comes before what the model's table says.
    pub(crate) fn dialect(&self, entry: &mut super::contents::ModelEntry) -> Result<(), Failure> {
        match self.syntax {
            Some(SyntaxOption::Block) => entry.syntax = Syntax::Block,
            Some(SyntaxOption::Emoji) => entry.syntax = Syntax::Emoji,
            None => {}
        }
        for (option, place, name) in [
            (
                &self.start_prefix,
                &mut entry.start_prefix,
                "--start-prefix",
            ),
            (&self.end_prefix, &mut entry.end_prefix, "--end-prefix"),
            (&self.arg_prefix, &mut entry.arg_prefix, "--arg-prefix"),
        ] {
            if self.syntax == Some(SyntaxOption::Emoji) {
                *place = None;
            }
            if option.is_some() {
                if entry.syntax == Syntax::Emoji {
                    return Err(Failure::Usage(format!(
                        "`{name}` is a marker of the block syntax, and the model is taught the emoji syntax; leave one out"
                    )));
                }
                place.clone_from(option);
            }
        }
        entry.keyed |= self.keyed;
        super::check::dialect(entry)
            .check()
            .map_err(|error| Failure::Usage(error.to_string()))
    }
}

fn path_value(path: impl AsRef<std::path::Path>) -> Value {
    whole(path.as_ref()).to_string_lossy().into_owned().into()
}
