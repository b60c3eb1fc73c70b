//! The command line: what can be asked for.
//!
//! The comments on the commands and their options are the help that people read.
#![allow(
    clippy::doc_markdown,
    reason = "help has no markup that would be read, so a proper name stands in it as it is"
)]
#![allow(
    clippy::struct_excessive_bools,
    reason = "independent switches of the command line"
)]

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plaincall_call::{PromptPart, Unclosed};
use plaincall_syntax::Dialect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::AskOptions;
use crate::chat::ChatOptions;
use crate::config::ConfigOptions;
use crate::mcp::McpCommand;
use crate::probe::ProbeOptions;
use crate::run::RunOptions;
use crate::schemas::SchemaOption;
use crate::serve::ServeOptions;
use crate::sessions::SessionsOptions;
use crate::show::ShowOptions;
use crate::status::Failure;
use crate::tools::ToolsCommand;

/// Tool calling for any model that can write text.
///
/// A model writes its tool calls as plain text, in the block syntax (`!!!GADGET_START:` … `!!!GADGET_END`) or in the
/// emoji-bracket syntax (`🛠️[name arguments]` … `🛠️[/end]`). These commands read such text, check it, write it and
/// rewrite it.
#[derive(Debug, Parser)]
#[command(
    name = "plaincall",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colours.
    ///
    /// `auto` uses them on a terminal, unless the environment variable `NO_COLOR` is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        display_order = 998
    )]
    pub(crate) color: Color,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Parse(ParseOptions),
    Check(CheckOptions),
    Explain(ExplainOptions),
    Render(RenderOptions),
    Convert(ConvertOptions),
    Run(RunOptions),
    Serve(ServeOptions),
    Show(ShowOptions),
    Ask(AskOptions),
    Chat(ChatOptions),
    Sessions(SessionsOptions),
    Probe(ProbeOptions),
    Config(ConfigOptions),
    Tools(ToolsCommand),
    Mcp(McpCommand),
}

impl Command {
    /// The command's name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Parse(_) => "parse",
            Self::Check(_) => "check",
            Self::Explain(_) => "explain",
            Self::Render(_) => "render",
            Self::Convert(_) => "convert",
            Self::Run(_) => "run",
            Self::Serve(_) => "serve",
            Self::Show(_) => "show",
            Self::Ask(_) => "ask",
            Self::Tools(_) => "tools",
            Self::Mcp(_) => "mcp",
            Self::Chat(_) => "chat",
            Self::Sessions(_) => "sessions",
            Self::Probe(_) => "probe",
            Self::Config(_) => "config",
        }
    }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// The choice in the words of the library that decides it.
    pub(crate) fn choice(self) -> anstream::ColorChoice {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
    }
}

/// Find the calls in a text.
///
/// In a pipe it prints one JSON object a text, on one line: its segments (text, reasoning, calls), which cover it
/// without a gap, and its diagnostics. Spans count bytes. On a terminal it prints the text itself, while it arrives,
/// with its calls set off.
///
/// With `--schema` every call is held against the definition of its tool: its arguments are read as that says, and what
/// does not fit, or names no tool, is a diagnostic.
///
/// `--format openai` has no place for the dependencies of a call: they are named on standard error, and the call is
/// printed without them.
///
/// Exit status: 0 if the input could be read, whatever stands in it; 1 if a file could not be read, a line of
/// `--jsonl` was wrong, or `--format openai` left out a call or its dependencies.
#[derive(Args, Debug)]
#[command(after_long_help = PARSE_FORMS)]
pub(crate) struct ParseOptions {
    /// The texts to read; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What to print; without it `text` on a terminal and `json` anywhere else.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ParseFormat>,

    /// Print JSON, on a terminal too: the same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Read one JSON document a line, each a text of its own, and print one JSON object for each, in order.
    ///
    /// A line is a string, or an object with the key `text`; its key `id` is passed through. A line that is neither
    /// gives `{"error": …}`; the others go on.
    #[arg(long)]
    pub(crate) jsonl: bool,

    /// Print the parser's events, one JSON object a line, as soon as each is certain.
    #[arg(long, conflicts_with_all = ["format", "json", "jsonl"])]
    pub(crate) events: bool,

    /// Say of each argument how its text became its value: the text, the value and the rule, for people.
    ///
    /// Without `--schema` the text alone decides. With `--json` the same is printed for programs, one JSON object a text.
    #[arg(long, conflicts_with_all = ["format", "jsonl", "events"])]
    pub(crate) explain: bool,

    /// Give the parser this many bytes at a time.
    ///
    /// What is found is always the same; only the events of text and values are cut differently.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) chunk: Option<NonZeroUsize>,

    /// Take the text for whole, where it comes from a pipe too.
    ///
    /// `--format openai` leaves out a call that the end of the text closed, unless the text is known to be whole. A
    /// file is; what comes through a pipe is only with this option.
    #[arg(long)]
    pub(crate) complete: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

const PARSE_FORMS: &str = "\
Events (`--events`): each object has `type` and `span`. The types are `text`, `reasoning`, `value_delta` and `ignored` \
with `text`; `call_start` with `syntax`, `name` and `source`, and with `id` and `dependencies` (block) or `raw_args` \
(emoji); `value_start` with `pointer` (an argument) or without (a body), and `source`; `value_end` with `source`; \
`call_end` with `termination` and `source`; `diagnostic` with `code`, `severity` and `message`. The spans of all but \
diagnostics cover the text without a gap. With `--schema`, behind the end of each call: what the definition of its tool \
finds as `diagnostic`, with `pointer` where it is about an argument, and `call` with `call`, the call as `--format json` \
has it; its span is that of the whole call.

Explanations (`--explain --json`): `calls`, each with `name`, `id`, `span`, `arguments` and `problems`. An argument has \
`pointer`, `place` (`argument`, `word`, `line_from`, `body`, `json_member`; with `word` where words are counted, from 1), \
`span`, `text`, `value` (absent if the text is nothing that may stand there), `rule` (its name), `reason` (its words), \
`section` (where it is defined) and `problems`.";

fn size(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "write a whole number from 1")
}

fn seed(text: &str) -> Result<u64, &'static str> {
    text.parse()
        .map_err(|_| "write a whole number from 0 to 2^64 - 1")
}

/// What `parse` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParseFormat {
    /// One JSON object a text.
    Json,
    /// The calls as an OpenAI `tool_calls` array. A wrong call is left out and named on standard error.
    Openai,
    /// The text itself, with its calls set off.
    Text,
}

/// Show what is wrong in a text, underlined in the source.
///
/// It names every diagnostic with its line and column, near misses of markers, calls in other formats, and what `run`
/// rejects: calls without an end marker, calls that depend on themselves or on each other. With `--schema` also unknown
/// tools, missing arguments and arguments that are not what the definition of the tool asks for. Without it, what
/// depends on the tool is a warning.
///
/// The text is judged as `run` judges a file: `<think>` at its beginning opens reasoning.
///
/// With `--every-split` it also proves for this text that it does not matter in which chunks it arrives.
///
/// Exit status: 0 without errors, warnings or not; 1 with errors, if chunks matter, or if a file could not be read; 130
/// after Ctrl-C.
#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// The texts to check; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What to print: `text` for people, or `json`, one object a text.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: CheckFormat,

    /// Exit with status 1 on warnings too.
    #[arg(long)]
    pub(crate) deny_warnings: bool,

    /// Read the text again in many ways of chunks, and hold the events and calls of each against those of the whole.
    ///
    /// One byte at a time, and split in two at every byte, inside of characters too. Up to 512 bytes also at every pair of
    /// bytes; above that at random places as well. Where every split would take too long (above 16 KiB), splits are spread
    /// evenly, and chunks of 64 bytes begin once at every byte. What was tried is printed.
    #[arg(long)]
    pub(crate) every_split: bool,

    /// Where the random places of `--every-split` begin: another number gives others.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        value_parser = seed,
        requires = "every_split"
    )]
    pub(crate) seed: u64,

    /// Read `<think>` as text, as `run --no-reasoning` does.
    #[arg(long, conflicts_with_all = ["reasoning", "in_reasoning"])]
    pub(crate) no_reasoning: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

/// What `check` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// The source with what was found underlined.
    Text,
    /// One JSON object a text: `file`, `calls`, `errors`, `warnings`, and `diagnostics` with `code`, `severity`, `span`,
    /// `line`, `column`, `message`, and where there is one `pointer`, `help` and `meant`. `every_split`, if it was asked for,
    /// has `agrees`, `interrupted`, `ways`, `cuts` (each with `cut`, `ways` and `all`), and `disagreement` with `way`,
    /// `place`, `whole` and `cut`.
    Json,
}

/// Show what each byte of a text is taken for, and the rule behind it.
///
/// Every byte of the text stands in exactly one range. Each range is printed with its place in bytes, its line and column,
/// its text, what it is taken for, and the section of the definition (`spec/`) that says so. What `check` finds stands
/// at its place, with what to do about it. How the text of an argument becomes its value is what `parse --explain` says.
///
/// Exit status: 0 if the input could be read, whatever stands in it; 1 if a file could not be read.
#[derive(Args, Debug)]
#[command(after_long_help = EXPLAIN_FORM)]
pub(crate) struct ExplainOptions {
    /// The texts to explain; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object a range, each on a line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

const EXPLAIN_FORM: &str = "\
Visible signs stand for what cannot be seen: `␊` is a line feed, `␍` a carriage return, `␉` a tab, `␠` a blank at the edge \
of a range, `\\xff` a byte that is not UTF-8. A long text is shown with its beginning and its end.

Ranges (`--json`): `file`, `span` (bytes, from and to), `line`, `column`, `text` (whole, each part that is not UTF-8 as \
U+FFFD), `taken_for`, `words` (the same for people), `rule` (as `spec/block.md 4.1`), `call` (the name of the tool) and \
`argument` (its pointer) where the range belongs to one, and `findings`, each with `code`, `severity`, `span`, `message`, \
`rule`, and where there is one `help` and `meant`. `taken_for` is one of `text`, `reasoning_open`, `reasoning`, \
`reasoning_close`, `reasoning_cut_off`, `escape`, `marker_as_content`, `call_start`, `self_closing_call`, \
`blank_before_argument`, `fence_before_argument`, `text_before_argument`, `argument_start`, `rest_of_pointer_line`, \
`line_end_before_body`, `value`, `body`, `empty_value`, `empty_body`, `line_end_after_value`, `end_marker`, \
`end_marker_in_mid_line`, `end_by_next_call`, `end_of_input`. The spans cover the text without a gap; what only ends somewhere, and a value that is \
empty, is a range of no bytes.";

/// Write what a model is told: calls, the prompt, earlier messages, results, what is wrong.
///
/// `--as` says what; without it, calls. It reads JSON: what `parse` prints, calls from there alone, or OpenAI tool calls
/// (an array, one call, or a message that holds `tool_calls`); several values may follow each other. A whole document
/// comes back with its text.
///
/// A call that cannot be written so that it is read again as the same call is named on standard error with the
/// reason; the others are written. With `--schema` the definition of its tool says how it is read, so a text may be any
/// text, null and empty lists can be written, and what the tool would not take is refused. A call that by what `parse`
/// says the end of its text ended is left out and named too: it may be half a call, and with an end marker it would look
/// whole.
///
/// Exit status: 0 if everything was written; 1 if something was left out, and with `--as repair` or `--as deltas` if a
/// call is wrong.
#[derive(Args, Debug)]
pub(crate) struct RenderOptions {
    /// What to read; `-` or none is standard input. `--as prompt` reads nothing but the definitions of `--schema`.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What to write.
    #[arg(long = "as", value_name = "WHAT", default_value = "calls")]
    pub(crate) what: Rendered,

    /// Print how large each piece is, in characters and bytes, in the place of its text.
    #[arg(long)]
    pub(crate) stats: bool,

    /// Print messages as JSON, one a line, for `--as history`.
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave a part of the prompt out; `--as prompt --stats` prints what they are called.
    #[arg(long, value_name = "PART", value_parser = prompt_part)]
    pub(crate) omit: Vec<PromptPart>,

    /// Put the text of a file in the place of a part of the prompt.
    #[arg(long, value_name = "PART=FILE", value_parser = replacement)]
    pub(crate) replace: Vec<(PromptPart, PathBuf)>,

    /// Say nothing in the prompt of ids and dependencies.
    #[arg(long)]
    pub(crate) no_dependencies: bool,

    /// Ask in the prompt for at most one call in a reply.
    #[arg(long)]
    pub(crate) one_call: bool,

    /// Read the text this many bytes at a time, for `--as deltas`.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) chunk: Option<NonZeroUsize>,

    /// Take the text for whole: one that comes from a pipe, for `--as repair` and `--as deltas`; or the one that a document
    /// comes from, so that a block call that its end closed is written.
    ///
    /// A call of the emoji syntax without its end marker is not written even so.
    #[arg(long)]
    pub(crate) complete: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

/// What `render` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rendered {
    /// Calls, from JSON.
    Calls,
    /// What a model is told so that it can write calls to the tools of `--schema`.
    Prompt,
    /// The messages of a conversation, from JSON as OpenAI writes it: calls and results as text. What does not come from
    /// the system or the developer is escaped.
    History,
    /// How calls ended, from what `run --json` prints or from a list of results.
    Results,
    /// What is wrong with the calls of a text, each with the call as it would look right.
    Repair,
    /// The arguments of the calls of a text as deltas of JSON, one object a line.
    Deltas,
}

impl Rendered {
    /// Its word on the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Prompt => "prompt",
            Self::History => "history",
            Self::Results => "results",
            Self::Repair => "repair",
            Self::Deltas => "deltas",
        }
    }
}

impl RenderOptions {
    /// Refuses options that have no meaning for what is written.
    ///
    /// # Errors
    /// Names the first: that is wrong usage.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let is_prompt = self.what == Rendered::Prompt;
        let only_prompt = &[Rendered::Prompt][..];
        // The options, whether they are there, and what they go with.
        let options = [
            ("--omit", !self.omit.is_empty(), only_prompt),
            ("--replace", !self.replace.is_empty(), only_prompt),
            ("--no-dependencies", self.no_dependencies, only_prompt),
            ("--one-call", self.one_call, only_prompt),
            ("--json", self.json, &[Rendered::History]),
            ("--chunk", self.chunk.is_some(), &[Rendered::Deltas]),
            (
                "--complete",
                self.complete,
                &[Rendered::Calls, Rendered::Repair, Rendered::Deltas],
            ),
        ];
        for (option, is_there, with) in options {
            if is_there && !with.contains(&self.what) {
                let with: Vec<String> = with
                    .iter()
                    .map(|what| format!("'--as {}'", what.name()))
                    .collect();
                let message = format!("'{option}' goes with {} only", with.join(", "));
                return Err(Failure::Usage(message));
            }
        }
        if is_prompt && !self.files.is_empty() {
            let message = "'--as prompt' reads no file: '--schema' names those with the definitions of the tools";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(())
    }
}

fn prompt_part(name: &str) -> Result<PromptPart, String> {
    let found = PromptPart::ALL.into_iter().find(|part| part.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = PromptPart::ALL.iter().map(|part| part.name()).collect();
        format!("there is no such part: {}", names.join(", "))
    })
}

fn replacement(text: &str) -> Result<(PromptPart, PathBuf), String> {
    let (part, file) = text
        .split_once('=')
        .ok_or("write the name of a part, `=` and the path of a file")?;
    Ok((prompt_part(part)?, PathBuf::from(file)))
}

/// Rewrite the calls of a text in the other syntax.
///
/// Text outside calls stays as it is, byte for byte. A call that the other syntax cannot express stays as it is too
/// and is named on standard error with the reason: one that is wrong or cut off, one whose tool has no definition,
/// one with an id or dependencies, and one whose arguments have no place in the form that its tool's definition
/// gives.
///
/// Exit status: 0 if every call was rewritten, else 1.
#[derive(Args, Debug)]
pub(crate) struct ConvertOptions {
    /// The text to rewrite; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The syntax to write.
    #[arg(long, value_name = "SYNTAX")]
    pub(crate) to: Target,

    /// Write calls to the emoji syntax without the ids and dependencies that they have.
    ///
    /// What is dropped is named on standard error. Calls of the emoji syntax run in the order in which they stand.
    #[arg(long)]
    pub(crate) drop_ids: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

/// The syntax that `convert` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// The block syntax.
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

/// How a text is read and written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Syntax")]
pub(crate) struct DialectOptions {
    /// The syntax; `auto` is that of the first call.
    ///
    /// Without it: `block` if a marker is set, else `auto`.
    #[arg(long, value_name = "SYNTAX")]
    pub(crate) syntax: Option<SyntaxChoice>,

    /// The start marker of the block syntax.
    #[arg(long, value_name = "MARKER", allow_hyphen_values = true)]
    pub(crate) start_prefix: Option<String>,

    /// The end marker of the block syntax.
    #[arg(long, value_name = "MARKER", allow_hyphen_values = true)]
    pub(crate) end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    #[arg(long, value_name = "MARKER", allow_hyphen_values = true)]
    pub(crate) arg_prefix: Option<String>,

    /// Where markers of the block syntax count inside a call.
    #[arg(long, value_name = "WHERE", default_value = "line-start")]
    pub(crate) markers: MarkerPlaces,

    /// Accept the emoji marker in its canonical form alone.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Let ` /]` close an emoji call that has no body.
    #[arg(long)]
    pub(crate) self_closing: bool,

    /// Read and write the escape: a backslash before the last character of a marker makes it content.
    #[arg(long)]
    pub(crate) escaped: bool,

    /// A key of letters and digits that is part of every marker.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// The markers between which the text is reasoning, in which calls do not count.
    ///
    /// `run` reads a reply: there the open marker counts only as the first non-blank text.
    #[arg(long, num_args = 2, value_names = ["OPEN", "CLOSE"], allow_hyphen_values = true)]
    pub(crate) reasoning: Option<Vec<String>>,

    /// Begin inside reasoning.
    #[arg(long)]
    pub(crate) in_reasoning: bool,
}

/// How the syntax is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyntaxChoice {
    /// The block syntax.
    Block,
    /// The emoji-bracket syntax.
    Emoji,
    /// That of the first call.
    Auto,
}

/// What to do with calls without an end marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UnclosedChoice {
    /// Reject them, unless the tool only reads or the text is complete.
    Reject,
    /// Run them if the next call or the end of a complete text ended them.
    Run,
}

impl UnclosedChoice {
    pub(crate) const fn unclosed(self) -> Unclosed {
        match self {
            Self::Reject => Unclosed::Reject,
            Self::Run => Unclosed::Run,
        }
    }
}

/// Where markers of the block syntax count inside a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MarkerPlaces {
    /// At the beginning of a line.
    LineStart,
    /// Anywhere.
    Anywhere,
}

impl DialectOptions {
    /// The dialect that is asked for.
    ///
    /// # Errors
    /// Refuses one that cannot work: that is wrong usage.
    pub(crate) fn dialect(&self) -> Result<Dialect, Failure> {
        Ok(self.begun(self.outside_reasoning()?))
    }

    /// The same for a text that begins outside reasoning.
    ///
    /// # Errors
    /// Refuses one that cannot work: that is wrong usage.
    pub(crate) fn outside_reasoning(&self) -> Result<Dialect, Failure> {
        let has_marker =
            self.start_prefix.is_some() || self.end_prefix.is_some() || self.arg_prefix.is_some();
        let default = if has_marker {
            SyntaxChoice::Block
        } else {
            SyntaxChoice::Auto
        };
        self.with_syntax(self.syntax.unwrap_or(default))
    }

    /// The dialect of a reply that is run: with leading reasoning, between `<think>` and `</think>` unless the options name
    /// other markers.
    ///
    /// # Errors
    /// Refuses one that cannot work: that is wrong usage.
    pub(crate) fn of_reply(&self, no_reasoning: bool) -> Result<Dialect, Failure> {
        let dialect = self.outside_reasoning()?;
        let [open, close] = match self.reasoning.as_deref() {
            Some([open, close]) => [open.as_str(), close],
            _ if no_reasoning => return Ok(dialect),
            _ => Dialect::THINK,
        };
        let dialect = self.begun(dialect.leading_reasoning(open, close));
        let checked = dialect.check();
        checked.map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(dialect)
    }

    /// The same with another syntax.
    ///
    /// # Errors
    /// Refuses one that cannot work: that is wrong usage.
    pub(crate) fn with_syntax(&self, syntax: SyntaxChoice) -> Result<Dialect, Failure> {
        let mut dialect = match syntax {
            SyntaxChoice::Block => Dialect::block(),
            SyntaxChoice::Emoji => Dialect::emoji(),
            SyntaxChoice::Auto => Dialect::auto(),
        };
        if let Some(marker) = &self.start_prefix {
            dialect = dialect.start(marker);
        }
        if let Some(marker) = &self.end_prefix {
            dialect = dialect.end(marker);
        }
        if let Some(marker) = &self.arg_prefix {
            dialect = dialect.arg(marker);
        }
        if self.markers == MarkerPlaces::Anywhere {
            dialect = dialect.markers_anywhere();
        }
        if self.strict {
            dialect = dialect.strict();
        }
        if self.self_closing {
            dialect = dialect.self_closing();
        }
        if self.escaped {
            dialect = dialect.escaped();
        }
        if let Some(key) = &self.key {
            dialect = dialect.keyed(key);
        }
        if let Some([open, close]) = self.reasoning.as_deref() {
            dialect = dialect.reasoning(open, close);
        }
        dialect
            .check()
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(dialect)
    }

    /// The dialect for a text that begins where these options say.
    pub(crate) fn begun(&self, dialect: Dialect) -> Dialect {
        if self.in_reasoning {
            dialect.in_reasoning()
        } else {
            dialect
        }
    }
}
