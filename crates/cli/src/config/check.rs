//! What a layer says that has the right form and still cannot be meant.

use plaincall_syntax::Dialect;

use crate::config::contents::{
    Contents, McpServer, ModelEntry, Reasoning, RuleEntry, Syntax, Verdict,
};
use crate::config::layer::below;

/// How long a pattern may be, in bytes.
const LONGEST_PATTERN: usize = 1 << 10;

/// What cannot be meant: the place of the key, and what to do about it.
pub(super) type Problem = (String, String);

/// What in a project's file reaches for the environment of whoever uses it.
pub(super) fn reaching(contents: &Contents) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, server) in &contents.mcp.servers {
        for (table, values) in [("env", &server.env), ("headers", &server.headers)] {
            for (key, _) in values.iter().filter(|(_, value)| value.contains("${")) {
                let path = below(&below("mcp.servers", name), table);
                let message = "a project's file cannot hand on variables of your environment, since keys may be among them; put this server into your own file";
                problems.push((below(&path, key), message.to_owned()));
            }
        }
    }
    problems
}

/// All that cannot be meant.
pub(super) fn problems(contents: &Contents) -> Vec<Problem> {
    let mut problems = Vec::new();
    if contents.system.is_some() && contents.system_file.is_some() {
        let message = "`system` and `system_file` say the same in two ways; leave one out";
        problems.push(("system_file".to_owned(), message.to_owned()));
    }
    for (name, entry) in &contents.models {
        let path = below("models", name);
        if let Some((key, message)) = model(name, entry) {
            problems.push((below(&path, key), message));
        }
    }
    for (name, server) in &contents.mcp.servers {
        if let Some((key, message)) = server_problem(server) {
            problems.push((below(&below("mcp.servers", name), key), message));
        }
    }
    for (index, entry) in contents.rules.iter().enumerate() {
        if let Some((key, message)) = rule(entry) {
            problems.push((below(&format!("rules[{index}]"), key), message));
        }
    }
    problems
}

fn model(name: &str, entry: &ModelEntry) -> Option<(&'static str, String)> {
    let is_scheme = ["openai", "anthropic", "ollama", "replay"].contains(&name);
    if is_scheme || name.contains(':') {
        return Some((
            "url",
            format!(
                "a model cannot be called `{name}`: `openai:`, `anthropic:`, `ollama:` and `replay:` name models without a table; choose a name without a colon"
            ),
        ));
    }
    match (&entry.url, &entry.replay) {
        (None, None) => {
            let message = "this model has no `url`; it is the address of its server, such as \"http://localhost:11434/v1\"";
            return Some(("url", message.to_owned()));
        }
        (Some(_), Some(_)) => {
            let message =
                "a model has either a `url` or recorded replies (`replay`); leave one out";
            return Some(("replay", message.to_owned()));
        }
        (Some(url), None) if !(url.starts_with("http://") || url.starts_with("https://")) => {
            let message = format!(
                "`{url}` is no address of a server: it begins with `http://` or `https://`"
            );
            return Some(("url", message));
        }
        _ => {}
    }
    if entry.key_env.is_some() && entry.key_file.is_some() {
        let message = "the key comes from one place: `key_env` or `key_file`; leave one out";
        return Some(("key_file", message.to_owned()));
    }
    let markers = [
        ("start_prefix", &entry.start_prefix),
        ("end_prefix", &entry.end_prefix),
        ("arg_prefix", &entry.arg_prefix),
    ];
    let set = markers.iter().find(|(_, marker)| marker.is_some());
    if let (Syntax::Emoji, Some((key, _))) = (entry.syntax, set) {
        return Some((
            key,
            format!(
                "`{key}` is a marker of the block syntax, and this model is taught the emoji syntax; leave one out"
            ),
        ));
    }
    if entry.in_reasoning && entry.reasoning == Reasoning::None {
        let message = "a reply cannot begin in reasoning if there is none: `reasoning` is false";
        return Some(("in_reasoning", message.to_owned()));
    }
    let refused = dialect(entry).check().err();
    refused.map(|error| ("syntax", format!("these markers cannot work: {error}")))
}

/// The dialect that a model is taught. Its prompt teaches the escape too.
pub(crate) fn dialect(entry: &ModelEntry) -> Dialect {
    let mut dialect = match entry.syntax {
        Syntax::Block => Dialect::block(),
        Syntax::Emoji => Dialect::emoji(),
    };
    if let Some(marker) = &entry.start_prefix {
        dialect = dialect.start(marker);
    }
    if let Some(marker) = &entry.end_prefix {
        dialect = dialect.end(marker);
    }
    if let Some(marker) = &entry.arg_prefix {
        dialect = dialect.arg(marker);
    }
    if let Reasoning::Between(open, close) = &entry.reasoning {
        dialect = dialect.leading_reasoning(open, close);
        if entry.in_reasoning {
            dialect = dialect.in_reasoning();
        }
    }
    dialect.escaped()
}

fn server_problem(server: &McpServer) -> Option<(&'static str, String)> {
    match (&server.command, &server.url) {
        (None, None) => {
            let message = "this server has neither a `command` that starts it nor a `url`";
            Some(("command", message.to_owned()))
        }
        (Some(_), Some(_)) => {
            let message =
                "a server has either a `command` that starts it or a `url`; leave one out";
            Some(("url", message.to_owned()))
        }
        (Some(_), None) if !server.headers.is_empty() => {
            let message = "`headers` are sent to a server that has a `url`, and this one is started by a `command`";
            Some(("headers", message.to_owned()))
        }
        (None, Some(_))
            if !(server.args.is_empty() && server.env.is_empty() && server.cwd.is_none()) =>
        {
            let message = "`args`, `env` and `cwd` are for a server that is started by a `command`, and this one has a `url`";
            Some(("url", message.to_owned()))
        }
        _ => None,
    }
}

fn rule(rule: &RuleEntry) -> Option<(&'static str, String)> {
    let patterns = rule.tools.texts().iter().chain(rule.arguments.values());
    if patterns
        .into_iter()
        .any(|pattern| pattern.len() > LONGEST_PATTERN)
    {
        return Some((
            "tools",
            format!("a pattern has at most {LONGEST_PATTERN} bytes"),
        ));
    }
    match (rule.verdict, &rule.reason) {
        (Verdict::Deny, None) => {
            let message = "a rule that denies needs a `reason`, in words for the model: it reads why, and what to do instead";
            Some(("verdict", message.to_owned()))
        }
        (Verdict::Allow | Verdict::Ask, Some(_)) => {
            let message = "only a rule that denies has a `reason`; nobody reads this one";
            Some(("reason", message.to_owned()))
        }
        _ => {
            let is_empty = |pointer: &String| {
                let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
                pointer.split('/').any(str::is_empty)
            };
            let pointer = rule.arguments.keys().find(|pointer| is_empty(pointer))?;
            let message = format!("`{pointer}` leads to no argument: it has an empty part");
            Some(("arguments", message))
        }
    }
}
