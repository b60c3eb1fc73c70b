//! Arbitrary texts: random options, random texts of difficult input, random chunks. The same seed gives the same texts.

use plaincall_syntax::Syntax;

use crate::oracle::Options;

/// The random number generator of all tests, xorshift64*.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that always gives the same numbers for one seed.
    pub fn new(seed: u64) -> Self {
        // Zero is the one state that the generator never leaves.
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        let number = (self.next() >> 32) as usize;
        number % limit
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[4]
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// True in `chance` of a hundred cases on average.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of these values.
    pub fn pick<T: Clone>(&mut self, pool: &[T]) -> T {
        pool[self.below(pool.len())].clone()
    }
}

/// Start, end and argument markers that overlap themselves, begin or hold one another, or look like blanks, fences or
/// the other syntax.
pub const MARKERS: &[[&str; 3]] = &[
    ["<s>", "<e>", "<a>"],
    ["##", "####", "###"],
    ["<<", "<<<", "<<<<"],
    ["aba", "abab", "ababa"],
    ["xx", "xxx", "xy"],
    ["!!", "!a!", "!!a"],
    ["--start", "--end", "--"],
    ["@@:", "@@", "@@@:"],
    ["<<<START:", "<<<END:", "@param:"],
    ["START", "END", "ENDARG"],
    ["a:b", "b:c", "c:a"],
    [" s", " e", " a"],
    ["s ", "e ", "e  "],
    ["\t<", " <", "<\t"],
    ["  ", "   ", " \t"],
    ["```s", "```e", "``"],
    ["~~~", "~~~~", "```"],
    ["\u{1F6E0}\u{FE0F}[s", "\u{1F6E0}\u{FE0F}", "\u{1F6E0}["],
    ["]s", "[/end]", "s]"],
    ["\u{E9}\u{E9}", "\u{E9}\u{E8}", "\u{E8}\u{E9}"],
    ["\u{65E5}\u{672C}", "\u{65E5}\u{65E5}", "\u{672C}\u{65E5}"],
    ["<think", "</think>x", "think>"],
    ["_s", "1e", "aa"],
    ["\"s'", "'e`", "`a\""],
    [",,", "::", ",:"],
];

/// Open and close markers of reasoning that overlap other markers.
pub const REASONING: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<think>", "</think>"),
    ("<<", "<<<"),
    ("aa", "aaa"),
    ("!!!", "!!!ARG"),
    ("\u{1F6E0}\u{FE0F}", "\u{1F6E0}\u{FE0F}[/"),
    ("[[", "]]"),
    (" (", ") "),
    ("###", "##"),
    ("<s>t", "s>"),
];

/// The alphabet of markers, one set for all of a dialect: few letters, so that they overlap in all ways; blanks, what
/// represents invalid bytes, characters whose first bytes are the same.
const LETTERS: &[&[&str]] = &[
    &["a", "b"],
    &["a", "b", "#"],
    &["a", ":", "["],
    &["_", "1", "\""],
    &[" ", "\t", "`"],
    &["\0", "a"],
    &["\u{FFFD}", "a"],
    &["\u{E9}", "\u{E8}"],
    &["\u{65E5}", "\u{65E6}", "x"],
    &["\u{1F6E0}", "\u{FE0F}", "["],
];

/// A marker of two to seven letters.
fn drawn(random: &mut Random, letters: &[&str]) -> String {
    let count = 2 + random.below(6);
    (0..count).map(|_| random.pick(letters)).collect()
}

/// Keys.
pub const KEYS: &[&str] = &["k", "k3v9q2x8", "1", "END", "aA0"];

/// Random options. About one in a hundred makes no dialect.
pub fn options(random: &mut Random) -> Options {
    let syntax = random.pick(&[
        Some(Syntax::Block),
        Some(Syntax::Block),
        Some(Syntax::Emoji),
        None,
    ]);
    let mut options = Options {
        syntax,
        escaped: random.one_in(3),
        ..Options::default()
    };
    // Options of the other syntax are refused, so they are rare here.
    let of_block = syntax != Some(Syntax::Emoji) || random.one_in(200);
    let of_emoji = syntax != Some(Syntax::Block) || random.one_in(200);
    if of_block && random.one_in(2) {
        let [start, end, arg] = if random.one_in(6) {
            let letters = random.pick(LETTERS);
            [(); 3].map(|()| drawn(random, letters))
        } else {
            random.pick(MARKERS).map(str::to_owned)
        };
        let own = |marker: String, random: &mut Random| (!random.one_in(8)).then_some(marker);
        options.start = own(start, random);
        options.end = own(end, random);
        options.arg = own(arg, random);
        if random.one_in(8) {
            std::mem::swap(&mut options.start, &mut options.end);
        }
    }
    options.anywhere = of_block && random.one_in(4);
    options.strict = of_emoji && random.one_in(4);
    options.self_closing = of_emoji && random.one_in(3);
    if random.one_in(5) {
        options.key = Some(random.pick(KEYS).to_owned());
    }
    if random.one_in(4) {
        let (open, close) = random.pick(REASONING);
        options.reasoning = Some((open.to_owned(), close.to_owned()));
        options.in_reasoning = random.one_in(4);
        options.leading = random.one_in(3);
    }
    if random.one_in(300) {
        let bad = random.pick(&["", "x", "a\\b", "a\r", "!!!ARG:"]);
        match random.below(5) {
            0 => options.start = Some(bad.to_owned()),
            3 => options.reasoning = Some((bad.to_owned(), "</think>".to_owned())),
            1 => options.end = Some("e".repeat(60 + random.below(8))),
            2 => options.key = Some(random.pick(&["", "a-b", "\u{E9}"]).to_owned()),
            _ => options.in_reasoning = true,
        }
    }
    options
}

const NAMES: &[&str] = &[
    "A",
    "Calc",
    "create-file",
    "x",
    "my id",
    "_",
    "7",
    "\u{DC}n\u{EF}",
];

const SHARP: &[&str] = &[
    ":",
    ":",
    ",",
    "\"",
    "'",
    "`",
    "]",
    "]",
    "[",
    "/",
    " /]",
    " /",
    "/end]",
    "/x",
    "\\",
    "\\",
    "\\\\",
    "\\\\\\",
    "```",
    "~~~",
    "``",
    "~~",
    "  ```",
    "```json\n",
    "!",
    "!!!",
    "<",
    "#",
    "_",
    "-",
    ".",
    "\u{1F6E0}",
    "\u{FE0F}",
    "\u{11F}",
    "\u{11F}\u{178}\u{203A} \u{EF}\u{B8}",
    "[/end]",
];

const CHARACTERS: &[&str] = &[
    "a",
    "b",
    "e",
    "s",
    "1",
    "END",
    "ED",
    "\u{E9}",
    "\u{65E5}\u{672C}",
    "\u{1F600}",
    "\u{663}",
    "\u{B2}",
    "\u{A0}",
    "\u{2003}",
    "\u{2028}",
    "\u{85}",
    "\u{0}",
    "\u{7F}",
    "\u{FEFF}",
    "\u{300}",
    "\u{2160}",
    "\u{B}",
    "\u{C}",
    "\u{FFFD}",
];

const OTHERS: &[&str] = &[
    "!!!GADGET_START:",
    "!!!GADGET_END",
    "!!!ARG:",
    "\u{1F6E0}\u{FE0F}[",
    "\u{1F6E0}\u{FE0F}[/end]",
    "\u{1F6E0}[",
    "\u{1F6E0}[/end]",
    "\u{11F}\u{178}\u{203A}\u{A0}\u{EF}\u{B8}[",
    "\u{11F}\u{178}\u{203A} \u{EF}\u{B8}[/end]",
    "<think>",
    "</think>",
];

/// The parts of texts for some options.
#[derive(Clone, Debug)]
pub struct Generator<'o> {
    markers: Vec<String>,
    options: &'o Options,
}

impl<'o> Generator<'o> {
    /// A generator for these options.
    pub fn new(options: &'o Options) -> Self {
        Self {
            markers: options.marker_texts(),
            options,
        }
    }

    /// A random text, of 40 to 80 bytes on average; seldom one with a line near the limit.
    pub fn text(&self, random: &mut Random) -> String {
        let mut text = String::new();
        if let Some((open, _)) = &self.options.reasoning
            && self.options.leading
            && random.one_in(2)
        {
            text.push_str(random.pick(&["", "\n", " \r\n\t", "\r", "a"]));
            text.push_str(open);
        }
        if random.one_in(300) {
            self.tokens(3, random, &mut text);
            self.long_line(random, &mut text);
            self.tokens(6, random, &mut text);
            return text;
        }
        let most = match random.below(16) {
            0..2 => 3,
            2..14 => 12,
            14 => 20,
            _ => 40,
        };
        self.tokens(most, random, &mut text);
        text
    }

    /// Fewer tokens than `limit`.
    fn tokens(&self, limit: usize, random: &mut Random, text: &mut String) {
        for _ in 0..random.below(limit) {
            self.token(random, text);
        }
    }

    /// A line about as long as the limit, in characters of one to four bytes, often a header or pointer line.
    fn long_line(&self, random: &mut Random, text: &mut String) {
        if self.options.syntax == Some(Syntax::Block) && random.one_in(2) {
            let [start, _, argument, ..] = &self.markers[..] else {
                return;
            };
            text.extend([start, "A\n", argument]);
        } else if !random.one_in(4) {
            text.push_str(self.marker(random));
        }
        let character = random.pick(&["a", "a", "\u{E9}", "\u{65E5}", "\u{1F600}", " "]);
        let length = 4090 + random.below(12);
        text.push_str(&"b".repeat(random.below(4)));
        text.push_str(&character.repeat(length / character.len()));
        text.push_str(random.pick(&["", "]", "\n", "\r\n", "\r"]));
    }

    fn token(&self, random: &mut Random, text: &mut String) {
        match random.below(20) {
            0..3 => text.push_str(self.marker(random)),
            3..8 => self.idiom(random, text),
            8 => self.half(random, text),
            9 => self.with_backslashes(random, text),
            10..13 => text
                .push_str(random.pick(&["\n", "\n", "\n", "\n\n", "\r\n", "\r\n", "\r", "\r\r\n"])),
            13 => {
                let blanks = random.pick(&[1, 1, 1, 2, 15, 16, 16, 17]);
                let blank = random.pick(&[" ", " ", " ", "\t"]);
                text.push_str(&blank.repeat(blanks));
            }
            14..16 => text.push_str(random.pick(SHARP)),
            16 => text.push_str(random.pick(NAMES)),
            17 => text.push_str(random.pick(OTHERS)),
            _ => text.push_str(random.pick(CHARACTERS)),
        }
    }

    /// A stretch of a call as it should be written, so that texts often contain calls.
    fn idiom(&self, random: &mut Random, text: &mut String) {
        let block = match self.options.syntax {
            Some(syntax) => syntax == Syntax::Block,
            None => random.one_in(2),
        };
        let name = random.pick(NAMES);
        let line_end = random.pick(&["\n", "\n", "\n", "\r\n", "", " "]);
        let opening = random.pick(&["\n", "\n", "\n", "\r\n", "", " "]);
        let mut first = 0;
        if !block {
            let signs = if self.options.strict { 1 } else { 4 };
            first = 2 * random.below(signs);
            if self.options.syntax.is_none() {
                first += 3;
            }
        }
        let [start, end, arg] = [0, 1, 2].map(|index| self.markers.get(first + index));
        let [start, end, arg] = [start, end, arg].map(|marker| marker.map_or("", String::as_str));
        match (block, random.below(4)) {
            (true, 0 | 1) => {
                let rest = random.pick(&[
                    "",
                    "",
                    "",
                    ":i",
                    ":i:d",
                    ":",
                    "::d,e",
                    ":i:d:e",
                    ": i : d, ,e ",
                ]);
                text.extend([start, name, rest, line_end]);
            }
            (true, 2) => text.extend([opening, arg, "x", line_end]),
            (true, _) => text.extend([opening, end, line_end]),
            (false, 0..3) => {
                let rest = random.pick(&["", "", " x", "  x y ", " /", " x /", "\t/"]);
                text.extend([start, name, rest, "]", line_end]);
            }
            (false, _) => text.extend([opening, end]),
        }
    }

    fn marker(&self, random: &mut Random) -> &str {
        &self.markers[random.below(self.markers.len())]
    }

    fn half(&self, random: &mut Random, text: &mut String) {
        let marker = self.marker(random);
        let edges: Vec<usize> = marker.char_indices().map(|(at, _)| at).collect();
        let at = random.pick(&edges);
        text.push_str(if random.one_in(3) {
            &marker[at..]
        } else {
            &marker[..at]
        });
    }

    fn with_backslashes(&self, random: &mut Random, text: &mut String) {
        let marker = self.marker(random);
        let last = marker.chars().next_back().unwrap_or_default();
        text.push_str(&marker[..marker.len() - last.len_utf8()]);
        text.push_str(random.pick(&["\\", "\\", "\\\\", "\\\\\\"]));
        text.push(last);
    }
}

/// Random positions to split a text at, in order, each at the edge of a character.
pub fn cuts(random: &mut Random, text: &str) -> Vec<usize> {
    let edges: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    if edges.is_empty() {
        return Vec::new();
    }
    match random.below(8) {
        0 => Vec::new(),
        1 if text.len() < 4000 => edges,
        seldom => {
            let mut cuts: Vec<usize> = (0..=random.below(seldom))
                .map(|_| random.pick(&edges))
                .collect();
            cuts.sort_unstable();
            cuts
        }
    }
}

/// Random bytes: the text with invalid UTF-8 in it.
pub fn bytes(random: &mut Random, text: &str) -> Vec<u8> {
    const PARTS: &[&[u8]] = &[
        b"\xFF",
        b"\x80",
        b"\xC0\x80",
        b"\xE2\x82",
        b"\xF0\x9F\x9B",
        b"\xF0\x9F",
        b"\xED\xA0\x80",
        b"\xF4\x90\x80\x80",
        b"\xEF\xB8",
        b"\xC4",
        b"\xF0\x80",
        b"\xE2",
    ];
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len() + 1);
        if random.one_in(3) && at < bytes.len() {
            bytes.remove(at);
        } else {
            bytes.splice(at..at, random.pick(PARTS).iter().copied());
        }
    }
    bytes
}
