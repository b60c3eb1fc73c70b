//! Every short text over small alphabets, whole and split in two at every position.
//!
//! The texts over an alphabet are a tree: below a text stand those with one more token. What the parser is like after
//! the beginning of a text is computed once and used for all texts below.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plaincall_oracle::agreement::{Agreement, agrees};
use plaincall_oracle::effort::{cores, setting};
use plaincall_oracle::merged::{Merged, merge};
use plaincall_oracle::oracle::{Options, Oracle, oracle};
use plaincall_syntax::Parser;

use crate::oracle::disagreement::{Disagreements, agree};
use crate::oracle::readers::{Entry, Readers};

/// A dialect in the words of `spec/README.md`, and the tokens of the texts that are tried in it.
type Alphabet = (&'static str, &'static [&'static str]);

const ALPHABETS: &[Alphabet] = &[
    // Markers with and without what belongs behind them, line ends, blanks.
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>x\n", "<s>", "<a>", "<e>", "\n", " ", "x"],
    ),
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>x\n", "<e>", "<a>x\n", "\r", "\n", " ", "x"],
    ),
    (
        "block",
        &[
            "!!!GADGET_START:",
            "!!!ARG:",
            "!!!GADGET_END",
            "!!!GADGET_",
            "x\n",
            "\n",
            "!",
        ],
    ),
    // Headers.
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>", "<e>\n", ":", ",", "x", "\"", " "],
    ),
    // Fences.
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>x\n", "```", " ", "\n", "<a>", "<e>", "x"],
    ),
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>x\n", "``", "`", "~", "\r\n", "<a>"],
    ),
    // Markers that begin one another, or with what is elsewhere a blank.
    (
        "block start=## end=#### arg=###",
        &["##", "#", "x", "\n", " ", "#x\n"],
    ),
    (
        "block start=\t\t end=\tx arg=x\t",
        &["\t", "x", "\n", "\t\tx\n", "```", " "],
    ),
    (
        "block start=aba end=abab arg=ab reasoning=ba,bab",
        &["aba", "b", "a", "x\n", "\n"],
    ),
    // Options.
    (
        "block start=<s> end=<e> arg=<a> anywhere",
        &["<s>x\n", "<s>", "<a>", "<e>", "\n", " ", "x"],
    ),
    (
        "block start=<s> end=<e> arg=<a> reasoning=<t>,</t>",
        &["<s>x\n", "<a>\n", "<e>", "<t>", "</t>", "x", "\n"],
    ),
    // The escape.
    (
        "block start=<s> end=<e> arg=<a> escaped",
        &["<s>x\n", "<a>x\n", "\n<e>", "<a", "<e", "\\", ">"],
    ),
    (
        "block start=## end=#### arg=### escaped",
        &["##", "#", "\\", "x", "\n", " "],
    ),
    // The emoji syntax.
    (
        "emoji",
        &[
            "\u{1F6E0}\u{FE0F}[",
            "\u{1F6E0}[/end]",
            "\u{1F6E0}",
            "[/end]",
            "x",
            "]",
            "\n",
        ],
    ),
    (
        "emoji self-closing",
        &["\u{1F6E0}[x", "\u{1F6E0}[/end]", "/", " ", "]", "\r\n", "x"],
    ),
    (
        "emoji escaped",
        &[
            "\u{1F6E0}\u{FE0F}[x]",
            "\u{1F6E0}",
            "[",
            "/end]",
            "\\",
            "\u{FE0F}",
            "\n",
        ],
    ),
    // Both syntaxes.
    (
        "auto start=<s> end=<e> arg=<a>",
        &[
            "<s>",
            "<e>",
            "\u{1F6E0}[",
            "\u{1F6E0}[/end]",
            "x",
            "]",
            "\n",
        ],
    ),
    (
        "auto start=<s> end=<e> arg=<a> escaped",
        &[
            "<s>x\n",
            "<a>\n",
            "\n<e>",
            "\u{1F6E0}[x]",
            "\u{1F6E0}[/end",
            "\\",
            "]",
        ],
    ),
];

/// Of so many texts, one is read through every entry.
const SHARE: usize = 16;

/// The state of the parser after the beginning of a text, which came in one chunk.
struct Begun {
    len: usize,
    parser: Parser,
    events: Vec<Merged>,
}

/// One path down the tree.
struct Climber<'a> {
    tokens: &'a [&'a str],
    most: u64,
    options: &'a Options,
    oracle: Oracle,
    readers: Readers,
    disagreements: &'a Disagreements,
    text: String,
    /// One for each position where the text can be split, and for its end.
    begun: Vec<Begun>,
    texts: usize,
    parses: usize,
}

impl Climber<'_> {
    /// Puts a token behind the text, and hands it on.
    fn with(&mut self, token: &str, then: impl FnOnce(&mut Self)) {
        let (len, begun) = (self.text.len(), self.begun.len());
        self.text.push_str(token);
        for end in len + 1..=self.text.len() {
            if self.text.is_char_boundary(end) {
                let mut parser = self.readers.parser(Entry::Text);
                let events = merge(parser.feed(&self.text[..end]));
                self.begun.push(Begun {
                    len: end,
                    parser,
                    events,
                });
            }
        }
        then(self);
        self.text.truncate(len);
        self.begun.truncate(begun);
    }

    /// The text, and all below it.
    fn climb(&mut self, tokens: u64) {
        self.check();
        if tokens < self.most && !self.disagreements.are_enough() {
            for token in self.tokens {
                self.with(token, |climber| climber.climb(tokens + 1));
            }
        }
    }

    fn check(&mut self) {
        let expected = self.oracle.read(&self.text);
        self.texts += 1;
        if self.texts.is_multiple_of(SHARE) {
            self.check_other_doors(&expected);
        }
        self.parses += self.begun.len();
        let all = || self.begun.iter().all(|begun| self.agrees(begun, &expected));
        if !catch_unwind(AssertUnwindSafe(all)).unwrap_or(false) {
            let each = |begun: &&Begun| {
                !catch_unwind(AssertUnwindSafe(|| self.agrees(begun, &expected))).unwrap_or(false)
            };
            let cut = self.begun.iter().find(each).map_or(0, |begun| begun.len);
            self.note(Entry::Text, &[cut]);
        }
    }

    /// The same through the other entries, and in the smallest pieces through all.
    fn check_other_doors(&mut self, expected: &[Merged]) {
        for entry in Entry::ALL {
            let edges = entry.edges(&self.text);
            let mut ways = vec![edges.clone()];
            if entry != Entry::Text {
                ways.extend(edges.iter().map(|&edge| vec![edge]));
            }
            self.parses += ways.len();
            for cuts in ways {
                if !agree(&self.readers, entry, &self.text, &cuts, expected) {
                    self.note(entry, &cuts);
                }
            }
        }
    }

    fn note(&self, entry: Entry, cuts: &[usize]) {
        let place = "a short text";
        self.disagreements
            .note(&self.text, self.options, entry, cuts, place);
    }

    /// Whether the text, split there, is read as expected.
    fn agrees(&self, begun: &Begun, expected: &[Merged]) -> bool {
        let parser = begun.parser.clone();
        let rest = Some(&self.text[begun.len..]).filter(|rest| !rest.is_empty());
        Agreement::after(expected, &self.text, &begun.events)
            .is_some_and(|agreement| agrees(agreement, parser, rest))
    }
}

/// Tries every text of up to `most` tokens. Returns how many texts and parses there were.
fn check_short_texts(
    (words, tokens): &Alphabet,
    most: u64,
    disagreements: &Disagreements,
) -> (usize, usize) {
    let options = Options::of_words(words.split(' '));
    let next = AtomicUsize::new(0);
    let count = Mutex::new((0, 0));
    let climb = || {
        let mut climber = Climber {
            tokens,
            most,
            options: &options,
            oracle: Oracle::new(&options),
            readers: Readers::new(&options),
            disagreements,
            text: String::new(),
            begun: Vec::new(),
            texts: 0,
            parses: 0,
        };
        loop {
            // The texts below each text of two tokens, by turns.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (first, second) = (number / tokens.len(), number % tokens.len());
            let Some(token) = tokens.get(first) else {
                break;
            };
            if number == 0 {
                climber.check();
            }
            climber.with(token, |climber| {
                if second == 0 && most > 0 {
                    climber.check();
                }
                if most > 1 {
                    climber.with(tokens[second], |climber| climber.climb(2));
                }
            });
        }
        let (texts, parses) = &mut *count.lock().unwrap();
        *texts += climber.texts;
        *parses += climber.parses;
    };
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(climb);
        }
    });
    count.into_inner().unwrap()
}

#[test]
fn every_short_text_is_read_as_the_oracle_reads_it() {
    let most = setting("ORACLE_TOKENS", 5);
    let disagreements = Disagreements::default();
    let (mut texts, mut parses) = (0, 0);
    for alphabet in ALPHABETS {
        let counts = check_short_texts(alphabet, most, &disagreements);
        texts += counts.0;
        parses += counts.1;
        eprintln!("{}: {} texts, {} parses", alphabet.0, counts.0, counts.1);
    }
    println!(
        "short texts: {} alphabets, all {texts} texts of up to {most} tokens, {parses} parses; one text in {SHARE} through \
         every entry",
        ALPHABETS.len()
    );
    disagreements.done();
}

/// Texts that are seldom among random ones, and too long to be among the short ones.
const SELDOM: &[(&str, &str)] = &[
    // On one line neither syntax finds a header, so both have looked as far as its end.
    (
        "auto",
        "\u{1F6E0}[!!!GADGET_START: - -\n!!!GADGET_START:A\n!!!GADGET_END",
    ),
];

#[test]
fn seldom_texts_are_read_as_the_oracle_reads_them() {
    let disagreements = Disagreements::default();
    for (words, text) in SELDOM {
        let options = Options::of_words(words.split(' '));
        let (readers, expected) = (Readers::new(&options), oracle(text, &options));
        for entry in Entry::ALL {
            let edges = entry.edges(text);
            let single = edges.iter().map(|&edge| vec![edge]);
            for cuts in single.chain([edges.clone()]) {
                if !agree(&readers, entry, text, &cuts, &expected) {
                    disagreements.note(text, &options, entry, &cuts, "a seldom text");
                }
            }
        }
    }
    disagreements.done();
}
