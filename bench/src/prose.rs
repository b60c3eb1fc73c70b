//! Text that resembles a model's replies, the same in every run.

/// Words of plain prose; a few have characters of several bytes.
const WORDS: &[&str] = &[
    "the", "a", "of", "and", "to", "in", "is", "that", "it", "for", "with", "as", "on", "we",
    "can", "file", "first", "then", "harbour", "ship", "result", "because", "check", "again",
    "which", "small", "change", "will", "line", "value", "before", "after", "should", "read",
    "write", "number", "between", "however", "café", "naïve", "über", "both", "sides", "measure",
    "table", "answer", "question", "simple", "step", "next", "list", "keeps", "there",
];
const EMOJI: &[&str] = &["😀", "🚀", "✅", "🔧", "🛠️ done", "🎉", "⚠️"];
const CODE_NAMES: &[&str] = &[
    "total", "count", "index", "name", "buffer", "is_ready", "path", "limit",
];

/// Writes text by a fixed sequence of pseudo-random numbers (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Writer {
    state: u64,
    emoji: bool,
}

impl Writer {
    /// Plain prose.
    pub(crate) const fn plain(seed: u64) -> Self {
        Self {
            state: seed,
            emoji: false,
        }
    }

    /// Prose with an emoji in about every second sentence.
    pub(crate) const fn emoji(seed: u64) -> Self {
        Self {
            state: seed,
            emoji: true,
        }
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // The upper half is sufficient, and fits on every platform.
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap_or_default() % bound.max(1)
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        let index = self.below(from.len());
        from.get(index).copied().unwrap_or_default()
    }

    /// Adds prose in paragraphs to `text` until it has at least `len` bytes more; ends with a line end.
    pub(crate) fn prose(&mut self, text: &mut String, len: usize) {
        let goal = text.len() + len;
        loop {
            for _ in 0..3 + self.below(4) {
                self.sentence(text);
            }
            if text.len() >= goal {
                text.push('\n');
                return;
            }
            text.push_str("\n\n");
        }
    }

    /// Adds one sentence and a blank to `text`.
    pub(crate) fn sentence(&mut self, text: &mut String) {
        for _ in 0..6 + self.below(10) {
            text.push_str(self.pick(WORDS));
            text.push(' ');
        }
        text.push_str(self.pick(WORDS));
        if self.emoji && self.below(2) == 0 {
            text.push(' ');
            text.push_str(self.pick(EMOJI));
        }
        // Every tenth sentence is an exclamation, so the first byte of the markers also occurs without a marker.
        text.push_str(match self.below(20) {
            0 => "! ",
            1 => "!!! ",
            2 | 3 => "? ",
            _ => ". ",
        });
    }

    /// Adds lines that look like code to `text` until it has at least `len` bytes more; ends without a line end.
    pub(crate) fn code(&mut self, text: &mut String, len: usize) {
        let goal = text.len() + len;
        loop {
            let (name, other) = (self.pick(CODE_NAMES), self.pick(CODE_NAMES));
            match self.below(4) {
                0 => {
                    text.push_str("    if !");
                    text.push_str(name);
                    text.push_str(" && ");
                    text.push_str(other);
                    text.push_str(" != 0 {");
                }
                1 => {
                    text.push_str("    // ");
                    self.sentence(text);
                    text.pop();
                }
                2 => text.push_str("    }"),
                _ => {
                    text.push_str("        ");
                    text.push_str(name);
                    text.push_str(" = \"");
                    text.push_str(other);
                    text.push_str("\" + ");
                    text.push_str(&self.below(1000).to_string());
                    text.push(';');
                }
            }
            if text.len() >= goal {
                return;
            }
            text.push('\n');
        }
    }
}
