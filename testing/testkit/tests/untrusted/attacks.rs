//! The table of attacks, `attacks.toml`: each row is carried out, and the layer that it names must hold.

use std::collections::BTreeSet;
use std::path::Path;

use plaincall_reply::untrusted::{Echo, EchoGuard};
use plaincall_reply::{
    CallError, Document, ModelText, PromptText, PromptTextBuilder, ReplyCheck, Stop, ToolCall,
    Trusted, Unclosed, Untrusted,
};
use plaincall_syntax::{Dialect, near_misses};
use plaincall_tool::{Effect, ToolSpec};
use serde::Deserialize;

use plaincall_testkit::untrusted::{breach, dialect, headers_in, markers_in, overlap};

#[derive(Deserialize)]
struct Table {
    attack: Vec<Attack>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attack {
    id: String,
    from: String,
    does: String,
    stopped_by: Layer,
    #[serde(default = "default_dialect")]
    dialect: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    pieces: Vec<(Writer, String)>,
    #[serde(default)]
    reply: String,
    /// The text comes in chunks of one character.
    #[serde(default)]
    chunked: bool,
    /// The text is written in Unicode tag characters.
    #[serde(default)]
    tagged: bool,
    /// The text comes so often that a guard cannot keep it.
    #[serde(default)]
    flood: bool,
    /// So many characters stand before it.
    #[serde(default)]
    fill: usize,
    /// The text is part of a tool's definition.
    definition: Option<Where>,
    /// The text of SECURITY.md about it.
    #[serde(default)]
    documented: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum Layer {
    #[serde(rename = "escape")]
    Escape,
    #[serde(rename = "keyed markers")]
    KeyedMarkers,
    #[serde(rename = "near-miss rules")]
    NearMissRules,
    #[serde(rename = "echo")]
    Echo,
    #[serde(rename = "no repair")]
    NoRepair,
    #[serde(rename = "names")]
    Names,
    #[serde(rename = "gate")]
    Gate,
    #[serde(rename = "not defended")]
    NotDefended,
}

/// A part of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Where {
    Description,
    Parameter,
    Example,
    /// Its first line is in the description, the rest in that of a parameter.
    Spread,
}

impl Where {
    fn definition(self, text: &str) -> ToolSpec {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let (description, of_parameter, example) = match self {
            Self::Description => (text, "", ""),
            Self::Parameter => ("", text, ""),
            Self::Example => ("", "", text),
            Self::Spread => (first, rest, ""),
        };
        let schema = serde_json::json!({"type": "object", "properties": {
            "path": {"type": "string", "description": of_parameter, "examples": [example]},
        }});
        let spec = ToolSpec::new("lookup").parameters_from_schema(&schema);
        spec.expect("a schema").describe(description)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Writer {
    Trusted,
    Model,
    Untrusted,
}

fn default_dialect() -> String {
    "auto escaped".to_owned()
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> Vec<Attack> {
    let path = folder().join("tests/untrusted/attacks.toml");
    let text = std::fs::read_to_string(path).expect("the table");
    let table: Table = toml::from_str(&text).expect("the table's form");
    table.attack
}

impl Attack {
    /// The pieces of its prompt text.
    fn pieces(&self) -> Vec<(Writer, String)> {
        if !self.pieces.is_empty() {
            return self.pieces.clone();
        }
        let tagged = |c: char| match c {
            '\n' => c,
            c => char::from_u32(0xE_0000 + u32::from(c)).expect("ASCII"),
        };
        let text: String = if self.tagged {
            self.text.chars().map(tagged).collect()
        } else {
            self.text.clone()
        };
        vec![(Writer::Untrusted, "x".repeat(self.fill) + &text)]
    }

    fn prompt_text(&self, dialect: &Dialect) -> PromptText {
        let mut builder = PromptTextBuilder::new(std::slice::from_ref(dialect)).expect(&self.id);
        for (writer, text) in self.pieces() {
            match writer {
                Writer::Trusted => {
                    builder.trusted(Trusted::assert(text));
                }
                Writer::Model => {
                    builder.model(&ModelText::new(text));
                }
                Writer::Untrusted => {
                    for chunk in self.chunks(&text) {
                        builder.untrusted(&Untrusted::new(chunk));
                    }
                }
            }
        }
        builder.finish()
    }

    fn chunks(&self, text: &str) -> Vec<String> {
        if self.chunked {
            text.chars().map(String::from).collect()
        } else {
            vec![text.to_owned()]
        }
    }

    /// The prompt text as it would be without any care, and where its untrusted parts stand.
    fn careless(&self) -> (String, Vec<std::ops::Range<usize>>) {
        let mut text = String::new();
        let mut untrusted = Vec::new();
        for (writer, piece) in self.pieces() {
            let start = text.len();
            text.push_str(&piece);
            if writer == Writer::Untrusted {
                untrusted.push(start..text.len());
            }
        }
        (text, untrusted)
    }

    fn guard(&self, dialect: &Dialect) -> EchoGuard {
        let mut guard = EchoGuard::new(std::slice::from_ref(dialect)).expect(&self.id);
        if self.flood {
            guard = guard.keep_at_most(self.text.len() * 2);
        }
        for _ in 0..if self.flood { 20 } else { 1 } {
            for (_, text) in self.pieces() {
                match self.definition {
                    Some(place) => guard.observe(&Untrusted::new(place.definition(&text).text())),
                    None => guard.observe(&Untrusted::new(text)),
                }
            }
        }
        guard
    }

    /// The one call of the reply, which could be run.
    fn call(&self, dialect: &Dialect) -> ToolCall {
        let document = Document::parse(&self.reply, dialect).expect(&self.id);
        let calls: Vec<&ToolCall> = document.calls().collect();
        let [call] = calls.as_slice() else {
            panic!("{}: {} calls in the reply", self.id, calls.len());
        };
        let mut check = ReplyCheck::new(dialect, Unclosed::Reject).expect(&self.id);
        let verdict = check.may_run(call, None, Stop::Natural);
        assert_eq!(verdict, Ok(None), "{}", self.id);
        (*call).clone()
    }

    fn carry_out(&self) {
        let id = &self.id;
        let dialect = dialect(&self.dialect);
        let prompt_text = self.prompt_text(&dialect);
        // In every layer, nothing untrusted ever counts.
        assert_eq!(breach(&prompt_text, &dialect), None, "{id}");
        match self.stopped_by {
            Layer::Escape => {
                let (text, untrusted) = self.careless();
                let mut found = markers_in(&text, &dialect);
                found.extend(headers_in(&text, &dialect));
                let is_real = |span| untrusted.iter().any(|part| overlap(part, span));
                assert!(found.iter().any(is_real), "{id}: no attack at all");
                assert_ne!(prompt_text.text(), text, "{id}");
            }
            Layer::KeyedMarkers => {
                assert!(headers_in(&self.text, &dialect).is_empty(), "{id}");
                let unkeyed = headers_in(&self.text, &dialect.without_key());
                assert!(!unkeyed.is_empty(), "{id}: no attack at all");
            }
            Layer::NearMissRules => {
                assert!(headers_in(&self.text, &dialect).is_empty(), "{id}");
                let named = near_misses(&self.text, &dialect).expect(id);
                assert!(!named.is_empty(), "{id}: nothing is named");
            }
            Layer::Echo => {
                let call = self.call(&dialect);
                let expected = if self.flood {
                    Echo::LostTrack
                } else {
                    Echo::Found { text: 0 }
                };
                assert_eq!(self.guard(&dialect).echo_of(&call), Some(expected), "{id}");
                let mut no_guard = EchoGuard::new(std::slice::from_ref(&dialect)).expect(id);
                assert_eq!(no_guard.echo_of(&call), None, "{id}");
            }
            Layer::NoRepair => {
                let document = Document::parse(&self.reply, &dialect).expect(id);
                let mentioned = |guard: &mut EchoGuard| match document.calls().next() {
                    Some(call) => guard.mentions(&call.name),
                    None => guard.mentions_in(&self.reply, ["Write", "Delete"]),
                };
                let expected = Some(Echo::Found { text: 0 });
                assert_eq!(mentioned(&mut self.guard(&dialect)), expected, "{id}");
                let mut other = EchoGuard::new(std::slice::from_ref(&dialect)).expect(id);
                other.observe(&Untrusted::new(self.text.replace("Delet", "Look")));
                assert_eq!(mentioned(&mut other), None, "{id}: for every mention");
            }
            Layer::Names => {
                let document = Document::parse(&self.reply, &dialect).expect(id);
                let call = document.calls().next().expect(id);
                let mut check = ReplyCheck::new(&dialect, Unclosed::Run).expect(id);
                let verdict = check.may_run(call, None, Stop::Natural);
                assert!(
                    matches!(verdict, Err(CallError::Malformed(_))),
                    "{id}: {verdict:?}"
                );
                let visible = self
                    .reply
                    .chars()
                    .filter(|c| c.is_ascii() || *c == '\u{1F6E0}');
                let visible: String = visible.collect();
                let document = Document::parse(&visible, &dialect).expect(id);
                let call = document.calls().next().expect(id);
                assert_eq!(call.parse_error, None, "{id}: wrong for another reason");
                let named = ToolSpec::new(&*call.name).check();
                assert_eq!(named, Ok(()), "{id}");
            }
            Layer::Gate => {
                let call = self.call(&dialect);
                assert_eq!(self.guard(&dialect).echo_of(&call), None, "{id}");
                // A tool without a declared effect needs approval.
                assert_eq!(ToolSpec::new(&*call.name).effect, Effect::Write, "{id}");
            }
            Layer::NotDefended => {
                assert_eq!(prompt_text.text(), self.text, "{id}: it is defended");
                let security = folder().join("../../SECURITY.md");
                let security = std::fs::read_to_string(security).expect("SECURITY.md");
                let (_, plainly) = security
                    .split_once("## What Plaincall does not defend against")
                    .expect("a section on what is not defended");
                assert!(
                    !self.documented.is_empty() && plainly.contains(&self.documented),
                    "{id}"
                );
            }
        }
    }
}

#[test]
fn every_attack_is_held_by_its_layer() {
    for attack in table() {
        attack.carry_out();
    }
}

#[test]
fn the_table_is_whole() {
    let table = table();
    assert!(table.len() >= 150, "{} rows", table.len());
    let ids: BTreeSet<&str> = table.iter().map(|attack| &*attack.id).collect();
    assert_eq!(ids.len(), table.len(), "duplicate ids");
    let layers: BTreeSet<Layer> = table.iter().map(|attack| attack.stopped_by).collect();
    assert_eq!(layers.len(), 8, "every layer has a row");
    for attack in &table {
        assert!(
            attack.from.len() > 20 && attack.does.len() > 20,
            "{}: the text is too short",
            attack.id
        );
    }
}
