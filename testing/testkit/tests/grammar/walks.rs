//! Every text that an engine accepts parses and binds without a problem, except for what the grammar does not enforce.

use plaincall_call::grammar::{Grammar, GrammarOptions, grammar};
use plaincall_call::{CallError, Limits};
use plaincall_call::{
    Parameter, ParameterKind, ReplyCheck, ReplyItem, ReplyReader, Stop, ToolSet, ToolSpec, Unclosed,
};
use plaincall_syntax::{Dialect, EventKind, MarkerUse, NearMisses, parse};
use plaincall_testkit::cases::cases;
use plaincall_testkit::schema_calls::{self, Choices};

use super::engine::Engine;
use super::gbnf::Gbnf;
use super::random::Random;

const WALKS: usize = 4;
/// How many other texts are made from one.
const ALTERED: usize = 4;

/// A random grammar, and what it was made from.
pub(super) struct Case {
    pub(super) seed: u64,
    dialect_name: &'static str,
    option_name: &'static str,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) dialect: Dialect,
    pub(super) grammar: Grammar,
}

impl Case {
    /// Returns `None` if the random schema is unusable.
    pub(super) fn new(seed: u64, random: &mut Random) -> Option<Self> {
        let tools = tools(random)?;
        let (dialect_name, dialect) = random.one(&dialects()).clone();
        let (option_name, options) = random.one(&options()).clone();
        let grammar = grammar(&tools, &dialect, &options).ok()?;
        Some(Self {
            seed,
            dialect_name,
            option_name,
            tools,
            dialect,
            grammar,
        })
    }

    pub(super) fn check(&self, text: &str, tally: &mut Tally) {
        let Self {
            seed,
            dialect_name,
            option_name,
            tools,
            dialect,
            grammar,
            ..
        } = self;
        let (dialect_name, option_name) = (*dialect_name, *option_name);
        let schema = tools[0].to_schema();
        let shown = || {
            format!(
                "seed {seed}: {dialect_name}, {option_name}\n{text}\n---\n{schema}\n{:?}",
                grammar.unheld()
            )
        };
        for event in parse(text, dialect).unwrap() {
            if let EventKind::Diagnostic(diagnostic) = &event.kind {
                panic!("{diagnostic:?}\n{}", shown());
            }
        }
        let set = ToolSet::new(tools.iter().cloned()).unwrap();
        let gate = ReplyCheck::new(dialect, Unclosed::Reject)
            .unwrap()
            .without_gate();
        let mut reader = ReplyReader::new(dialect, set, gate, Limits::for_running()).unwrap();
        let mut items: Vec<ReplyItem> = reader.feed(text).collect();
        items.extend(reader.finish(Stop::Natural).items);
        let near_misses = NearMisses::new(&dialect.without_reasoning()).unwrap();
        let mut count = 0;
        for item in items {
            let ReplyItem::Call { call, bound } = item else {
                continue;
            };
            count += 1;
            for near_miss in near_misses.find_in_first_column(call.raw()) {
                // After a short sigil, misspelled words are possible: `@parm:`.
                let may_be = near_miss.usage == MarkerUse::Argument && dialect_name == "custom";
                assert!(may_be, "{near_miss:?}\n{}", shown());
            }
            match bound {
                Ok(_) => {}
                // Ids are not part of the grammar.
                Err(CallError::DuplicateId(_)) if option_name == "ids" => {}
                Err(CallError::Arguments(problems)) if call.name == "any" => {
                    tally.excused += 1;
                    for problem in problems {
                        let is_excused = grammar.unheld().iter().any(|unheld| {
                            let place = unheld.pointer.trim_end_matches("/*");
                            // A JSON text is reported as a whole.
                            problem.pointer.starts_with(place)
                                || place.starts_with(&*problem.pointer)
                        });
                        assert!(is_excused, "{problem:?}\n{}", shown());
                    }
                }
                Err(error) => panic!("{error}\n{}", shown()),
            }
        }
        tally.calls += count;
        match option_name {
            "none" => assert_eq!(count, 0, "{}", shown()),
            "at most one" => assert!(count <= 1, "{}", shown()),
            "one" => assert_eq!(count, 1, "{}", shown()),
            "required" | "only" | "ids" => assert!(count >= 1, "{}", shown()),
            _ => {}
        }
    }
}

/// A tool with a random schema, and one with a text.
fn tools(random: &mut Random) -> Option<Vec<ToolSpec>> {
    let bytes = random.bytes(200);
    let schema = schema_calls::schema(&mut Choices::new(&bytes));
    let any = ToolSpec::new("any").parameters_from_schema(&schema).ok()?;
    let write = ToolSpec::new("write-file")
        .parameter(Parameter::new("path", ParameterKind::String))
        .parameter(Parameter::new("text", ParameterKind::String))
        .parameter(Parameter::new("mode", ParameterKind::Integer).optional())
        .positional(["path", "mode"])
        .body("text");
    (any.check().is_ok()).then(|| vec![any, write])
}

fn dialects() -> Vec<(&'static str, Dialect)> {
    let [open, close] = Dialect::THINK;
    vec![
        ("block", Dialect::block()),
        ("escaped", Dialect::block().escaped()),
        ("keyed", Dialect::block().escaped().keyed("k3v9q2x8")),
        (
            "custom",
            Dialect::block().start("<<<CALL:").end("END").arg("@param:"),
        ),
        (
            "reasoning",
            Dialect::block().escaped().leading_reasoning(open, close),
        ),
        (
            "in reasoning",
            Dialect::block()
                .leading_reasoning(open, close)
                .in_reasoning(),
        ),
        ("emoji", Dialect::emoji()),
        ("emoji escaped", Dialect::emoji().escaped()),
        (
            "emoji keyed",
            Dialect::emoji()
                .escaped()
                .keyed("k3v9q2x8")
                .leading_reasoning(open, close),
        ),
    ]
}

fn options() -> Vec<(&'static str, GrammarOptions)> {
    vec![
        ("free", GrammarOptions::new()),
        ("required", GrammarOptions::new().required()),
        ("one", GrammarOptions::new().required().one_call()),
        ("at most one", GrammarOptions::new().one_call()),
        (
            "only",
            GrammarOptions::new().choice(plaincall_call::grammar::Choice::Tool(
                "write-file".to_owned(),
            )),
        ),
        ("ids", GrammarOptions::new().required().ids()),
        (
            "none",
            GrammarOptions::new().choice(plaincall_call::grammar::Choice::None),
        ),
    ]
}

/// Texts that a walk writes on purpose: markers, their parts and near misses.
pub(super) fn wishes(dialect: &Dialect) -> Vec<String> {
    let markers: Vec<String> = dialect
        .markers()
        .unwrap()
        .into_iter()
        .map(|form| form.text)
        .collect();
    let mut all = Vec::new();
    for marker in &markers {
        let short: String = marker.chars().take(marker.chars().count() - 1).collect();
        all.extend([
            marker.clone(),
            format!("\n{marker}"),
            format!("\n{}", marker.to_lowercase()),
            format!("\n{short}"),
            format!("\n{short}\\"),
            format!(" {short}X"),
            format!("\n{}", marker.replace('_', " _")),
        ]);
    }
    all.extend(
        [
            "\n",
            "\r\n",
            "\n\n",
            "é",
            "🛠️[",
            "[/end]\n",
            "END\n",
            "\n@Override",
            "<think>",
            "</think>",
        ]
        .map(str::to_owned),
    );
    all
}

pub(super) fn ends(dialect: &Dialect) -> Vec<String> {
    let markers = dialect.markers().unwrap();
    let all = markers
        .iter()
        .flat_map(|form| [form.text.clone(), format!("\n{}", form.text)]);
    all.chain(["\"", "}", "]", "</think>"].map(str::to_owned))
        .collect()
}

/// Writes texts that differ a little from this one.
pub(super) fn altered(text: &str, random: &mut Random) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let one = |random: &mut Random| {
        let mut changed = characters.clone();
        let place = random.below(changed.len());
        if random.one_in(2) {
            changed.remove(place);
        } else {
            changed.insert(place, *random.one(&['!', '\n', 'x', '0', '"', ' ', ']']));
        }
        changed.into_iter().collect()
    };
    if characters.is_empty() {
        return Vec::new();
    }
    (0..ALTERED).map(|_| one(random)).collect()
}

#[derive(Default, Debug)]
pub(super) struct Tally {
    grammars: usize,
    pub(super) texts: usize,
    pub(super) calls: usize,
    excused: usize,
    rejected: usize,
}

#[test]
fn accepted_texts_are_valid() {
    let engine = Engine::new();
    let mut tally = Tally::default();
    for seed in cases("GRAMMAR", 150) {
        let random = &mut Random::new(seed);
        let others = &mut Random::new(!seed);
        let Some(case) = Case::new(seed, random) else {
            continue;
        };
        let start = engine.compile(&case.grammar.lark());
        let gbnf = Gbnf::new(&case.grammar.gbnf());
        tally.grammars += 1;
        let (wishes, ends) = (wishes(&case.dialect), ends(&case.dialect));
        for _ in 0..WALKS {
            let Some(text) = engine.walk(&start, random, &wishes, &ends) else {
                continue;
            };
            tally.texts += 1;
            case.check(&text, &mut tally);
            for other in altered(&text, others).iter().chain([&text]) {
                let verdict = Engine::accepts(&start, other);
                tally.rejected += usize::from(!verdict);
                assert_eq!(gbnf.accepts(other), verdict, "seed {seed}\n{other}");
            }
        }
    }
    eprintln!(
        "walks: {} grammars, {} texts, {} calls, {} with a problem that the grammar reports",
        tally.grammars, tally.texts, tally.calls, tally.excused
    );
    assert!(tally.texts * 2 > tally.grammars * WALKS, "{tally:?}");
    assert!(tally.calls > tally.texts / 2, "{tally:?}");
    assert!(tally.excused * 4 < tally.calls, "{tally:?}");
    assert!(tally.rejected > tally.texts / 2, "{tally:?}");
}
