//! The hunt for texts that take more than linear time.
//!
//! A text is a pattern that is repeated, drawn of what the code itself looks for: markers, their beginnings, blanks,
//! fences, pieces of headers and of JSON. What reads it is timed at growing lengths. What looks suspicious is measured
//! again, often and at more lengths: it is a find only if three doublings in a row each add more than 2.2 times what the
//! one before added, and the last two take more than 2.2 times as long; and that in each of several such measurements.
//! Time is that of this thread's work alone, the least of many in turn; so other work on the machine, which makes a long
//! text a little dearer than a short one, can hide a find for once, but makes none.
//!
//! `HUNT_INPUTS` in the environment is how many texts are timed, `HUNT_SEED` which.

mod pattern;
mod subjects;

use std::fmt::Write as _;
use std::time::Duration;

use plaincall_oracle::soup::Random;
use rustix::time::{ClockId, clock_gettime};

use pattern::{Pattern, Pieces};
use subjects::{Input, PARSER, Subject, of_dialect, of_values};

/// How much longer twice the text may take.
const MOST: f64 = 2.2;
/// So many nanoseconds a byte are no find where it stays at that: what a marker that does not count takes, or a chunk of
/// four bytes. Looking at a whole line again for each chunk takes many times as long.
const CHEAP: f64 = 25.0;
/// How often a suspicious text is measured at each length.
const AGAIN: usize = 12;
/// In so many ladders a find must show, one after another, beside the one that made it suspicious.
const CONFIRMED: usize = 3;
/// What is measured takes at least so long: else it is done several times.
const LEAST: Duration = Duration::from_micros(40);

/// How many texts are drawn in the ordinary tests.
const ORDINARY: u64 = 60;
/// After so many finds no more are looked for.
const ENOUGH: usize = 8;

/// The lengths at which a text is timed first: from one to the next it doubles three times.
const LENGTHS: &[usize] = &[512, 4096, 32_768];
/// What some texts are timed at too: what is small in front of a large cost shows late.
const LONG: usize = 1 << 18;

/// The dialects, in the words of `spec/README.md`.
const DIALECTS: &[&str] = &[
    "block",
    "block escaped",
    "block anywhere",
    "block escaped key=k3v9q2x8",
    LONG_STEM,
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

/// What was suspected once: the dialect, what begins the text, and the unit.
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
    (LONG_STEM, "", "a"),
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
/// What was found once, and mended: what took so long, and of what. Built for debugging it may not show.
const MENDED: &[(&str, &str, &str, &str)] = &[
    // Each wrong pointer was looked up among all of them.
    (
        "a document and its calls",
        "block",
        "!!!GADGET_START:A\n!!!ARG:list\n",
        "!!!ARG:\n",
    ),
    // For each event the replacements were counted from its place to the end of what is held.
    ("the byte door, whole", "auto", "", "\u{e001}\u{1F6E0}["),
];
const CALL: &str = "!!!GADGET_START:A\n!!!ARG:x\n";
/// Markers that are alike but for their last characters.
const LONG_STEM: &str = "block start=aaaaaaab end=aaaaaaac arg=aaaaaaad escaped";
/// What searches a text without parsing it.
const SEARCHES: &[&str] = &[
    "near misses",
    "escape",
    "unescape",
    "a prompt text of many texts",
    "the search for an echo",
    "a prompt text and the guard against echoes, in chunks of 1",
];

/// What this thread has computed so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().expect("no time before the thread")
}

/// What doing it with this text takes once, in nanoseconds.
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

/// Whether what a text took at the lengths in turn gives reason to measure it again.
fn is_suspicious(times: &[f64]) -> bool {
    // Less than the limit, as an average may hide the last doubling.
    let most = 2.1_f64.powi(3);
    times.windows(2).any(|pair| pair[1] > pair[0] * most)
}

/// A text measured with care: length, time and the times as long as for half of it.
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
        // In turn, so that a busy moment does not fall on one length alone.
        for _ in 0..AGAIN {
            for ((_, input), (_, least)) in inputs.iter().zip(&mut steps) {
                *least = least.min(time(subject, input));
            }
        }
        Self { steps }
    }

    /// How much more each doubling adds than the one before. Where a cost begins that is only another linear one, as
    /// behind the longest header, two of these are large, though many of the times themselves.
    fn growth(&self) -> Vec<f64> {
        let times: Vec<f64> = self.steps.iter().map(|(_, time)| *time).collect();
        let added: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let of = |pair: &[f64]| pair[1] / pair[0].max(1.0);
        added.windows(2).map(of).collect()
    }

    /// The most that three doublings in a row each add of what the one before added, if the last two also take that many
    /// times as long as half the text. Where it stays linear afterwards, as behind the longest header, a byte must have
    /// become at least twice as dear on the way, and dearer than [`CHEAP`]: what is only held takes next to nothing until
    /// it is read.
    fn steepest(&self) -> f64 {
        let growth = self.growth();
        let times: Vec<f64> = self.steps.iter().map(|(_, time)| *time).collect();
        let ratios: Vec<f64> = times.windows(2).map(|pair| pair[1] / pair[0]).collect();
        // From one step to the next the text is twice as long.
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

    fn told(&self) -> String {
        let mut told = String::new();
        let mut before = None;
        for (len, time) in &self.steps {
            let ratio = before.map_or(String::new(), |before| {
                format!(", {:.2} times", time / before)
            });
            let _ = writeln!(told, "  {len:>7} bytes {:>10.1} µs{ratio}", time / 1000.0);
            before = Some(*time);
        }
        told
    }
}

/// What was tried, and what it showed.
#[derive(Default)]
struct Hunt {
    inputs: u64,
    again: u64,
    /// The steepest that was no find, and what it was.
    worst: (f64, String),
    /// What takes longest for a byte of the second length, in nanoseconds.
    dearest: (f64, String),
    finds: Vec<String>,
}

impl Hunt {
    /// Times one text with one subject, and measures it again if there is reason to.
    fn try_one(&mut self, subject: &Subject, pattern: &Pattern, lengths: &[usize], words: &str) {
        self.inputs += 1;
        let of = |len: &usize| {
            let input = Input::new(pattern.text(*len));
            // Twice, as a first time is often slower.
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
        // Again, now as short as it shows.
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
            self.finds.push(format!(
                "{} of {shown:?} with {words}\n{}",
                subject.name,
                steep[0].told()
            ));
        }
    }

    fn told(&self) -> String {
        let (ratio, place) = &self.worst;
        let (dear, dear_place) = &self.dearest;
        format!(
            "hunt: {} texts timed, {} measured again, {} finds; the steepest of the others grows {ratio:.2} times, three doublings in a row ({place}); the slowest takes {dear:.0} ns a byte ({dear_place})",
            self.inputs,
            self.again,
            self.finds.len(),
        )
    }
}

/// A dialect with the pieces of its patterns and what reads it.
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

/// Tries what once was suspected; in a short hunt with those alone that it was suspected of.
fn try_suspects(hunt: &mut Hunt, grounds: &[Ground], is_short: bool) {
    for (words, begin, unit) in SUSPECTS {
        let ground = grounds.iter().find(|ground| ground.words == *words);
        let ground = ground.expect("one of the dialects");
        let is_asked = |subject: &&Subject| {
            let parses = subject.name.starts_with(PARSER);
            !is_short || parses || begin.is_empty() && SEARCHES.contains(&&*subject.name)
        };
        for subject in ground.subjects.iter().filter(is_asked) {
            hunt.try_one(
                subject,
                &Pattern::of(begin, unit),
                lengths(subject, is_short),
                words,
            );
        }
    }
}

fn try_mended(hunt: &mut Hunt, grounds: &[Ground]) {
    for (name, words, begin, unit) in MENDED {
        let subjects = grounds.iter().filter(|ground| ground.words == *words);
        let mut subjects = subjects.flat_map(|ground| &ground.subjects);
        let subject = subjects.find(|subject| subject.name == *name);
        let subject = subject.expect("one of the subjects");
        hunt.try_one(subject, &Pattern::of(begin, unit), LENGTHS, words);
    }
}

/// Draws patterns, each for one dialect and one that reads it, until so many texts have been timed.
fn hunt(inputs: u64, seed: u64) -> Hunt {
    let mut hunt = Hunt::default();
    let grounds: Vec<Ground> = DIALECTS.iter().map(|words| Ground::new(words)).collect();
    let is_short = inputs <= ORDINARY;
    try_suspects(&mut hunt, &grounds, is_short);
    try_mended(&mut hunt, &grounds);
    let values = of_values();
    let mut random = Random::new(seed);
    for _ in 0..inputs {
        if hunt.finds.len() >= ENOUGH {
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
            // A value has nothing in front of it.
            if random.one_in(2) {
                pattern.begin.clear();
            }
            &values[index - subjects.len()]
        });
        let mut lengths = lengths(subject, is_short).to_vec();
        if !is_short && random.one_in(16) {
            lengths.push(LONG);
        }
        hunt.try_one(subject, &pattern, &lengths, words);
    }
    hunt
}

/// The lengths at which a text is timed; in a short hunt only the parser, which alone is compiled for speed then, gets
/// the longest.
fn lengths(subject: &Subject, is_short: bool) -> &'static [usize] {
    if is_short && !subject.name.starts_with(PARSER) {
        &LENGTHS[..2]
    } else {
        LENGTHS
    }
}

/// A number from the environment, for longer hunts than the ordinary one.
#[expect(clippy::disallowed_methods, reason = "only a test reads it")]
fn setting(name: &str, ordinary: u64) -> u64 {
    std::env::var(name).map_or(ordinary, |value| value.parse().expect("a number"))
}

#[test]
fn no_text_takes_more_than_linear_time() {
    let hunt = hunt(setting("HUNT_INPUTS", ORDINARY), setting("HUNT_SEED", 1));
    println!("{}", hunt.told());
    assert!(hunt.finds.is_empty(), "{}", hunt.finds.join("\n"));
}

/// What grows faster than the text is a find; a constant, and a cost that begins later, are none.
#[test]
fn only_what_is_steeper_is_found() {
    let check = |time: fn(f64) -> f64, expected: bool| {
        let at = |len: u32| time(f64::from(len));
        let is_suspicious = is_suspicious(&[512, 4096, 32_768].map(at));
        let steps = (8..17).map(|power| (1 << power, at(1 << power)));
        let ladder = Ladder {
            steps: steps.collect(),
        };
        let is_found = is_suspicious && ladder.steepest() > MOST;
        assert_eq!(is_found, expected, "{}", ladder.told());
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
    // Held up to the longest header, then read: measured so.
    check(
        |len| 1000.0 + len * 0.8 + 7.0 * (len - 3600.0).max(0.0),
        false,
    );
}
