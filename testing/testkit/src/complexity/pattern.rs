//! Difficult texts: repeated pieces of strings that the code looks for.

use std::fmt;

use plaincall_oracle::arbitrary_texts::Random;
use plaincall_syntax::{Dialect, MarkerUse, Syntax};

/// In a piece: replaced with the number of units written so far.
const INDEX: char = '\u{E000}';
/// In a piece: replaced with invalid bytes.
pub(super) const INVALID: char = '\u{E001}';

/// Difficult pieces for parsers of any dialect, of JSON, numbers and pointers.
const COMMON: &[&str] = &[
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "                 ",
    ":",
    ",",
    "::",
    ": ,",
    "a",
    "A",
    "A\n",
    "x y",
    "/",
    "a/",
    "~1",
    "~",
    "-",
    "\\",
    "\\\\",
    "```",
    "```json\n",
    "```tool_call",
    "<tool_call>",
    "<function=",
    "[TOOL_CALLS]",
    "[TOOL_CALLS]A[ARGS]",
    "</tool_call>",
    "<function=A>",
    "<parameter=x>",
    "</parameter>",
    "</function>",
    "{\"name\":\"A\",\"arguments\":{",
    "{\"name\":\"",
    "\"arguments\":",
    "\u{1F527}[",
    "\u{1F527}[/end]",
    "\u{FF01}\u{FF01}\u{FF01}",
    "~~~",
    "\n```\n",
    "`",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    "[]",
    "{}",
    "{\"a\":",
    "\"a\":1,",
    "[[",
    "]]",
    "\\u0041",
    "\\ud83d",
    "\\n",
    "0",
    "1",
    "00",
    "1.",
    ".5",
    "e9",
    "-1",
    "1,",
    "null",
    "true",
    "nul",
    "_",
    "__",
    "a_",
    "\u{E9}",
    "\u{65E5}",
    "\u{1F600}",
    "\u{1F6E0}",
    "\u{FE0F}",
    "\u{200B}",
    "\u{A0}",
    "\u{E000}",
    "\u{E000},",
    "\"\u{E000}\":1,",
    "\u{E001}",
    "\u{0}",
    "/end]",
    "[/end]",
    "> ",
    "</",
    "<",
    "$ref",
    "{\"$ref\":\"#\"}",
    "*",
    "?",
];

/// A text of any length: a beginning, a unit repeated in each half, a text between the halves, and an end.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) begin: String,
    pub(super) unit: String,
    pub(super) middle: String,
    /// The unit of the second half. If it is empty, the first unit continues.
    pub(super) second: String,
    pub(super) end: String,
}

impl Pattern {
    /// Returns a pattern of a beginning and a unit.
    pub(super) fn of(begin: &str, unit: &str) -> Self {
        Self {
            begin: begin.to_owned(),
            unit: unit.to_owned(),
            middle: String::new(),
            second: String::new(),
            end: String::new(),
        }
    }

    /// Returns the text with about `len` bytes.
    pub(super) fn text(&self, len: usize) -> String {
        let mut text = String::with_capacity(len + 256);
        text.push_str(&self.begin);
        let half = if self.second.is_empty() { len } else { len / 2 };
        fill(&mut text, &self.unit, half);
        text.push_str(&self.middle);
        fill(&mut text, &self.second, len);
        text.push_str(&self.end);
        text
    }

    /// Returns simpler patterns: without one of the parts, or with a shorter unit.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let mut simpler = Vec::new();
        let without: [fn(&mut Self); 5] = [
            |pattern| pattern.begin.clear(),
            |pattern| pattern.middle.clear(),
            |pattern| pattern.second.clear(),
            |pattern| pattern.end.clear(),
            |pattern| pattern.unit = std::mem::take(&mut pattern.second),
        ];
        for change in without {
            let mut one = self.clone();
            change(&mut one);
            if one != *self && !one.unit.is_empty() {
                simpler.push(one);
            }
        }
        for (at, _) in self.unit.char_indices().skip(1) {
            let (before, behind) = self.unit.split_at(at);
            for unit in [before, behind] {
                simpler.push(Self {
                    unit: unit.to_owned(),
                    ..self.clone()
                });
            }
        }
        simpler
    }
}

/// Appends a unit until the text has `len` bytes.
fn fill(text: &mut String, unit: &str, len: usize) {
    let mut index = 0;
    while !unit.is_empty() && text.len() < len {
        if unit.contains(INDEX) {
            text.push_str(&unit.replace(INDEX, &index.to_string()));
        } else {
            text.push_str(unit);
        }
        index += 1;
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            begin,
            unit,
            middle,
            second,
            end,
        } = self;
        write!(formatter, "{begin:?} + {unit:?}…")?;
        if !middle.is_empty() || !second.is_empty() {
            write!(formatter, " + {middle:?} + {second:?}…")?;
        }
        if end.is_empty() {
            Ok(())
        } else {
            write!(formatter, " + {end:?}")
        }
    }
}

/// The pieces of the patterns for one dialect.
pub(super) struct Pieces {
    /// Markers: whole, incomplete, escaped, and followed by the rest of a call.
    own: Vec<String>,
    /// Beginnings of a call and of a value.
    openings: Vec<String>,
}

impl Pieces {
    pub(super) fn new(dialect: &Dialect) -> Self {
        let mut own = Vec::new();
        let mut openings = Vec::new();
        let markers = dialect.markers().expect("a valid dialect");
        let argument = markers
            .iter()
            .find(|marker| marker.usage == MarkerUse::Argument)
            .map_or("", |marker| &marker.text);
        for marker in &markers {
            let text = &marker.text;
            let last = text.char_indices().next_back().map_or(0, |(at, _)| at);
            let (stem, last) = text.split_at(last);
            let first: String = text.chars().take(1).collect();
            own.extend([
                text.clone(),
                text.clone(),
                format!("{text} "),
                format!("{text}\n"),
                format!("\n{text}"),
                stem.to_owned(),
                format!("{stem}\\"),
                format!("{stem}\\{last}"),
                format!("{stem} "),
                text.to_lowercase(),
                first,
            ]);
            let idioms: &[&str] = match marker.usage {
                MarkerUse::Start(Syntax::Block) => &[
                    "A\n",
                    "A:\u{E000}\n",
                    "A:i\u{E000}:a,b\n",
                    "A::\u{E000}\n",
                    "A",
                    "B:b:a:c\n",
                    "a b\n",
                ],
                MarkerUse::Argument => &[
                    "x\n1\n",
                    "x\n",
                    "x/\u{E000}\n1\n",
                    "list/\u{E000}\n\u{E000}\n",
                    "o/k\u{E000}\nv\n",
                    "\u{E000}\n{}\n",
                    "a/b/c/d\n[1]\n",
                    "list/0\n1\n",
                    "s\n",
                ],
                MarkerUse::Start(Syntax::Emoji) => {
                    &["A]\n", "A", "A x]", "A \u{E000}]\nx", "]", " ", "/"]
                }
                _ => &["\n", " \n", "x\n"],
            };
            own.extend(idioms.iter().map(|idiom| format!("{text}{idiom}")));
            match marker.usage {
                MarkerUse::Start(Syntax::Block) => {
                    openings.push(format!("{text}A\n"));
                    for pointer in ["x", "s", "list", "n"] {
                        openings.push(format!("{text}A\n{argument}{pointer}\n"));
                    }
                    openings.push(format!("{text}A\n{argument}x"));
                    openings.push(format!("{text}A"));
                    openings.push(format!("{text}A:i:"));
                }
                MarkerUse::Start(Syntax::Emoji) => {
                    openings.push(format!("{text}A]\n"));
                    openings.push(format!("{text}A x"));
                }
                MarkerUse::Reasoning => openings.push(text.clone()),
                _ => {}
            }
        }
        Self { own, openings }
    }

    /// Returns a random pattern.
    pub(super) fn draw(&self, random: &mut Random) -> Pattern {
        let mut begin = String::new();
        if !random.one_in(3) {
            begin.push_str(&self.openings[random.below(self.openings.len())]);
        }
        if random.one_in(4) {
            begin.push_str(self.piece(random));
        }
        let mut pattern = Pattern::of(&begin, &self.unit(random));
        if random.one_in(3) {
            pattern.middle = self.some(1, random);
            pattern.second = self.unit(random);
        }
        if random.one_in(3) {
            pattern.end = self.some(2, random);
        }
        pattern
    }

    /// Returns one to three pieces; sometimes one of them is repeated many times.
    fn unit(&self, random: &mut Random) -> String {
        let mut unit = self.piece(random).to_owned();
        if random.one_in(10) {
            unit = unit.repeat(2 + random.below(30));
        }
        unit + &self.some(2, random)
    }

    fn some(&self, most: usize, random: &mut Random) -> String {
        let count = random.below(most + 1);
        (0..count).map(|_| self.piece(random)).collect()
    }

    fn piece(&self, random: &mut Random) -> &str {
        if random.one_in(2) {
            &self.own[random.below(self.own.len())]
        } else {
            COMMON[random.below(COMMON.len())]
        }
    }
}
