//! Every text that an engine accepts parses and binds without a problem, except for what the grammar does not enforce.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread;
use std::time::Instant;

use plaincall_grammar as grammar;
use plaincall_grammar::{Grammar, GrammarOptions, Unheld, grammar};
use plaincall_reply::{CallError, ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
use plaincall_syntax::{Dialect, EventKind, MarkerUse, NearMisses, Syntax, parse};
use plaincall_testkit::cases::{Playing, cases};
use plaincall_testkit::schema_calls::{self, Choices};
use plaincall_tool::{Limits, Parameter, ParameterKind, ToolSet, ToolSpec};

use super::engine::Engine;
use super::gbnf::Gbnf;
use plaincall_oracle::arbitrary_texts::Random;

/// The walks of each grammar that are compared with the GBNF. The recognizer is slow.
const COMPARED: usize = 4;
/// The walks after which the engine forgets what it computed, as for a new request.
const FRESH: usize = 100;
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
    /// The keywords that the engine does not enforce.
    pub(super) unheld: Vec<Unheld>,
    reader: ReplyReader<ToolSet>,
    near_misses: NearMisses,
}

impl Case {
    /// Consecutive seeds have all combinations of dialects and options. Returns `None` if the random schema is unusable.
    pub(super) fn new(seed: u64, random: &mut Random) -> Option<Self> {
        let tools = tools(random)?;
        let (dialects, options) = (dialects(), options());
        let index = usize::try_from(seed).unwrap();
        let (dialect_name, dialect) = dialects[index % dialects.len()].clone();
        let (option_name, options) = options[index / dialects.len() % options.len()].clone();
        let grammar = grammar(&tools, &dialect, &options).ok()?;
        let set = ToolSet::new(tools.iter().cloned()).unwrap();
        let gate = ReplyCheck::new(&dialect, Unclosed::Reject)
            .unwrap()
            .without_gate();
        Some(Self {
            seed,
            dialect_name,
            option_name,
            unheld: grammar.unheld_by(grammar::Engine::LlGuidance),
            reader: ReplyReader::new(&dialect, set, gate, Limits::for_running()).unwrap(),
            near_misses: NearMisses::new(&dialect.without_reasoning()).unwrap(),
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
            unheld,
            near_misses,
            ..
        } = self;
        let (dialect_name, option_name) = (*dialect_name, *option_name);
        let shown = || {
            let schema = tools[0].to_schema();
            format!("seed {seed}: {dialect_name}, {option_name}\n{text}\n---\n{schema}\n{unheld:?}")
        };
        for event in parse(text, dialect).unwrap() {
            if let EventKind::Diagnostic(diagnostic) = &event.kind {
                panic!("{diagnostic:?}\n{}", shown());
            }
        }
        let mut reader = self.reader.clone();
        let mut items: Vec<ReplyItem> = reader.feed(text).collect();
        items.extend(reader.finish(Stop::Natural).items);
        let mut count = 0;
        for item in items {
            let ReplyItem::Call(read) = item else {
                continue;
            };
            let (call, bound) = (&read.call, read.bound());
            count += 1;
            for near_miss in near_misses.find_in_first_column(call.raw()) {
                // After a short sigil, misspelled words are possible: `@parm:`.
                let may_be = near_miss.usage == MarkerUse::Argument && dialect_name == "custom";
                assert!(may_be, "{near_miss:?}\n{}", shown());
            }
            match bound {
                Ok(_) => {}
                // A start marker of the other syntax is text (`spec/grammar.md` 3.2).
                Err(CallError::AfterBrokenStart { found, .. })
                    if other_starts(dialect)
                        .iter()
                        .any(|start| found.starts_with(start)) =>
                {
                    tally.excused += 1;
                }
                // The last value of the line is `/` (`spec/grammar.md` 5).
                Err(CallError::SlashInHeader(_)) => tally.excused += 1,
                // Ids are not part of the grammar.
                Err(CallError::DuplicateId(_)) if option_name == "ids" => {}
                Err(CallError::Arguments(problems)) if call.name == "any" => {
                    tally.excused += 1;
                    let is_recursive = tools[0].to_schema().to_string().contains("\"$ref\"");
                    for problem in problems {
                        let is_excused = unheld.iter().any(|unheld| {
                            let place = any_index(unheld.pointer.trim_end_matches("/*"));
                            let found = any_index(&problem.pointer);
                            // A JSON text is reported as a whole, and recursion where it begins.
                            place.starts_with(&found)
                                || pointers(&found, is_recursive).any(|end| end.starts_with(&place))
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

/// Returns the start markers of the syntax that a dialect does not have.
fn other_starts(dialect: &Dialect) -> Vec<String> {
    let other = match dialect.syntax() {
        Some(Syntax::Block) => Dialect::emoji(),
        _ => Dialect::block(),
    };
    let markers = other.markers().unwrap().into_iter();
    let starts = markers.filter(|marker| matches!(marker.usage, MarkerUse::Start(_)));
    starts.map(|marker| marker.text).collect()
}

/// Replaces indexes: a keyword in a list is reported for its first item.
fn any_index(pointer: &str) -> String {
    let is_index = |segment: &str| segment.parse::<usize>().is_ok();
    let segments = pointer.split('/');
    let segments = segments.map(|one| if is_index(one) { "0" } else { one });
    segments.collect::<Vec<&str>>().join("/")
}

/// Returns the pointer, and if the schema is recursive its ends.
fn pointers(pointer: &str, is_recursive: bool) -> impl Iterator<Item = &str> {
    let ends = pointer.match_indices('/').map(|(at, _)| &pointer[at + 1..]);
    std::iter::once(pointer).chain(ends.filter(move |_| is_recursive))
}

/// A tool with a random schema, and one with a text.
fn tools(random: &mut Random) -> Option<Vec<ToolSpec>> {
    let bytes = (0..200).map(|_| random.byte()).collect::<Vec<u8>>();
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
            GrammarOptions::new().choice(plaincall_grammar::Choice::Tool("write-file".to_owned())),
        ),
        ("ids", GrammarOptions::new().required().ids()),
        (
            "none",
            GrammarOptions::new().choice(plaincall_grammar::Choice::None),
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
            changed.insert(place, random.pick(&['!', '\n', 'x', '0', '"', ' ', ']']));
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
    /// The texts by the names of dialect and options.
    by_combination: BTreeMap<(&'static str, &'static str), usize>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.grammars += other.grammars;
        self.texts += other.texts;
        self.calls += other.calls;
        self.excused += other.excused;
        self.rejected += other.rejected;
        for (combination, texts) in other.by_combination {
            *self.by_combination.entry(combination).or_default() += texts;
        }
    }
}

/// Walks the grammars of these seeds, the same number of times each.
fn walk_all(seeds: impl Iterator<Item = u64>, walks: usize) -> Tally {
    let engine = Engine::new();
    let mut tally = Tally::default();
    for seed in seeds {
        let _playing = Playing::new("GRAMMAR", seed);
        let random = &mut Random::new(seed);
        let others = &mut Random::new(!seed);
        let Some(case) = Case::new(seed, random) else {
            continue;
        };
        let start = engine.compile(&case.grammar.lark());
        let gbnf = Gbnf::new(&case.grammar.gbnf());
        tally.grammars += 1;
        let (wishes, ends) = (wishes(&case.dialect), ends(&case.dialect));
        let mut matcher = start.deep_clone();
        for walk in 0..walks {
            if walk % FRESH == 0 {
                matcher = start.deep_clone();
            }
            let Some(text) = engine.walk(&mut matcher, random, &wishes, &ends) else {
                if let Some(error) = matcher.get_error() {
                    // Those of many walks; a server begins each reply with a new one.
                    assert_ne!(walk % FRESH, 0, "seed {seed}: {error}");
                    matcher = start.deep_clone();
                }
                continue;
            };
            tally.texts += 1;
            let combination = (case.dialect_name, case.option_name);
            *tally.by_combination.entry(combination).or_default() += 1;
            case.check(&text, &mut tally);
            if walk >= COMPARED {
                continue;
            }
            for other in altered(&text, others).iter().chain([&text]) {
                let verdict = Engine::accepts(&start, other);
                tally.rejected += usize::from(!verdict);
                // GBNF may enforce more patterns.
                let limits = ["minLength", "maxLength", "pattern"];
                let mut unheld = case.unheld.iter();
                let is_looser = verdict && unheld.any(|one| limits.contains(&one.keyword));
                let is_same = is_looser || gbnf.accepts(other) == verdict;
                assert!(is_same, "seed {seed}: {verdict}\n{other}");
            }
        }
    }
    tally
}

/// The environment variable `GRAMMAR_CASES` sets the number of grammars, `GRAMMAR_WALKS_CASES` that of the walks of each combination of a
/// dialect and options.
#[test]
fn accepted_texts_are_valid() {
    let seeds = cases("GRAMMAR", 189);
    let combinations = u64::try_from(dialects().len() * options().len()).unwrap();
    let each = cases("GRAMMAR_WALKS", 12).end;
    let grammars = (seeds.end - seeds.start).div_ceil(combinations);
    let walks = usize::try_from(each.div_ceil(grammars)).unwrap();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let begun = Instant::now();
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let share = |first: usize| {
            let seeds = seeds.clone().skip(first).step_by(threads);
            scope.spawn(move || walk_all(seeds, walks))
        };
        let running: Vec<_> = (0..threads).map(share).collect();
        for one in running {
            tally.add(one.join().unwrap());
        }
    });
    for ((dialect, options), texts) in &tally.by_combination {
        println!("{dialect}, {options}: {texts} texts");
    }
    let least = tally.by_combination.values().min().unwrap();
    println!(
        "walks: at least {least} texts in each of {} combinations, {} grammars, {} texts, {} calls, {} with a problem that the grammar \
         reports, {:.0} texts a second",
        tally.by_combination.len(),
        tally.grammars,
        tally.texts,
        tally.calls,
        tally.excused,
        f64::from(u32::try_from(tally.texts).unwrap()) / begun.elapsed().as_secs_f64()
    );
    if seeds.end - seeds.start < combinations {
        return;
    }
    // A single grammar of a combination may be refused.
    let found = tally.by_combination.len() as u64;
    let least = if grammars > 1 {
        combinations
    } else {
        combinations * 9 / 10
    };
    assert!(found >= least, "{found} of {combinations} combinations");
    assert!(tally.texts * 2 > tally.grammars * walks, "{tally:?}");
    assert!(tally.calls > tally.texts / 2, "{tally:?}");
    assert!(tally.excused * 4 < tally.calls, "{tally:?}");
    assert!(tally.rejected > tally.grammars / 2, "{tally:?}");
}
