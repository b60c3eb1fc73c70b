//! The reference of the configuration, as Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::config::schema::{Part, Shape, name_of, schema};

const BEGINNING: &str = "\
# The configuration

<!-- Written by `cargo xtask docs`. Changes go into the comments of crates/cli/src/config/contents.rs. -->

`plaincall ask` and `plaincall chat` are told beforehand which models there are, which tools, and what may run. It stands
in TOML files:

- your own: `plaincall/config.toml` in the directory that `XDG_CONFIG_HOME` names, or in `~/.config`; `--config FILE` or
  `PLAINCALL_CONFIG` names another;
- that of a project: the first `plaincall.toml` in the working directory or above it; `--no-project` leaves it out.

The project's file counts before your own, the environment before both, and options before all. A model, an MCP server
and a list are taken whole from the nearest layer that has them; rules are kept together.

`plaincall config` shows what holds, and where each value comes from; `plaincall config --schema` prints the JSON Schema,
with which editors complete and check a file. A key that is not known is refused, with the one that is probably meant.
Paths are relative to the file that they stand in; `~` is your home.

## A project's file

It comes with the project, from whoever wrote that. Until you trust it, nothing of it counts but its rules that deny, and
those by which somebody is asked; `ask` says what was left out. The model reads none of its words, no file that it names is
opened, and its mistakes stop nobody. `plaincall config --trust` shows the file and those that it names (`tools`,
`mcp.files`, `system_file`), asks on the terminal, and trusts these texts; where there is no terminal, it names their
fingerprint, and `--trust=FINGERPRINT` trusts them. When one of them changes, that is over. `--distrust` takes it back.
Trust is about what these files say: programs of the project that they start, and recorded replies, may change.

A project's file that belongs to another user, or stands in a directory in which everybody can replace it, does not count
at all. It may have 1 MiB, and so may each file that it names.

All paths in it lead to places inside the project, behind links too. A file of tools that it names may take no variables of
your environment (`environment`). What `--trust` shows leaves out what looks like a secret.

Trusted or not, a project's file cannot say where a key is, and its rules cannot lift what your own forbid. A key from the
environment goes to the server that it is for, and to no address that a project has chosen.

## The environment

Each single value at the top and in the tables `builtin` and `limits` has a variable: `PLAINCALL_MODEL`,
`PLAINCALL_SYSTEM`, `PLAINCALL_LIMITS_TURNS`, `PLAINCALL_BUILTIN_DIRECTORY` and so on. A variable that begins with
`PLAINCALL_` and is not known is refused. `PLAINCALL_KEY` is the key for a model that is named by `--url`. Proxies are those of
`https_proxy`, `http_proxy` and `no_proxy`.

## An example

```toml
model = \"local\"
tools = [\"tools.toml\"]

[builtin]
directory = \"~/notes\"

[limits]
turns = 20
time = \"10m\"

[models.local]
url = \"http://localhost:11434/v1\"
model = \"qwen3\"
temperature = 0.2

[models.claude]
url = \"https://api.anthropic.com/v1\"
kind = \"anthropic\"
model = \"claude-sonnet-4-5\"
max_tokens = 8192

[mcp.servers.everything]
command = \"npx\"
args = [\"-y\", \"@modelcontextprotocol/server-everything\"]

[[rules]]
tools = \"run_*\"
arguments = { command = \"rm *\" }
verdict = \"deny\"
reason = \"nothing is deleted here\"
```
";

/// The reference: every key, what it means and what it may hold.
pub fn reference() -> String {
    let mut text = BEGINNING.to_owned();
    let schema = schema();
    let _ = writeln!(text, "\n## Keys at the top\n");
    if let Shape::Table(keys) = Part(&schema).shape() {
        singles(&mut text, keys);
        for (name, part) in keys {
            table(&mut text, name, Part(part));
        }
    }
    text
}

/// The keys that hold no tables.
fn singles(text: &mut String, keys: &Map<String, Value>) {
    for (name, part) in keys {
        let part = Part(part);
        let is_table = match part.shape() {
            Shape::Table(_) => true,
            Shape::Names(inner) => inner.is_some_and(|inner| !matches!(inner.shape(), Shape::Text)),
            Shape::List(inner) => matches!(inner.shape(), Shape::Table(_)),
            _ => false,
        };
        if !is_table {
            key(text, name, part);
        }
    }
}

fn key(text: &mut String, name: &str, part: Part<'_>) {
    let description = one_line(part.description());
    let _ = write!(text, "- `{name}` ({}): {description}", kind(part));
    if let Some(default) = part
        .default()
        .filter(|_| !description.contains("Without it"))
    {
        let _ = write!(text, " By itself: `{default}`.");
    }
    if part.is_for_users_alone() {
        text.push_str(" Not in a project's file.");
    }
    text.push('\n');
    if let Shape::Words(words) = part.shape() {
        for word in words {
            let _ = writeln!(
                text,
                "  - `{:?}`: {}",
                name_of(word),
                one_line(Part(word).description())
            );
        }
    }
}

fn kind(part: Part<'_>) -> String {
    match part.shape() {
        Shape::Words(_) => "one of the words below".to_owned(),
        Shape::Time => "a time".to_owned(),
        Shape::Names(Some(_)) => "a table of texts".to_owned(),
        _ => part.wanted(),
    }
}

/// A table at the top, or a list of tables.
fn table(text: &mut String, name: &str, part: Part<'_>) {
    let (heading, inner) = match part.shape() {
        Shape::Table(_) => (format!("[{name}]"), part),
        Shape::Names(Some(inner)) => (format!("[{name}.NAME]"), inner),
        Shape::List(inner) => (format!("[[{name}]]"), inner),
        _ => return,
    };
    let Shape::Table(keys) = inner.shape() else {
        return;
    };
    let _ = writeln!(text, "\n## `{heading}`\n");
    for paragraph in part.description().split("\n\n") {
        let _ = writeln!(text, "{}\n", one_line(paragraph));
    }
    singles(text, keys);
    for (key, part) in keys {
        table(text, &format!("{name}.{key}"), Part(part));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
