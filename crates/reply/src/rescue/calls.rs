//! The calls of a text in a known format.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::candidates::INFOS;
use crate::candidates::json_scan::{JsonScan, Scanned};
use crate::candidates::member::Member;
use crate::rescue::RescuedCall;
use crate::rescue::formats::{FORMATS, NOT_STRING, STRING, Step, Tagged};
use crate::rescue::literal::Literals;
use plaincall_names::{Format, pointers::escape};
use plaincall_tool::{
    Arguments, ToolLookup, ToolSpec,
    bind::ReplySteps,
    flatten::{flatten, flatten_call},
    json_text,
};

/// A call as it is written.
struct Written<'t> {
    tool: &'t ToolSpec,
    /// Its arguments as pointers and texts.
    pairs: Vec<(String, String)>,
    /// Those of its parameters that it calls strings.
    strings: Map<String, Value>,
    /// Those that are null.
    nulls: Map<String, Value>,
}

impl<'t> Written<'t> {
    fn new(tool: &'t ToolSpec, pairs: Vec<(String, String)>) -> Self {
        Self {
            tool,
            pairs,
            strings: Map::new(),
            nulls: Map::new(),
        }
    }

    fn add(&mut self, key: &str, text: String) {
        self.pairs.push((escape(key).into_owned(), text));
    }

    /// Adds a member that is null. `None` if it is there already.
    fn add_null(&mut self, key: String) -> Option<()> {
        self.nulls.insert(key, Value::Null).is_none().then_some(())
    }
}

/// Returns the calls that a text consists of in one of these formats, if all of them are valid.
pub(super) fn calls_in(
    text: &str,
    formats: &[Format],
    tools: &impl ToolLookup,
    left: &mut ReplySteps,
) -> Option<Vec<RescuedCall>> {
    let mut known = FORMATS
        .iter()
        .filter(|(format, _)| formats.contains(format));
    let calls = known.find_map(|(_, steps)| {
        let mut reader = Reader {
            rest: Literals(text),
            tools,
            calls: Vec::new(),
        };
        reader.read(steps)?;
        let is_whole = reader.rest.0.trim().is_empty() && !reader.calls.is_empty();
        is_whole.then_some(reader.calls)
    });
    calls?.iter().map(|written| bound(written, left)).collect()
}

/// Reads the calls of a whole text.
struct Reader<'t, 's, T> {
    rest: Literals<'s>,
    tools: &'t T,
    calls: Vec<Written<'t>>,
}

impl<'s, T: ToolLookup> Reader<'_, 's, T> {
    /// Reads these steps. `None` if the text does not have them, or a call is not valid.
    fn read(&mut self, steps: &[Step]) -> Option<()> {
        for step in steps {
            match *step {
                Step::Text(text) => self.rest.skip(text).then_some(())?,
                Step::Maybe(text) => {
                    self.rest.skip(text);
                }
                Step::Many(steps) => {
                    let mut count = 0;
                    let mut last = (self.rest, self.calls.len());
                    while self.read(steps).is_some() {
                        last = (self.rest, self.calls.len());
                        count += 1;
                    }
                    (count > 0).then_some(())?;
                    self.rest = last.0;
                    self.calls.truncate(last.1);
                }
                Step::Name => self.name()?,
                Step::Id => {
                    self.rest.name();
                }
                Step::Arguments => {
                    let arguments = object(self.json()?)?;
                    self.add(&arguments)?;
                }
                Step::Calls => match json_text::parse(self.json()?).ok()? {
                    Value::Array(items) => self.add_all(items)?,
                    item => self.add_all(vec![item])?,
                },
                Step::CallList => {
                    let mut members = object(self.json()?)?;
                    let items = members
                        .remove("tool_calls")
                        .filter(|_| members.is_empty())?;
                    self.add_all(items.as_array()?.clone())?;
                }
                Step::Tagged(tags) => self.tagged(tags)?,
                Step::Loose => self.loose()?,
                Step::Python => self.python()?,
                Step::Block(steps) => self.block(steps)?,
            }
        }
        Some(())
    }

    fn name(&mut self) -> Option<()> {
        let name = self.rest.name()?;
        let bare = name.strip_prefix("functions.").unwrap_or(name);
        let numbered = bare.rsplit_once(':');
        let numbered = numbered.filter(|(_, id)| id.bytes().all(|byte| byte.is_ascii_digit()));
        let bare = numbered.map_or(bare, |(bare, _)| bare);
        let (_, tool) = self.tools.find(name).or_else(|| self.tools.find(bare))?;
        self.calls.push(Written::new(tool, Vec::new()));
        Some(())
    }

    /// Reads JSON: an object or a list.
    fn json(&mut self) -> Option<&'s str> {
        let text = self.rest.0.trim_start();
        text.starts_with(['{', '[']).then_some(())?;
        let mut scan = JsonScan::default();
        let mut chars = text.char_indices();
        let end = chars.find_map(|(at, c)| match scan.take(c) {
            Scanned::Complete => Some(Some(at + c.len_utf8())),
            Scanned::Invalid => Some(None),
            _ => None,
        });
        let (json, rest) = text.split_at(end??);
        self.rest.0 = rest;
        Some(json)
    }

    /// Sets the arguments of the last call.
    fn add(&mut self, arguments: &Map<String, Value>) -> Option<()> {
        let call = self.calls.last_mut()?;
        call.pairs = flatten_call(arguments, call.tool).ok()?;
        Some(())
    }

    fn add_all(&mut self, items: Vec<Value>) -> Option<()> {
        for item in items {
            self.calls.push(from_json(item, self.tools)?);
        }
        Some(())
    }

    fn tagged(&mut self, tags: &Tagged) -> Option<()> {
        let [begin, end] = tags.name;
        self.rest.skip(begin).then_some(())?;
        let quote = self
            .rest
            .0
            .chars()
            .next()
            .filter(|c| matches!(c, '"' | '\''));
        let quote = quote.map(String::from).unwrap_or_default();
        self.rest.skip(&quote);
        self.name()?;
        (self.rest.skip(&quote) && self.rest.skip(end)).then_some(())?;
        if self.rest.0.trim_start().starts_with('{') {
            self.read(&[Step::Arguments])?;
        }
        while !self.rest.skip(tags.end) {
            self.rest.skip(tags.key[0]).then_some(())?;
            let (key, rest) = self.rest.0.split_once(tags.key[1])?;
            let key = key.trim_matches(['"', '\'']);
            let is_key = !key.contains(['<', '>', '\n']);
            self.rest.0 = rest;
            let mut begins = tags.begins.iter();
            let begin = *begins.find(|begin| begin.is_empty() || self.rest.skip(begin))?;
            let (value, rest) = self.rest.0.split_once(tags.value_end)?;
            // The value quotes a call, or its end.
            let own = [tags.name[0], tags.key[0], tags.end];
            let is_quotation = own.iter().any(|tag| !tag.is_empty() && value.contains(tag));
            (is_key && !is_quotation).then_some(())?;
            self.rest.0 = rest;
            let text = without_edges(value).to_owned();
            let call = self.calls.last_mut()?;
            match begin {
                NOT_STRING if text.trim() == "null" => call.add_null(key.to_owned())?,
                STRING => {
                    call.strings.insert(key.to_owned(), text.clone().into());
                    call.add(key, text);
                }
                _ => call.add(key, text),
            }
        }
        Some(())
    }

    /// Reads arguments whose texts count as those of parameters.
    fn loose(&mut self) -> Option<()> {
        let members = self
            .rest
            .skip("{")
            .then(|| self.rest.members(":", "}", 0))??;
        let call = self.calls.last_mut()?;
        for (key, value) in members {
            match value {
                Value::String(text) => call.add(&key, text),
                Value::Null => call.add_null(key)?,
                value => call.add(&key, value.to_string()),
            }
        }
        Some(())
    }

    fn python(&mut self) -> Option<()> {
        let is_list = self.rest.skip("[");
        loop {
            self.name()?;
            let arguments = self
                .rest
                .skip("(")
                .then(|| self.rest.members("=", ")", 0))??;
            self.add(&arguments)?;
            if !is_list || self.rest.skip("]") {
                return Some(());
            }
            self.rest.skip(",").then_some(())?;
        }
    }

    fn block(&mut self, steps: &[Step]) -> Option<()> {
        let (line, rest) = self.rest.0.split_once('\n')?;
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        let info = info.trim();
        (length >= 3 && (INFOS.contains(&info) || info == "tool_code")).then_some(())?;
        self.rest.0 = rest;
        self.read(steps)?;
        let close = self.rest.0.trim_end().trim_end_matches(mark);
        let is_line = close.trim_end_matches(BLANKS).ends_with('\n') && close.trim().is_empty();
        let is_closed = is_line && self.rest.0.trim().len() >= length;
        self.rest.0 = "";
        is_closed.then_some(())
    }
}

/// White space that does not end a line.
const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// Removes one line end at each edge.
fn without_edges(text: &str) -> &str {
    let begun = text.strip_prefix("\r\n").or(text.strip_prefix('\n'));
    let text = begun.unwrap_or(text);
    let ended = text.strip_suffix("\r\n").or(text.strip_suffix('\n'));
    ended.unwrap_or(text)
}

fn object(json: &str) -> Option<Map<String, Value>> {
    match json_text::parse(json).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Returns the call in an object with the name of a tool and its arguments.
fn from_json(value: Value, tools: &impl ToolLookup) -> Option<Written<'_>> {
    let Value::Object(members) = value else {
        return None;
    };
    let (mut name, mut arguments, mut function) = (None, None, None);
    for (key, value) in members {
        let place = match Member::of(&key)? {
            // OpenAI's form of a call.
            Member::Name if key == "function" && value.is_object() => {
                function = Some(value);
                continue;
            }
            Member::Name => &mut name,
            Member::Arguments => &mut arguments,
            Member::Calls => return None,
            Member::Other => continue,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    if let Some(function) = function {
        // Beside it, nothing may name another tool or other arguments.
        return (name.is_none() && arguments.is_none()).then(|| from_json(function, tools))?;
    }
    let (_, tool) = tools.find(name?.as_str()?)?;
    let arguments = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(Value::String(text)) => object(&text)?,
        Some(_) => return None,
    };
    Some(Written::new(tool, flatten_call(&arguments, tool).ok()?))
}

fn bound(written: &Written<'_>, steps: &mut ReplySteps) -> Option<RescuedCall> {
    let tool = written.tool;
    let is_twice = |(key, _): &(String, String)| written.nulls.contains_key(key);
    if written.pairs.iter().any(is_twice) {
        return None;
    }
    let nulls = match &written.nulls {
        none if none.is_empty() => Vec::new(),
        // Those that are absent are not among them.
        nulls => flatten(nulls, Some(tool)).ok()?,
    };
    let pairs = written.pairs.iter().chain(&nulls);
    let pairs = pairs.map(|(pointer, text)| (&**pointer, &**text));
    let arguments = Arguments::from_pairs_for(tool, pairs).ok()?;
    let mut arguments = steps.bind_arguments(tool, &arguments).ok()?;
    let values = (!written.strings.is_empty()).then(|| arguments.to_value());
    if let Some(Value::Object(mut values)) = values {
        let reader = tool.schema().reader();
        let root = reader.root();
        let is_other = |key: &str, text: &Value| {
            values.get(key) != Some(text) && reader.allows(&reader.member(&root, key), text)
        };
        let mut strings = written.strings.clone();
        strings.retain(|key, text| is_other(key, text));
        if !strings.is_empty() {
            values.extend(strings);
            arguments = steps.bind_object(tool, &values).ok()?;
        }
    }
    Some(RescuedCall {
        name: tool.name.clone(),
        arguments: Arc::new(arguments),
    })
}
