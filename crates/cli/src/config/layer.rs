//! One layer of the configuration: a file, the environment or the command line, checked against the schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use plaincall_call::did_you_mean;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::schema::{Part, Shape, name_of};
use crate::serve::quantity;
use crate::text::source::LineIndex;

/// How many characters of a text a message shows.
const SHOWN: usize = 40;

/// What one layer says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    /// What it says, in the form of the schema. Paths are whole ones.
    pub(crate) values: Map<String, Value>,
    /// Where each of its keys stands.
    pub(crate) places: BTreeMap<String, Place>,
    /// All paths in it.
    pub(crate) paths: Vec<PathBuf>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The key begins here, in bytes, and stands in this line.
    File {
        span: Range<usize>,
        line: usize,
    },
    Variable(String),
    Option(&'static str),
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

/// Who has written a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    User,
    Project,
}

/// What paths are relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths<'p> {
    /// The folder of the file, or where the command was started.
    pub(crate) folder: &'p Path,
    /// What `~` stands for.
    pub(crate) home: Option<&'p Path>,
}

impl Paths<'_> {
    fn whole(self, path: &str) -> PathBuf {
        let at_home = match path {
            "~" => Some(""),
            _ => path.strip_prefix("~/"),
        };
        match at_home.zip(self.home) {
            Some((rest, home)) => home.join(rest),
            None => self.folder.join(path),
        }
    }
}

/// The place of a key in a table, as it is written in TOML.
pub(crate) fn below(path: &str, key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let key: Cow<'_, str> = if !key.is_empty() && key.chars().all(is_plain) {
        key.into()
    } else {
        format!("{key:?}").into()
    };
    if path.is_empty() {
        key.into_owned()
    } else {
        format!("{path}.{key}")
    }
}

impl Layer {
    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it, in the order in which it stands there.
    pub(crate) fn read(
        text: &str,
        schema: &Value,
        author: Author,
        paths: Paths<'_>,
    ) -> Result<Self, Vec<Mistake>> {
        let (document, errors) = DeTable::parse_recoverable(text);
        let mistakes: Vec<Mistake> = errors
            .iter()
            .map(|error| {
                let span = error.span().unwrap_or_default();
                let message = match (error.message(), text.get(span.clone())) {
                    ("duplicate key", Some(key)) => {
                        format!("`{key}` stands here for the second time")
                    }
                    (message, _) => message.to_owned(),
                };
                Mistake { span, message }
            })
            .collect();
        // Behind a mistake in the form, the rest may mean something else than it seems to.
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut reader = Reader {
            lines: LineIndex::new(text.as_bytes()),
            author,
            paths,
            layer: Self::default(),
            mistakes,
        };
        let span = 0..0;
        let values = reader.table("", Part(schema), document.get_ref(), &span);
        let Reader {
            mut layer,
            mut mistakes,
            ..
        } = reader;
        if mistakes.is_empty() {
            layer.values = values;
            Ok(layer)
        } else {
            mistakes.sort_by_key(|mistake| mistake.span.start);
            Err(mistakes)
        }
    }

    /// Sets what an option or a variable says, below at most one table.
    pub(crate) fn set(&mut self, keys: &[&str], value: Value, place: Place) {
        let path = keys
            .iter()
            .fold(String::new(), |path, key| below(&path, key));
        self.places.insert(path, place);
        let (Some((last, tables)), mut values) = (keys.split_last(), &mut self.values) else {
            return;
        };
        for table in tables {
            let table = values
                .entry((*table).to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = table else {
                return;
            };
            values = inner;
        }
        values.insert((*last).to_owned(), value);
    }

    /// Where the key stands in the file, or the nearest table around it that does.
    pub(crate) fn span(&self, path: &str) -> Range<usize> {
        let mut path = path;
        loop {
            if let Some(Place::File { span, .. }) = self.places.get(path) {
                return span.clone();
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = path.get(..end).unwrap_or_default(),
                None => return 0..0,
            }
        }
    }
}

/// What a text of the environment says as a value of this kind.
///
/// # Errors
/// What it must be.
pub(crate) fn from_text(part: Part<'_>, text: &str, paths: Paths<'_>) -> Result<Value, String> {
    let value = match part.shape() {
        Shape::Path => Some(path_value(&paths.whole(text))),
        Shape::Text => Some(text.into()),
        Shape::Words(words) => {
            let is_one = words.iter().any(|word| name_of(word) == text);
            is_one.then(|| text.into())
        }
        Shape::Time => quantity::time(text).ok().map(|_| text.into()),
        Shape::Count(least) => {
            let number = text.parse::<u32>().ok();
            number
                .filter(|number| u64::from(*number) >= least)
                .map(Value::from)
        }
        _ => None,
    };
    value.ok_or_else(|| part.wanted())
}

/// A path that is no UTF-8 cannot stand in a configuration file, and is never made of one.
fn path_value(path: &Path) -> Value {
    path.to_string_lossy().into_owned().into()
}

struct Reader<'p> {
    lines: LineIndex,
    author: Author,
    paths: Paths<'p>,
    layer: Layer,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn wrong(&mut self, span: Range<usize>, message: impl Into<String>) {
        let message = message.into();
        self.mistakes.push(Mistake { span, message });
    }

    fn note(&mut self, path: &str, span: Range<usize>) {
        let line = self.lines.line(span.start);
        let place = Place::File { span, line };
        self.layer.places.insert(path.to_owned(), place);
    }

    fn table(
        &mut self,
        path: &str,
        part: Part<'_>,
        table: &DeTable<'_>,
        span: &Range<usize>,
    ) -> Map<String, Value> {
        let mut values = Map::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = below(path, name);
            let inner = match part.shape() {
                Shape::Table(keys) => {
                    let Some(inner) = keys.get(name) else {
                        let message = unknown(name, keys.keys().map(String::as_str));
                        self.wrong(key.span(), message);
                        continue;
                    };
                    Part(inner)
                }
                Shape::Names(Some(inner)) => inner,
                // What stands in it is passed on as it is.
                _ => {
                    self.note(&path, key.span());
                    values.insert(name.to_owned(), json(value.get_ref()));
                    continue;
                }
            };
            if inner.is_for_users_alone() && self.author == Author::Project {
                let message = format!(
                    "a project's file may not say `{name}`, since it comes with the project and not from you: it belongs into your own file (`plaincall config` says which)"
                );
                self.wrong(key.span(), message);
                continue;
            }
            self.note(&path, key.span());
            if let Some(value) = self.value(&path, name, inner, value) {
                values.insert(name.to_owned(), value);
            }
        }
        for key in part.required() {
            if !table.keys().any(|known| known.get_ref() == key) {
                self.wrong(span.clone(), format!("`{key}` is missing here"));
            }
        }
        values
    }

    fn value(
        &mut self,
        path: &str,
        key: &str,
        part: Part<'_>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Value> {
        let found = match (part.shape(), value.get_ref()) {
            (Shape::Table(_) | Shape::Names(_), DeValue::Table(table)) => {
                Some(Value::Object(self.table(path, part, table, &value.span())))
            }
            (Shape::List(inner), DeValue::Array(list)) if fits(part, list.len()) => {
                let before = self.mistakes.len();
                let mut values = Vec::new();
                for (index, element) in list.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.note(&path, element.span());
                    values.extend(self.value(&path, key, inner, element));
                }
                return (self.mistakes.len() == before).then_some(Value::Array(values));
            }
            (Shape::Words(words), DeValue::String(text)) => {
                if !words.iter().any(|word| name_of(word) == text) {
                    let names = words.iter().map(name_of);
                    let near = did_you_mean(text, names);
                    let near = match text.to_ascii_lowercase().as_str() {
                        "ollama" | "llama.cpp" | "llamacpp" | "lmstudio" | "vllm" | "gemini"
                            if key == "kind" =>
                        {
                            format!("; `openai` is what {text} speaks")
                        }
                        _ => near,
                    };
                    let message =
                        format!("`{key}` cannot be `{text}`; write {}{near}", part.wanted());
                    self.wrong(value.span(), message);
                    return None;
                }
                Some(text.as_ref().into())
            }
            (Shape::Choice(choices), _) => choices.iter().map(Part).find_map(|choice| {
                let before = self.mistakes.len();
                let found = self.value(path, key, choice, value);
                self.mistakes.truncate(before);
                found
            }),
            (Shape::Time, DeValue::String(text)) => {
                quantity::time(text).ok().map(|_| text.as_ref().into())
            }
            (Shape::Time, DeValue::Integer(_)) => {
                let seconds = whole(value.get_ref());
                seconds
                    .filter(|seconds| quantity::time(&seconds.to_string()).is_ok())
                    .map(Value::from)
            }
            (Shape::Path, DeValue::String(text)) if !text.is_empty() => {
                let whole = self.paths.whole(text);
                if self.author == Author::Project && !lies_in(&whole, self.paths.folder) {
                    let message = format!(
                        "`{text}` lies outside the project, and a project's file reads nothing there; put it into your own file"
                    );
                    self.wrong(value.span(), message);
                    return None;
                }
                self.layer.paths.push(whole.clone());
                Some(path_value(&whole))
            }
            (Shape::Text, DeValue::String(text)) => Some(text.as_ref().into()),
            (Shape::Count(least), DeValue::Integer(_)) => {
                let count = whole(value.get_ref());
                count
                    .filter(|count| *count >= least && u32::try_from(*count).is_ok())
                    .map(Value::from)
            }
            (Shape::Number(least, most), DeValue::Integer(_) | DeValue::Float(_)) => {
                let number = json(value.get_ref());
                number
                    .as_f64()
                    .is_some_and(|number| (least..=most).contains(&number))
                    .then_some(number)
            }
            (Shape::Truth, DeValue::Boolean(truth)) => Some((*truth).into()),
            (Shape::No, DeValue::Boolean(false)) => Some(false.into()),
            _ => None,
        };
        if found.is_none() {
            let message = format!(
                "`{key}` is {}; it must be {}",
                kind(value.get_ref()),
                part.wanted()
            );
            self.wrong(value.span(), message);
        }
        found
    }
}

/// Whether a path lies in a folder, as it is written.
fn lies_in(path: &Path, folder: &Path) -> bool {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found.starts_with(folder)
}

/// Whether a list may have so many elements.
fn fits(part: Part<'_>, count: usize) -> bool {
    let limit = |key| part.0.get(key).and_then(Value::as_u64);
    let count = count as u64;
    limit("minItems").is_none_or(|least| count >= least)
        && limit("maxItems").is_none_or(|most| count <= most)
}

/// There is no such key; which one may be meant.
pub(crate) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    // What other programs have in the table of a model.
    if known.clone().any(|known| known == "key_env") {
        match name {
            "api_key" | "apiKey" | "key" | "token" => {
                return format!(
                    "there is no key `{name}`, since a configuration holds no secrets; write `key_env = \"VARIABLE\"` or `key_file = \"FILE\"`"
                );
            }
            "num_ctx" | "context" | "context_length" => {
                return format!(
                    "there is no key `{name}`: how much the model can read is set at its server, and told by `context` in `[limits]`; docs/local-models.md says how"
                );
            }
            _ => {}
        }
    }
    let near = did_you_mean(name, known.clone());
    if !near.is_empty() {
        return format!("there is no key `{name}`{near}");
    }
    let known: Vec<&str> = known.collect();
    format!(
        "there is no key `{name}`; there may be {}",
        known.join(", ")
    )
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A value as JSON.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => {
            let (text, radix) = (number.as_str(), number.radix());
            match (
                i64::from_str_radix(text, radix),
                u64::from_str_radix(text, radix),
            ) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => text.into(),
            }
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse::<f64>().ok();
            number
                .and_then(serde_json::Number::from_f64)
                .map_or(Value::Null, Value::Number)
        }
        DeValue::Boolean(truth) => (*truth).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(list) => list.iter().map(|element| json(element.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())))
                .collect(),
        ),
    }
}

/// What a value is, in words.
fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("the text `{}…`", text.get(..end).unwrap_or_default()),
            None => format!("the text `{text}`"),
        },
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => format!("the time {time}"),
        DeValue::Array(list) if list.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { line, .. } => write!(formatter, "line {line}"),
            Self::Variable(name) => write!(formatter, "the variable {name}"),
            Self::Option(name) => write!(formatter, "the option {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::{Author, Layer, Paths, Place};
    use crate::config::schema::schema;

    /// Files of 1 MiB, each with as many of one thing as it has room for. To count the lines anew for each of them
    /// took minutes.
    #[test]
    fn a_large_file_is_read_in_linear_time() {
        let line = |kind: usize, number: usize, text: &mut String| match kind {
            0 => writeln!(
                text,
                "[models.m{number}]\nurl = \"http://h/\"\nmodel = \"x\""
            ),
            1 => writeln!(
                text,
                "[[rules]]\ntools = [\"t{number}\"]\nverdict = \"deny\""
            ),
            2 if number == 0 => writeln!(
                text,
                "[mcp.servers.a]\ncommand = \"x\"\n[mcp.servers.a.env]"
            ),
            2 => writeln!(text, "K{number} = \"v\""),
            3 if number == 0 => writeln!(text, "[mcp.servers.a]\ncommand = \"x\"\nargs = ["),
            3 => writeln!(text, "\"v{number}\","),
            _ => writeln!(text, "wrong{number} = 1"),
        };
        for kind in 0..5 {
            let mut text = String::new();
            let mut count = 0;
            while text.len() < 1 << 20 {
                line(kind, count, &mut text).unwrap();
                count += 1;
            }
            text += if kind == 3 { "]\n" } else { "" };
            let paths = Paths {
                folder: Path::new("/"),
                home: None,
            };
            let begun = Instant::now();
            let read = Layer::read(&text, &schema(), Author::User, paths);
            let took = begun.elapsed();
            match read {
                Ok(layer) => {
                    let last = layer.places.values().filter_map(|place| match place {
                        Place::File { line, .. } => Some(*line),
                        _ => None,
                    });
                    assert!(last.max() > Some(20_000), "{kind}");
                }
                Err(mistakes) => assert_eq!((kind, mistakes.len()), (4, count)),
            }
            assert!(took < Duration::from_secs(20), "{kind}: {took:?}");
        }
    }
}
