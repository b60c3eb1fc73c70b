//! Complexity fuzzing: searches for texts that take more than linear time, and for costs that are a product of two numbers.
//!
//! A text is a repeated pattern of strings that the code looks for: markers, their beginnings, blanks, fences, pieces of
//! headers and of JSON. Each subject is timed at growing lengths. A suspicious one is measured again, often and at more
//! lengths. It is a finding only if three doublings in a row each add more than 2.2 times what the previous one added, and
//! the last two take more than 2.2 times as long, in each of several measurements. Time is the processor time of this
//! thread, the minimum of several samples. Other work on the machine can hide a finding once, but cannot cause one.
//!
//! The environment variable `COMPLEXITY_INPUTS` sets how many texts are timed, `COMPLEXITY_SEED` the random seed.

mod pattern;
mod products;
mod subjects;

use std::fmt::Write as _;
use std::time::Duration;

use plaincall_oracle::arbitrary_texts::Random;
use rustix::time::{ClockId, clock_gettime};

use pattern::{Pattern, Pieces};
use subjects::{CALLS_AS_TEXT, Input, PARSER, Subject, of_dialect, of_values};

/// The highest allowed growth factor for a doubled text.
const MOST: f64 = 2.2;
/// A constant cost up to this many nanoseconds per byte is not a finding: a marker that does not count costs as much, or a
/// chunk of four bytes. Scanning a whole line again for each chunk costs many times more.
const CHEAP: f64 = 25.0;
/// How often a suspicious text is measured at each length.
const AGAIN: usize = 12;
/// A finding must appear in this many further ladders in a row.
const CONFIRMED: usize = 3;
/// The minimum duration of a sample. Shorter work is repeated.
const LEAST: Duration = Duration::from_micros(40);

/// The number of texts in ordinary tests.
const ORDINARY: u64 = 60;
/// The search stops after this many findings.
const ENOUGH: usize = 8;

/// The lengths at which a text is timed first, three doublings apart.
const LENGTHS: &[usize] = &[512, 4096, 32_768];
/// An additional length for some texts: a small cost hidden by a large one appears late.
const LONG: usize = 1 << 18;

/// The dialects, as in `spec/README.md`.
const DIALECTS: &[&str] = &[
    "block",
    "block escaped",
    "block anywhere",
    "block escaped key=k3v9q2x8",
    LONG_PREFIX,
    "block start=## end=#### arg=###",
    "block start=call: end=end arg=::",
    "emoji",
    "emoji escaped self-closing",
    "auto",
    "auto escaped anywhere strict self-closing",
    "auto escaped reasoning=<think>,</think> in-reasoning",
    "block reasoning=<think>,</think>",
    "auto leading-reasoning=<think>,</think>",
];

/// Former suspects: the dialect, the beginning of the text, and the repeated unit.
const SUSPECTS: &[(&str, &str, &str)] = &[
    ("block", "", "!"),
    ("block", "", "! "),
    ("block", "", "!!!GADGET_START:"),
    ("block", "", "!!!GADGET_START "),
    ("block", "", "!!!GADGET_START:a b "),
    ("block", "", "!!!GADGET_START:A\n"),
    ("block", "", "!!!ARG:x\n1\n"),
    ("block", CALL, "\n"),
    ("block", CALL, "\r"),
    ("block", CALL, "!!!GADGET_END "),
    ("block", CALL, "!!!GADGET_END                "),
    ("block", CALL, "!!!GADGET_START:\n"),
    ("block", CALL, "\n!!!ARG:"),
    ("block", "!!!GADGET_START:A\n", "` "),
    ("block", "!!!GADGET_START:A\n!!!ARG:", "x"),
    ("block escaped", CALL, "\\"),
    ("block escaped", CALL, "!!!GADGET_EN\\"),
    (LONG_PREFIX, "", "a"),
    ("block start=call: end=end arg=::", "", "call"),
    ("emoji", "", "\u{1F6E0} "),
    ("emoji", "", "\u{1F6E0}\u{FE0F}["),
    ("emoji", "", "\u{1F6E0}"),
    ("emoji", "\u{1F6E0}\u{FE0F}[a]", "\u{1F6E0}\u{FE0F}["),
    ("auto", "", "\u{1F6E0}\u{FE0F}[!!!GADGET_START:"),
    ("auto", "", "\u{1F6E0}\u{FE0F}[]"),
    ("auto", "", "\u{1F6E0}\u{FE0F}[a]\n"),
    ("auto", "", "x"),
    ("auto", "", "\\"),
    ("auto", "", "\\n"),
    ("auto", "", "\\ud83d\\"),
    ("auto", "", "\n"),
    ("auto", "", ">"),
    ("auto", "", "!!!GADGET_STAR\\"),
    ("auto", "", "\u{200B}"),
    ("emoji", "", "<tool_call>"),
    ("emoji", "", "<tool_call> "),
    ("emoji", "", "<function=a"),
    ("emoji", "", "\u{1F527}[a"),
    ("emoji", "", "{\"name\":\"a\","),
    ("emoji", "", "{\"name\": \"\\\""),
    ("block", "", "\u{FF01}\u{FF01}\u{FF01}"),
    ("auto leading-reasoning=<think>,</think>", "", "\n"),
];
/// Fixed findings: the slow subject and its text. A debug build may not show them.
const FIXED: &[(&str, &str, &str, &str)] = &[
    // Each invalid pointer was looked up among all of them.
    (
        "a document and its calls",
        "block",
        "!!!GADGET_START:A\n!!!ARG:list\n",
        "!!!ARG:\n",
    ),
    // For each event the replacements were counted from its offset to the end of the buffer.
    ("the byte parser, whole", "auto", "", "\u{e001}\u{1F6E0}["),
];
/// Texts that may become calls for as long as they last: the beginning and the repeated unit.
const CALLS: &[(&str, &str)] = &[
    ("", "<tool_call>\n"),
    (
        "",
        "<tool_call>{\"name\":\"A\",\"arguments\":{}}</tool_call>",
    ),
    ("[TOOL_CALLS]", "A[ARGS]{}[TOOL_CALLS]"),
    ("<function=A>", "<parameter=x>1</parameter>"),
    ("<function=A><parameter=x>", "</paramete"),
    ("{\"name\":\"A\",\"arguments\":{\"x\":\"", "\\n"),
    ("", "{\"name\":\"A\",\n"),
    ("```json\n", "{\"name\":\"A\",\n"),
    ("```\n", "``\n"),
    ("", "```"),
    ("```json\n{\"name\":\"A\",\"arguments\":{}}\n", "`"),
    ("", "[{\n"),
    ("[", "{\"name\":\"A\",\"arguments\":{\"n\":1}},"),
    // What follows a call may still be its end.
    ("<function=A></function>\n", "\n"),
    ("<function=A></function>\n\n", "<function=A></function>\n\n"),
    // The call of an unknown tool is text to its end.
    ("<function=B><parameter=x>", "<function=A></function>\n"),
    ("<think>", "</think"),
    // Stripped tokens.
    ("analysisX\n", "ab"),
    ("analysisX\n", "<"),
    (CALL, "!!!GADGET_EN\n"),
    (CALL, "1\n!!!GADGET_END\n!!!GADGET_START:A\n!!!ARG:x\n"),
];
const CALL: &str = "!!!GADGET_START:A\n!!!ARG:x\n";
/// Markers that differ only in their last characters.
const LONG_PREFIX: &str = "block start=aaaaaaab end=aaaaaaac arg=aaaaaaad escaped";
/// Subjects that search a text without parsing it.
const SEARCHES: &[&str] = &[
    "near misses",
    "escape",
    "unescape",
    "a prompt text of many parts",
    "the search for an echo",
];

/// Returns the processor time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().expect("no time before the thread")
}

/// Returns the time of one run with this text, in nanoseconds.
fn time(subject: &Subject, input: &Input) -> f64 {
    let mut times = 1;
    loop {
        let begun = cpu_time();
        for _ in 0..times {
            (subject.work)(input);
        }
        let taken = cpu_time().saturating_sub(begun);
        if taken >= LEAST {
            return taken.as_secs_f64() * 1e9 / f64::from(times);
        }
        times *= 2;
    }
}

/// Returns whether the times at growing lengths are a reason to measure again.
fn is_suspicious(times: &[f64]) -> bool {
    // Less than the limit, as an average may hide the last doubling.
    let most = 2.1_f64.powi(3);
    times.windows(2).any(|pair| pair[1] > pair[0] * most)
}

/// The precise times of a text: pairs of length and time.
struct Ladder {
    steps: Vec<(usize, f64)>,
}

impl Ladder {
    /// Measures at every length from the first to the last, doubling.
    fn climb(subject: &Subject, pattern: &Pattern, last: usize) -> Self {
        let lengths = (8..).map(|power| 1 << power);
        let inputs: Vec<(usize, Input)> = lengths
            .take_while(|len| *len <= last)
            .map(|len| (len, Input::new(pattern.text(len))))
            .collect();
        let mut steps: Vec<(usize, f64)> = inputs.iter().map(|(len, _)| (*len, f64::MAX)).collect();
        // In turn, so that a busy moment does not affect only one length.
        for _ in 0..AGAIN {
            for ((_, input), (_, least)) in inputs.iter().zip(&mut steps) {
                *least = least.min(time(subject, input));
            }
        }
        Self { steps }
    }

    /// Returns how much more each doubling adds than the previous one. Where a further linear cost begins, as after the
    /// longest header, two of these are large, and many of the times themselves.
    fn growth(&self) -> Vec<f64> {
        let times: Vec<f64> = self.steps.iter().map(|(_, time)| *time).collect();
        let added: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let of = |pair: &[f64]| pair[1] / pair[0].max(1.0);
        added.windows(2).map(of).collect()
    }

    /// Returns the highest factor that three growth rates in a row reach, if the last two doublings also take that many
    /// times as long. If the growth is linear afterwards, as after the longest header, the cost of a byte must have at
    /// least doubled on the way, to more than [`CHEAP`]: buffering costs almost nothing until the text is parsed.
    fn steepest(&self) -> f64 {
        let growth = self.growth();
        let times: Vec<f64> = self.steps.iter().map(|(_, time)| *time).collect();
        let ratios: Vec<f64> = times.windows(2).map(|pair| pair[1] / pair[0]).collect();
        // Each step doubles the text.
        let is_dear = |last: usize| {
            let dearer = |from: usize| -> f64 {
                ratios[from..last].iter().map(|ratio| ratio / 2.0).product()
            };
            let (len, time) = self.steps[last];
            let is_cheap = time <= CHEAP * f64::from(u32::try_from(len).expect("a short text"));
            !is_cheap && (0..last).any(|from| dearer(from) > 2.0)
        };
        let least = |(first, three): (usize, &[f64])| {
            let last = first + 4;
            if last + 1 < times.len() && !is_dear(last) {
                return 0.0;
            }
            let also = &ratios[last - 2..last];
            three.iter().chain(also).copied().fold(f64::MAX, f64::min)
        };
        growth.windows(3).enumerate().map(least).fold(0.0, f64::max)
    }

    fn table(&self) -> String {
        let mut table = String::new();
        let mut before = None;
        for (len, time) in &self.steps {
            let ratio = before.map_or(String::new(), |before| {
                format!(", {:.2} times", time / before)
            });
            let _ = writeln!(table, "  {len:>7} bytes {:>10.1} µs{ratio}", time / 1000.0);
            before = Some(*time);
        }
        table
    }
}

/// The state and results of a search.
#[derive(Default)]
struct Search {
    inputs: u64,
    again: u64,
    /// The steepest growth that is not a finding, and its text.
    worst: (f64, String),
    /// The highest cost per byte at the second length, in nanoseconds.
    dearest: (f64, String),
    findings: Vec<String>,
}

impl Search {
    /// Times one text with one subject, and measures it again if it is suspicious.
    fn try_one(&mut self, subject: &Subject, pattern: &Pattern, lengths: &[usize], words: &str) {
        self.inputs += 1;
        let of = |len: &usize| {
            let input = Input::new(pattern.text(*len));
            // Twice, because the first run is often slower.
            time(subject, &input).min(time(subject, &input))
        };
        let times: Vec<f64> = lengths.iter().map(of).collect();
        let place = || format!("{} of {pattern:?} with {words}", subject.name);
        let bytes = u32::try_from(pattern.text(LENGTHS[1]).len()).expect("a short text");
        let dear = times[1] / f64::from(bytes);
        if dear > self.dearest.0 {
            self.dearest = (dear, place());
        }
        if !is_suspicious(&times) {
            return;
        }
        self.again += 1;
        let last = lengths.last().copied().unwrap_or_default() * 2;
        let ladder = Ladder::climb(subject, pattern, last);
        let steepest = ladder.steepest();
        if steepest <= MOST {
            if steepest > self.worst.0 {
                self.worst = (steepest, place());
            }
            return;
        }
        // Again, with the simplest pattern that shows it.
        let mut shown = pattern.clone();
        while let Some(simpler) = shown
            .simpler()
            .into_iter()
            .find(|simpler| Ladder::climb(subject, simpler, last).steepest() > MOST)
        {
            shown = simpler;
        }
        let ladders = (0..CONFIRMED).map(|_| Ladder::climb(subject, &shown, last));
        let steep: Vec<Ladder> = ladders
            .take_while(|ladder| ladder.steepest() > MOST)
            .collect();
        if steep.len() == CONFIRMED {
            self.findings.push(format!(
                "{} of {shown:?} with {words}\n{}",
                subject.name,
                steep[0].table()
            ));
        }
    }

    fn summary(&self) -> String {
        let (ratio, place) = &self.worst;
        let (dear, dear_place) = &self.dearest;
        format!(
            "complexity: {} texts timed, {} measured again, {} findings; the steepest of the others grows {ratio:.2} times, three doublings in a row ({place}); the slowest takes {dear:.0} ns a byte ({dear_place})",
            self.inputs,
            self.again,
            self.findings.len(),
        )
    }
}

/// A dialect with the pieces of its patterns and its subjects.
struct Ground {
    words: &'static str,
    pieces: Pieces,
    subjects: Vec<Subject>,
}

impl Ground {
    fn new(words: &'static str) -> Self {
        let dialect = crate::untrusted::dialect(words);
        Self {
            words,
            pieces: Pieces::new(&dialect),
            subjects: of_dialect(&dialect),
        }
    }
}

/// Tries the former suspects; in a short search only with the subjects they were suspected for.
fn try_suspects(search: &mut Search, grounds: &[Ground], is_short: bool) {
    for (words, begin, unit) in SUSPECTS {
        let ground = grounds.iter().find(|ground| ground.words == *words);
        let ground = ground.expect("one of the dialects");
        let is_asked = |subject: &&Subject| {
            let parses = subject.name.starts_with(PARSER);
            !is_short || parses || begin.is_empty() && SEARCHES.contains(&&*subject.name)
        };
        for subject in ground.subjects.iter().filter(is_asked) {
            search.try_one(
                subject,
                &Pattern::of(begin, unit),
                lengths(subject, is_short),
                words,
            );
        }
    }
}

fn try_fixed(search: &mut Search, grounds: &[Ground]) {
    for (name, words, begin, unit) in FIXED {
        let subjects = grounds.iter().filter(|ground| ground.words == *words);
        let mut subjects = subjects.flat_map(|ground| &ground.subjects);
        let subject = subjects.find(|subject| subject.name == *name);
        let subject = subject.expect("one of the subjects");
        search.try_one(subject, &Pattern::of(begin, unit), LENGTHS, words);
    }
}

fn try_calls(search: &mut Search, values: &[Subject]) {
    let readers = values
        .iter()
        .filter(|subject| subject.name.starts_with(CALLS_AS_TEXT));
    for subject in readers {
        for (begin, unit) in CALLS {
            search.try_one(subject, &Pattern::of(begin, unit), LENGTHS, "no dialect");
        }
    }
}

/// Draws patterns, each for one dialect and one subject, until `inputs` texts have been timed.
fn search(inputs: u64, seed: u64) -> Search {
    let mut search = Search::default();
    let grounds: Vec<Ground> = DIALECTS.iter().map(|words| Ground::new(words)).collect();
    let is_short = inputs <= ORDINARY;
    try_suspects(&mut search, &grounds, is_short);
    try_fixed(&mut search, &grounds);
    let values = of_values();
    try_calls(&mut search, &values);
    for product in products::products() {
        search.try_one(&product, &Pattern::of("", "x"), LENGTHS, "no dialect");
    }
    let mut random = Random::new(seed);
    for _ in 0..inputs {
        if search.findings.len() >= ENOUGH {
            break;
        }
        let Ground {
            words,
            pieces,
            subjects,
        } = &grounds[random.below(grounds.len())];
        let mut pattern = pieces.draw(&mut random);
        let index = random.below(subjects.len() + values.len());
        let subject = subjects.get(index).unwrap_or_else(|| {
            // A value has no text before it.
            if random.one_in(2) {
                pattern.begin.clear();
            }
            &values[index - subjects.len()]
        });
        let mut lengths = lengths(subject, is_short).to_vec();
        if !is_short && random.one_in(16) {
            lengths.push(LONG);
        }
        search.try_one(subject, &pattern, &lengths, words);
    }
    search
}

/// Returns the lengths at which a text is timed. In a short search only the parser, which alone is optimised then, gets
/// the longest.
fn lengths(subject: &Subject, is_short: bool) -> &'static [usize] {
    if is_short && !subject.name.starts_with(PARSER) {
        &LENGTHS[..2]
    } else {
        LENGTHS
    }
}

/// Reads a number from the environment, for longer searches.
#[expect(clippy::disallowed_methods, reason = "only a test reads it")]
fn setting(name: &str, ordinary: u64) -> u64 {
    std::env::var(name).map_or(ordinary, |value| value.parse().expect("a number"))
}

#[test]
fn no_text_takes_more_than_linear_time() {
    let search = search(
        setting("COMPLEXITY_INPUTS", ORDINARY),
        setting("COMPLEXITY_SEED", 1),
    );
    println!("{}", search.summary());
    assert!(search.findings.is_empty(), "{}", search.findings.join("\n"));
}

/// Only superlinear growth is a finding; a constant cost, and a cost that begins later, are not.
#[test]
fn only_superlinear_growth_is_found() {
    let check = |time: fn(f64) -> f64, expected: bool| {
        let at = |len: u32| time(f64::from(len));
        let is_suspicious = is_suspicious(&[512, 4096, 32_768].map(at));
        let steps = (8..17).map(|power| (1 << power, at(1 << power)));
        let ladder = Ladder {
            steps: steps.collect(),
        };
        let is_found = is_suspicious && ladder.steepest() > MOST;
        assert_eq!(is_found, expected, "{}", ladder.table());
    };
    check(|len| len * 4.0, false);
    check(|len| 10_000.0 + len * 4.0, false);
    check(|len| len + 16.0 * (len - 4096.0).max(0.0), false);
    check(|len| len + 4.0 * (len - 2000.0).max(0.0), false);
    check(
        |len| 40.0 + len / 1e6 + 16.0 * (len - 4000.0).max(0.0),
        false,
    );
    check(|len| len * (1.0 + len.min(4096.0) / 8000.0), false);
    check(|len| len * len.log2(), false);
    check(|len| len * len / 64.0, true);
    check(|len| len * 16.0 + len * len / 1024.0, true);
    check(|len| len * len.sqrt(), true);
    check(|len| len * len.min(4096.0), true);
    check(|len| len * len.min(4096.0) / 100.0, true);
    check(|len| len * len.min(4096.0) / 200.0, false);
    // Buffered up to the longest header, then parsed (measured).
    check(
        |len| 1000.0 + len * 0.8 + 7.0 * (len - 3600.0).max(0.0),
        false,
    );
}
