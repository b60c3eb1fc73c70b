//! Code fences in a value, read as Markdown (`spec/block.md` 5.2).

/// The maximum number of blanks before a fence.
const BLANKS: usize = 3;
/// The minimum length of a fence.
const SHORTEST: usize = 3;
/// The longest line that may be a fence around arguments, in bytes.
const LONGEST: usize = 64;

/// Follows the fences of a text byte by byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fences {
    /// The character and the length of the fence that is open.
    open: Option<(u8, usize)>,
    line: Line,
}

/// The current line.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// This many blanks.
    Blank(usize),
    /// This many marks.
    Marks(u8, usize),
    /// The text after the marks.
    Info {
        fence: (u8, usize),
        is_blank: bool,
        /// Whether the last byte was a carriage return, which may belong to the line end.
        is_return: bool,
    },
    Other,
}

impl Default for Line {
    fn default() -> Self {
        Self::Blank(0)
    }
}

impl Line {
    /// Returns whether the line may become a bare fence.
    fn may_be_bare(self) -> bool {
        match self {
            Self::Blank(_) | Self::Marks(..) => true,
            Self::Info { is_blank, .. } => is_blank,
            Self::Other => false,
        }
    }

    /// Returns the fence of the line, and whether it is bare.
    fn fence(self) -> Option<((u8, usize), bool)> {
        match self {
            Self::Marks(mark, length) if length >= SHORTEST => Some(((mark, length), true)),
            Self::Info {
                fence, is_blank, ..
            } => Some((fence, is_blank)),
            _ => None,
        }
    }
}

impl Fences {
    /// Takes the next byte.
    pub(crate) fn take(&mut self, byte: u8) {
        if byte == b'\n' {
            if let Some((fence, is_bare)) = self.line.fence() {
                let is_closed = |(mark, least)| is_bare && fence.0 == mark && fence.1 >= least;
                self.open = match self.open {
                    None => Some(fence),
                    open => open.filter(|open| !is_closed(*open)),
                };
            }
            self.line = Line::default();
            return;
        }
        self.line = match (self.line, byte) {
            (Line::Blank(count), b' ') if count < BLANKS => Line::Blank(count + 1),
            (Line::Blank(_), b'`' | b'~') => Line::Marks(byte, 1),
            (Line::Marks(mark, count), _) if byte == mark => Line::Marks(mark, count + 1),
            (Line::Marks(mark, count), _) if count >= SHORTEST => Line::Info {
                fence: (mark, count),
                is_blank: matches!(byte, b' ' | b'\t' | b'\r'),
                is_return: byte == b'\r',
            },
            // The text after backticks has none.
            (
                Line::Info {
                    fence: (b'`', _), ..
                },
                b'`',
            ) => Line::Other,
            (
                Line::Info {
                    fence,
                    is_blank,
                    is_return,
                },
                _,
            ) => Line::Info {
                fence,
                is_blank: is_blank && !is_return && matches!(byte, b' ' | b'\t' | b'\r'),
                is_return: byte == b'\r',
            },
            _ => Line::Other,
        };
    }

    /// Returns where the last line of a text that continues the text so far begins, if it is a bare fence that closes nothing; with
    /// `is_open`, also if it may become one.
    pub(crate) fn last_line(mut self, text: &[u8], is_open: bool) -> Option<usize> {
        let mut begin = None;
        let mut last = self;
        for (at, byte) in text.iter().enumerate() {
            if matches!(self.line, Line::Blank(0)) {
                begin = Some(at);
            }
            last = self;
            self.take(*byte);
            if *byte != b'\n' {
                last = self;
            }
        }
        let begin = begin?;
        let length = text.len() - begin;
        let is_bare = last.line.fence().is_some_and(|(_, is_bare)| is_bare);
        let may_be = is_bare || (is_open && last.line.may_be_bare());
        (last.open.is_none() && may_be && length <= LONGEST).then_some(begin)
    }
}

/// Returns whether the last line of a text is a bare code fence that closes nothing in it, as Markdown reads it.
pub fn closes_nothing(text: &str) -> bool {
    let mut fences = Fences::default();
    text.bytes().for_each(|byte| fences.take(byte));
    fences.open.is_none() && fences.line.fence().is_some_and(|(_, is_bare)| is_bare)
}
