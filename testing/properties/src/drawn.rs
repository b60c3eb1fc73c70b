//! A dialect, a text and its chunks, made of the fuzzer's bytes.

use plaincall_syntax::Syntax;
use plaincall_testkit::arbitrary_texts;
use plaincall_testkit::oracle::Options;

/// The number of letters that one control character represents. Four of them and some more make a line at its limit.
const LETTERS: usize = 1022;

/// The form of the next marker.
enum Mode {
    Whole,
    /// With a backslash before its last character.
    Escaped,
    /// Without its last character.
    Begun,
}

/// The input of a target.
pub(crate) struct Drawn {
    /// Valid options of a dialect.
    pub(crate) options: Options,
    /// Sizes of chunks, used in turn.
    pub(crate) sizes: [usize; 2],
    /// The remaining bytes.
    rest: Vec<u8>,
}

impl Drawn {
    /// Reads six bytes as options. With the last set of markers, the texts before the first three NULs of the rest are the
    /// markers of the block syntax. Returns none if there are too few bytes or the options are invalid.
    pub(crate) fn new(data: &[u8]) -> Option<Self> {
        let (choice, mut rest) = data.split_first_chunk::<6>()?;
        let [form, flags, markers, others, one, two] = *choice;
        let syntax = [Some(Syntax::Block), Some(Syntax::Emoji), None][usize::from(form) % 3];
        let is_set = |bit: u8| flags >> bit & 1 == 1;
        let mut options = Options {
            syntax,
            escaped: is_set(0),
            anywhere: is_set(1) && syntax != Some(Syntax::Emoji),
            strict: is_set(2) && syntax != Some(Syntax::Block),
            self_closing: is_set(3) && syntax != Some(Syntax::Block),
            key: pick(arbitrary_texts::KEYS, others & 15).map(|key| (*key).to_owned()),
            ..Options::default()
        };
        if let Some((open, close)) = pick(arbitrary_texts::REASONING, others >> 4) {
            options.reasoning = Some(((*open).to_owned(), (*close).to_owned()));
            options.in_reasoning = is_set(4);
            options.leading = is_set(7);
        }
        if syntax != Some(Syntax::Emoji) {
            let mut own = pick(arbitrary_texts::MARKERS, markers).map(|own| own.map(str::to_owned));
            if markers == u8::MAX {
                let mut part = || {
                    let end = rest.iter().position(|byte| *byte == 0)?;
                    let marker = String::from_utf8_lossy(&rest[..end]).into_owned();
                    rest = &rest[end + 1..];
                    Some(marker)
                };
                own = Some([part()?, part()?, part()?]);
            }
            if let Some([start, end, arg]) = own {
                options.start = Some(start);
                options.end = Some(end).filter(|_| !is_set(5));
                options.arg = Some(arg).filter(|_| !is_set(6));
            }
        }
        let is_refused = options.dialect().check().is_err();
        assert_eq!(is_refused, options.are_refused(), "{options:?}");
        let sizes = [usize::from(one) % 61 + 1, usize::from(two) % 7 + 1];
        (!is_refused).then(|| Self {
            options,
            sizes,
            rest: rest.to_vec(),
        })
    }

    /// Returns the rest with markers in place of control characters, so that the fuzzer need not find those of each
    /// dialect. Three more escape or truncate the next marker, or represent many letters.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let markers = self.options.marker_texts();
        let mut bytes = Vec::new();
        let mut mode = Mode::Whole;
        for &byte in &self.rest {
            let index = match byte {
                1..=8 => usize::from(byte) - 1,
                0x0E..=0x13 => usize::from(byte) - 6,
                0x14 => {
                    mode = Mode::Escaped;
                    continue;
                }
                0x15 => {
                    mode = Mode::Begun;
                    continue;
                }
                0x16 => {
                    bytes.resize(bytes.len() + LETTERS, b'x');
                    continue;
                }
                _ => usize::MAX,
            };
            let Some(marker) = markers.get(index) else {
                bytes.push(byte);
                continue;
            };
            let last = marker.char_indices().next_back().map_or(0, |(at, _)| at);
            let (stem, end) = marker.split_at(last);
            bytes.extend_from_slice(stem.as_bytes());
            match std::mem::replace(&mut mode, Mode::Whole) {
                Mode::Whole => bytes.extend_from_slice(end.as_bytes()),
                Mode::Escaped => {
                    bytes.push(b'\\');
                    bytes.extend_from_slice(end.as_bytes());
                }
                Mode::Begun => {}
            }
        }
        bytes
    }

    /// Returns the same as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

/// Returns an entry of a table, or none for most bytes, which leave the default.
fn pick<T>(table: &'static [T], byte: u8) -> Option<&'static T> {
    table.get(usize::from(byte).checked_sub(1)?)
}

/// Splits the bytes into parts of these sizes, used in turn.
pub(crate) fn cut_bytes<'b>(bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (part, behind) = rest.split_at(size.min(rest.len()));
        parts.push(part);
        rest = behind;
    }
    parts
}
