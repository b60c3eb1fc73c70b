//! Hand-written texts from everywhere in the repository: the examples of the specification, the transcripts,
//! what the command line is fed in its tests, and every file for people or tests that spells a call.

use std::fs;
use std::path::{Path, PathBuf};

use plaincall_syntax::{Dialect, Parser};
use serde_json::Value;

use crate::examples::{self, Operation};
use crate::merged::{Kind, merged};

/// A text, and the dialects that it is read in.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Its file, and its line where it is a part of it.
    pub place: String,
    /// The text.
    pub text: String,
    /// The dialects in which it has events.
    pub dialects: Vec<Dialect>,
}

/// Files longer than this are not transcripts, in bytes.
const LONGEST: usize = 1 << 14;

/// The examples of the specification that are read, each in its dialect.
pub fn of_the_specification() -> Vec<Capture> {
    let examples = examples::all(&["common.md", "block.md", "emoji.md", "limits.md"]);
    let read = examples.into_iter();
    let read = read.filter(|example| example.operation == Operation::Read);
    let capture = |example: examples::Example| Capture {
        place: example.place,
        text: example.input,
        dialects: vec![example.dialect],
    };
    read.map(capture).collect()
}

/// The transcripts of `examples/`, what the command line is fed in its tests, and recorded replies of a real model, each in the dialect
/// that its options name, plain and escaped.
///
/// # Panics
/// When a file cannot be read.
pub fn transcripts() -> Vec<Capture> {
    let mut captures = Vec::new();
    for file in files(&root().join("examples"), &["txt"]) {
        if !file.components().any(|part| part.as_os_str() == "expected") {
            let dialect = fs::read_to_string(file.with_extension("dialect")).unwrap_or_default();
            captures.push(capture(place(&file), &text(&file), &of_words(&dialect)));
        }
    }
    for file in files(&root().join("crates/cli/tests"), &["case"]) {
        let case = text(&file);
        let options = case.lines().next().unwrap_or_default();
        for section in case.split("\n=== stdin").skip(1) {
            let (words, fed) = section.split_once('\n').unwrap_or_default();
            let fed = fed.split("\n=== ").next().unwrap_or_default();
            if fed.contains("\\x") {
                // Bytes that are not text.
                continue;
            }
            let fed = if words.trim() == "escaped" {
                examples::unescape(&fed.replace('\n', ""))
            } else {
                fed.to_owned()
            };
            captures.push(capture(place(&file), &fed, &of_options(options)));
        }
    }
    // Replies of a real model.
    let recordings = root().join("testing/testkit/recordings");
    for file in files(&recordings, &["jsonl"]) {
        let lines = text(&file);
        for (number, line) in (1..).zip(lines.lines()) {
            let recorded: Value = serde_json::from_str(line).unwrap_or_default();
            let of = |key: &str| recorded[key].as_str().unwrap_or_default();
            let place = format!("{}:{number}", place(&file));
            captures.push(capture(place, of("reply"), &of_words(of("syntax"))));
        }
    }
    captures
}

fn capture(place: String, text: &str, dialect: &Dialect) -> Capture {
    Capture {
        place,
        text: text.to_owned(),
        dialects: vec![dialect.clone(), dialect.clone().escaped()],
    }
}

/// The dialect in the notation of `spec/README.md`.
fn of_words(text: &str) -> Dialect {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    usable(examples::dialect(&words).unwrap_or_default())
}

/// The dialect that options of the command line name.
fn of_options(options: &str) -> Dialect {
    if let Some((_, rest)) = options.split_once("--dialect ") {
        let quoted = rest
            .strip_prefix('\'')
            .and_then(|rest| rest.split('\'').next());
        return of_words(quoted.or(rest.split(' ').next()).unwrap_or_default());
    }
    let mut words = options.split_whitespace();
    let mut dialect = Dialect::auto();
    while let Some(word) = words.next() {
        let mut next = || words.next().unwrap_or_default();
        dialect = match word {
            "--syntax" => match next() {
                "block" => Dialect::block(),
                "emoji" => Dialect::emoji(),
                _ => dialect,
            },
            "--start-prefix" => dialect.start(next()),
            "--end-prefix" => dialect.end(next()),
            "--arg-prefix" => dialect.arg(next()),
            "--markers" => dialect.markers_anywhere(),
            "--key" => dialect.keyed(next()),
            "--escaped" => dialect.escaped(),
            "--self-closing" => dialect.self_closing(),
            "--strict" => dialect.strict(),
            "--reasoning" => dialect.reasoning(next(), next()),
            "--in-reasoning" => dialect.in_reasoning(),
            _ => dialect,
        };
    }
    usable(dialect)
}

fn usable(dialect: Dialect) -> Dialect {
    match Parser::new(&dialect) {
        Ok(_) => dialect,
        // The command is one that is refused.
        Err(_) => Dialect::auto(),
    }
}

/// Every fence of the documents, every string of the records and other text of the tests in which a reader of any
/// dialect finds more than text.
///
/// # Panics
/// When a file cannot be read.
pub fn others() -> Vec<Capture> {
    let mut captures = Vec::new();
    let mut add = |place: String, text: &str| {
        let dialects = [
            Dialect::auto(),
            Dialect::block().escaped(),
            Dialect::emoji().escaped(),
            Dialect::block().markers_anywhere(),
        ];
        let has_events = |dialect: &Dialect| {
            let merged = merged(text, dialect).unwrap_or_default();
            let mut kinds = merged.iter().map(|event| &event.kind);
            kinds.any(|kind| !matches!(kind, Kind::Text(_)))
        };
        let dialects: Vec<_> = dialects.into_iter().filter(has_events).collect();
        if !dialects.is_empty() && text.len() <= LONGEST {
            captures.push(Capture {
                place,
                text: text.to_owned(),
                dialects,
            });
        }
    };
    for folder in ["spec", "docs", "examples", "crates"] {
        for file in files(&root().join(folder), &["md"]) {
            let place = place(&file);
            for fence in examples::fences(&text(&file)) {
                add(format!("{place}:{}", fence.line), &fence.content);
            }
        }
        for file in files(&root().join(folder), &["txt", "case", "term", "toml"]) {
            add(place(&file), &text(&file));
        }
        for file in files(&root().join(folder), &["json", "jsonl"]) {
            let place = place(&file);
            let all = text(&file);
            let values = serde_json::Deserializer::from_str(&all).into_iter::<Value>();
            // A text that is not JSON, on purpose, has no strings.
            for value in values.map_while(Result::ok) {
                each_string(&value, &mut |text| add(place.clone(), text));
            }
        }
    }
    captures
}

fn each_string(value: &Value, add: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => add(text),
        Value::Array(items) => items.iter().for_each(|item| each_string(item, add)),
        Value::Object(fields) => fields.values().for_each(|field| each_string(field, add)),
        _ => {}
    }
}

fn root() -> PathBuf {
    examples::folder().join("..")
}

/// The files below a folder that end so, in order.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if path
            .extension()
            .is_some_and(|ending| endings.iter().any(|one| ending == *one))
        {
            found.push(path);
        }
    }
    found
}

fn text(file: &Path) -> String {
    let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn place(file: &Path) -> String {
    let from = file.strip_prefix(root()).unwrap_or(file);
    from.display().to_string()
}
