//! `plaincall inspect`: open a reply or a log in the inspector.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use plaincall::private;
use plaincall_config::DialectOptions;
use plaincall_reply::Unclosed;
use plaincall_report::page::with_given;
use plaincall_tool::{Effect, ToolSpec};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::environment::Environment;
use crate::options::{ReplyDialect, ReplyDialectOption, ToolsOption};
use crate::output::Output;
use crate::platform::{CACHE, HOME, desktop_browser, detach};
use crate::replacement::replace;
use crate::runtime::block_on;
use crate::status::{Failure, Outcome, Status, cannot_write, print_note, reason};
use crate::text::input::read_input;

/// The page of this build; empty if the build got none.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/inspector.html"));
/// How long a browser may take to report that it cannot open the page.
const PATIENCE: Duration = Duration::from_secs(5);

/// Open a reply or a log in the inspector.
///
/// The inspector is one page for a browser. It shows how each byte of a reply is interpreted, the calls with their arguments, the
/// dependencies, diagnostics, what a client and a model would get, and the reply as it arrives. A log looks like the page of
/// `show`. The page needs no network and no server, and sends nothing.
///
/// The page contains the input. Only you can read its file: `plaincall/inspector.html` in `$XDG_CACHE_HOME` or `~/.cache`,
/// which the next call replaces. The browser is `$BROWSER`, or else that of the desktop. Without a browser or a desktop, the
/// path of the file is printed.
///
/// Exit status: 0 if the page was written; 1 if a file could not be read or written, or if the command was built without the page.
#[derive(Args, Debug)]
pub(crate) struct InspectOptions {
    /// The reply, or the log of a run. `-` is standard input. Default: an empty page.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Write the page to this file, and do not open it. `-` is standard output.
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,

    /// Use this page, which `cargo xtask inspector build` builds, instead of the one in the command.
    #[arg(long, value_name = "PAGE")]
    pub(crate) page: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) tools: ToolsOption,

    #[command(flatten)]
    pub(crate) dialect: ReplyDialectOption,
}

pub(crate) fn inspect(options: &InspectOptions, output: &mut Output) -> Outcome {
    let page = page(options.page.as_deref())?;
    let page = with_given(&page, &given(options)?).ok_or_else(|| {
        let path = options.page.as_deref().unwrap_or(Path::new("the page"));
        Failure::Runtime(format!("{} is not the inspector's page", path.display()))
    })?;
    match &options.html {
        Some(path) if path == Path::new("-") => output.bytes(page.as_bytes())?,
        Some(path) => {
            let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
            let written = if is_special {
                fs::write(path, &page)
            } else {
                replace(path, page.as_bytes())
            };
            written.map_err(|error| cannot_write(path, &error))?;
        }
        None => {
            let environment = Environment::read();
            let path = write_private(&page, &environment)?;
            if is_opened(&path, &environment) {
                print_note(&format!("opened {}", path.display()));
            } else {
                output.text(format_args!("{}\n", path.display()))?;
            }
        }
    }
    output.flush()?;
    Ok(Status::Success)
}

fn page(path: Option<&Path>) -> Result<String, Failure> {
    let Some(path) = path else {
        if PAGE.is_empty() {
            let message = "this command was built without the inspector's page. Released archives and wheels have it. In a clone of the repository, build the page with `cargo xtask inspector build`, and name it with `--page target/inspector/inspector.html`";
            return Err(Failure::Runtime(message.to_owned()));
        }
        return Ok(PAGE.to_owned());
    };
    let (name, bytes) = read_input(path)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::Runtime(format!("{name} is not the inspector's page")))
}

/// Returns the input of the page. Without options of the dialect, the page detects it.
fn given(options: &InspectOptions) -> Result<Value, Failure> {
    options.dialect.dialect.of_reply()?;
    let ReplyDialect {
        options: dialect,
        no_reasoning,
    } = &options.dialect.dialect;
    let files: Vec<PathBuf> = options.file.iter().cloned().collect();
    let (tools, unclosed) = options
        .tools
        .load(Some(&files).filter(|it| !it.is_empty()).map(Vec::as_slice))?;
    let mut given = json!({});
    if let Some(file) = &options.file {
        let (_, bytes) = read_input(file)?;
        match String::from_utf8(bytes) {
            Ok(text) => given["text"] = text.into(),
            Err(error) => given["bytes"] = error.into_bytes().into(),
        }
    }
    if let Some(tools) = tools {
        let definitions: Vec<Value> = tools.iter().map(definition).collect();
        // A JSON value without special keys can always be written.
        given["tools"] = serde_json::to_string_pretty(&definitions)
            .unwrap_or_default()
            .into();
    }
    let is_default = *dialect == DialectOptions::default();
    if !is_default || *no_reasoning || unclosed == Unclosed::Run {
        given["settings"] = json!({
            "dialect": (!is_default).then_some(dialect),
            "no_reasoning": no_reasoning,
            "stop": "broken",
            "unclosed": unclosed,
        });
    }
    Ok(given)
}

/// Returns the definition of a tool, in the format of MCP.
fn definition(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "annotations": {
            "readOnlyHint": tool.effect == Effect::Read,
            "idempotentHint": tool.effect == Effect::Idempotent,
        },
        "inputSchema": tool.to_schema(),
    })
}

/// Writes the page to a file that only the user can read, and returns its path.
fn write_private(page: &str, environment: &Environment) -> Result<PathBuf, Failure> {
    let folder = environment.directory(CACHE).ok_or_else(|| {
        let variable = CACHE.0;
        Failure::Runtime(format!("cannot write the page: neither `{variable}` nor `{HOME}` is set; name a file with `--html`"))
    })?;
    private::create_directory(&folder).map_err(|error| {
        let (folder, reason) = (folder.display(), reason(&error));
        Failure::Runtime(format!("cannot create {folder}: {reason}"))
    })?;
    let path = folder.join("inspector.html");
    replace(&path, page.as_bytes()).map_err(|error| cannot_write(&path, &error))?;
    Ok(path)
}

/// Opens the page in a browser, if there is one. The browser may run longer than this command.
fn is_opened(page: &Path, environment: &Environment) -> bool {
    browsers(environment)
        .into_iter()
        .any(|browser| starts(browser, page))
}

/// Returns the commands to try, in order.
fn browsers(environment: &Environment) -> Vec<Command> {
    match environment.get("BROWSER") {
        Some(list) => std::env::split_paths(list).map(Command::new).collect(),
        None => desktop_browser(environment).into_iter().collect(),
    }
}

/// Starts a browser. Returns `false` if it fails soon.
fn starts(mut browser: Command, page: &Path) -> bool {
    browser
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Ctrl-C in the terminal is not for the browser.
    detach(&mut browser);
    block_on(async {
        let Ok(mut child) = tokio::process::Command::from(browser).spawn() else {
            return Ok(false);
        };
        Ok(match timeout(PATIENCE, child.wait()).await {
            Ok(ended) => ended.is_ok_and(|status| status.success()),
            Err(_) => true,
        })
    })
    .unwrap_or(false)
}
