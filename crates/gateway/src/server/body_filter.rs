//! Replaces the gateway's keys, finish reasons and line separators in response bodies.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem::Finder;
use plaincall_wire::openai::api_finish_reason;

/// The shortest key that is redacted, in bytes. Shorter keys could be ordinary words.
pub(crate) const MIN_KEY: usize = 8;
pub(crate) const REDACTED: &str = "[key]";

/// How often a key is searched for in JSON that is the string of another JSON: once in a body, and once in the arguments of a call.
const LEVELS: usize = 2;
/// The most bytes for a byte of a key: six for an escape, and six for each of these.
#[cfg(test)]
const LONGEST_SPELLING: usize = 36;

const FINISH_REASON: &[u8] = b"\"finish_reason\"";
/// How many bytes after it are examined: the colon, the value and whitespace.
const MAX_REASON: usize = 256;
/// Characters that some clients treat as line ends, and their JSON escapes.
const SEPARATORS: [(&[u8], &[u8]); 3] = [
    (b"\xC2\x85", b"\\u0085"),
    (b"\xE2\x80\xA8", b"\\u2028"),
    (b"\xE2\x80\xA9", b"\\u2029"),
];

/// The keys to redact: the longest first, without those that are too short.
pub(crate) type RedactedKeys = Arc<[String]>;

/// Returns the keys that are long enough to be redacted.
pub(crate) fn redacted_keys<'k>(keys: impl IntoIterator<Item = &'k str>) -> RedactedKeys {
    let keys = keys.into_iter().filter(|key| key.len() >= MIN_KEY);
    let mut keys: Vec<String> = keys.map(str::to_owned).collect();
    keys.sort_by_key(|key| Reverse(key.len()));
    keys.dedup();
    keys.into()
}

/// Changes a body that is sent in pieces (`spec/gateway.md` 7), independently of how it is split. It holds back at most
/// 36 times the length of the longest key, or a few hundred bytes.
#[derive(Clone, Debug)]
pub(crate) struct BodyFilter {
    keys: RedactedKeys,
    kind: BodyKind,
    begins: Pairs,
    held: Bytes,
    /// Whether a backslash before the next byte escapes it.
    is_escaped: bool,
}

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// JSON, in which finish reasons are mapped.
    Json,
    /// JSON in events. Line separators are escaped too.
    Events,
    /// Anything else. Only the key is replaced.
    Other,
}

enum Match {
    None,
    /// A possible match that needs more bytes.
    Partial,
    /// The number of bytes to replace, and their replacement.
    Full(usize, Cow<'static, [u8]>),
}

/// The pairs of bytes with which a match may begin. A quotation mark alone would begin too many.
type Pairs = Arc<[Finder<'static>]>;

/// The positions in a text where a match may begin.
struct Begins<'t> {
    text: &'t [u8],
    /// Each pair, and where it is next.
    pairs: Vec<(&'t Finder<'static>, usize)>,
}

impl<'t> Begins<'t> {
    fn new(text: &'t [u8], pairs: &'t Pairs) -> Self {
        let place = |pair: &'t Finder<'static>| (pair, pair.find(text).unwrap_or(usize::MAX));
        Self {
            text,
            pairs: pairs.iter().map(place).collect(),
        }
    }

    /// Returns the next position from this one on. The last byte may be the first of a pair.
    fn next(&mut self, from: usize) -> Option<usize> {
        for (pair, next) in self.pairs.iter_mut().filter(|(_, next)| *next < from) {
            let found = pair.find(self.text.get(from..).unwrap_or_default());
            *next = found.map_or(usize::MAX, |found| from + found);
        }
        let next = self.pairs.iter().map(|(_, next)| *next).min();
        let next = next.filter(|next| *next < self.text.len());
        next.or_else(|| {
            let at = self.text.len().checked_sub(1).filter(|at| *at >= from)?;
            let is_first =
                |(pair, _): &(&Finder<'_>, usize)| pair.needle().first() == self.text.last();
            self.pairs.iter().any(is_first).then_some(at)
        })
    }
}

impl BodyFilter {
    /// Creates a filter for a body of this kind, or `None` if nothing in it can change.
    pub(crate) fn new(keys: &RedactedKeys, kind: BodyKind) -> Option<Self> {
        if keys.is_empty() && kind == BodyKind::Other {
            return None;
        }
        let mut begins: Vec<[u8; 2]> = match kind {
            BodyKind::Json => vec![*b"\"f"],
            BodyKind::Events => vec![*b"\"f", *b"\xC2\x85", *b"\xE2\x80"],
            BodyKind::Other => Vec::new(),
        };
        for key in keys.iter() {
            if let [first, second, ..] = *key.as_bytes() {
                begins.extend([[first, second], [first, b'\\'], [b'\\', first]]);
                begins.extend([*b"\\u", *b"\\\\"]);
            }
        }
        begins.sort_unstable();
        begins.dedup();
        let begins = begins.iter().map(|pair| Finder::new(pair).into_owned());
        Some(Self {
            keys: Arc::clone(keys),
            kind,
            begins: begins.collect(),
            held: Bytes::new(),
            is_escaped: false,
        })
    }

    /// Filters the next bytes and returns those that are final. They are not copied if nothing changes.
    pub(crate) fn feed(&mut self, piece: Bytes) -> Bytes {
        let held = std::mem::take(&mut self.held);
        let bytes = if held.is_empty() {
            piece
        } else {
            [held, piece].concat().into()
        };
        self.pass(bytes, false)
    }

    pub(crate) fn finish(&mut self) -> Bytes {
        let bytes = std::mem::take(&mut self.held);
        self.pass(bytes, true)
    }

    fn pass(&mut self, mut bytes: Bytes, is_end: bool) -> Bytes {
        let mut out = Vec::new();
        let (mut copied, mut at, mut held) = (0, 0, None);
        // The first place that is not in the middle of an escape, where replacing it would make the JSON invalid.
        let mut apart = usize::from(self.is_escaped);
        let mut begins = Begins::new(&bytes, &self.begins);
        while let Some(begin) = begins.next(at) {
            let tail = bytes.get(begin..).unwrap_or_default();
            match self.find(tail, begin >= apart, is_end) {
                Match::None => {
                    if begin >= apart && tail.starts_with(b"\\") {
                        apart = begin + 2;
                    }
                    at = begin + 1;
                }
                Match::Partial => {
                    held = Some(begin);
                    break;
                }
                Match::Full(len, text) => {
                    out.extend_from_slice(bytes.get(copied..begin).unwrap_or_default());
                    out.extend_from_slice(&text);
                    at = begin + len;
                    copied = at;
                }
            }
        }
        self.is_escaped = held.unwrap_or(bytes.len()) < apart;
        if let Some(held) = held {
            self.held = Bytes::copy_from_slice(bytes.get(held..).unwrap_or_default());
            bytes.truncate(held);
        }
        if out.is_empty() {
            return bytes;
        }
        out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
        out.into()
    }

    /// Matches the beginning of these bytes, also in JSON unless they begin in the middle of an escape.
    fn find(&self, bytes: &[u8], is_apart: bool, is_end: bool) -> Match {
        let mut is_started = false;
        let levels = if is_apart { LEVELS } else { 0 };
        let keys = self.keys.iter().map(String::as_bytes);
        let keys = keys.flat_map(|key| (0..=levels).map(|level| escaped_key(bytes, key, level)));
        let others = [
            match self.kind {
                BodyKind::Events => separator(bytes),
                BodyKind::Json | BodyKind::Other => Match::None,
            },
            match self.kind {
                BodyKind::Json | BodyKind::Events => finish_reason(bytes),
                BodyKind::Other => Match::None,
            },
        ];
        for found in keys.chain(others) {
            match found {
                // A longer key may begin here.
                Match::Full(..) if is_started && !is_end => return Match::Partial,
                Match::Full(..) => return found,
                Match::Partial => is_started = true,
                Match::None => {}
            }
        }
        if is_started && !is_end {
            Match::Partial
        } else {
            Match::None
        }
    }
}

/// Matches the key in JSON, where any character may be escaped, also the characters of an escape (`level` 2).
fn escaped_key(bytes: &[u8], key: &[u8], level: usize) -> Match {
    let mut at = 0;
    for wanted in key {
        match next_byte(bytes, at, level) {
            Next::Byte(byte, next) if byte == *wanted => at = next,
            Next::End => return Match::Partial,
            Next::Byte(..) | Next::Other => return Match::None,
        }
    }
    Match::Full(at, REDACTED.as_bytes().into())
}

enum Next {
    /// A byte of the text, and the place after it.
    Byte(u8, usize),
    /// A character that no key has.
    Other,
    /// The bytes end before it.
    End,
}

/// Returns the next byte of a text that is a JSON string of so many levels.
fn next_byte(bytes: &[u8], at: usize, level: usize) -> Next {
    let Some(below) = level.checked_sub(1) else {
        return bytes
            .get(at)
            .map_or(Next::End, |byte| Next::Byte(*byte, at + 1));
    };
    let next = match next_byte(bytes, at, below) {
        Next::Byte(b'\\', next) => next,
        other => return other,
    };
    let mut next = match next_byte(bytes, next, below) {
        Next::Byte(b'u', next) => next,
        Next::Byte(byte, next) if b"\"\\/".contains(&byte) => return Next::Byte(byte, next),
        Next::Byte(..) => return Next::Other,
        other => return other,
    };
    let mut code = 0;
    for _ in 0..4 {
        match next_byte(bytes, next, below) {
            Next::Byte(digit, after) => {
                let Some(digit) = char::from(digit).to_digit(16) else {
                    return Next::Other;
                };
                code = code * 16 + digit;
                next = after;
            }
            other => return other,
        }
    }
    let byte = u8::try_from(code).ok().filter(u8::is_ascii);
    byte.map_or(Next::Other, |byte| Next::Byte(byte, next))
}

fn separator(bytes: &[u8]) -> Match {
    for (character, escape) in SEPARATORS {
        if bytes.starts_with(character) {
            return Match::Full(character.len(), escape.into());
        }
        if character.starts_with(bytes) {
            return Match::Partial;
        }
    }
    Match::None
}

/// Matches a finish reason that the API does not define. Inside a JSON string, its quotes would have backslashes.
fn finish_reason(bytes: &[u8]) -> Match {
    let Some(rest) = bytes.strip_prefix(FINISH_REASON) else {
        return if FINISH_REASON.starts_with(bytes) {
            Match::Partial
        } else {
            Match::None
        };
    };
    let (rest, started) = match rest.get(..MAX_REASON) {
        Some(rest) => (rest, Match::None),
        None => (rest, Match::Partial),
    };
    let value = match rest.trim_ascii_start() {
        [] => return started,
        [b':', value @ ..] => value.trim_ascii_start(),
        _ => return Match::None,
    };
    let reason = match value {
        [] => return started,
        [b'"', reason @ ..] => reason,
        _ => return Match::None,
    };
    let mut is_escaped = false;
    let is_end = |byte: &u8| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    };
    let Some(end) = reason.iter().position(is_end) else {
        return started;
    };
    let known = reason
        .get(..end)
        .and_then(|reason| str::from_utf8(reason).ok());
    match known.map(|reason| (reason, api_finish_reason(reason))) {
        Some((reason, mapped)) if reason == mapped => Match::None,
        mapped => {
            let mapped = mapped.map_or("length", |(_, mapped)| mapped);
            let len = FINISH_REASON.len() + rest.len() - reason.len() + end;
            let field = format!("\"finish_reason\":\"{mapped}");
            Match::Full(len, field.into_bytes().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{BodyFilter, BodyKind, LONGEST_SPELLING, redacted_keys};

    const KEY: &str = "sk-\u{e9}/12\"34-sk-5";

    /// The output does not depend on how the body is split, and few bytes are held.
    fn check(keys: &[&str], kind: BodyKind, body: &str, expected: &str) {
        let longest = keys.iter().map(|key| key.len()).max().unwrap();
        let keys = redacted_keys(keys.iter().copied());
        let body = Bytes::copy_from_slice(body.as_bytes());
        let splits = (0..=body.len()).flat_map(|one| (one..=body.len()).map(move |two| (one, two)));
        for (first, second) in splits {
            let mut filter = BodyFilter::new(&keys, kind).expect("there is a key");
            let mut out = filter.feed(body.slice(..first)).to_vec();
            out.extend(filter.feed(body.slice(first..second)));
            out.extend(filter.feed(body.slice(second..)));
            assert!(filter.held.len() <= LONGEST_SPELLING * longest + 300);
            out.extend(filter.finish());
            assert_eq!(String::from_utf8_lossy(&out), expected, "{first} {second}");
        }
        let mut filter = BodyFilter::new(&keys, kind).expect("there is a key");
        let mut out = Vec::new();
        for at in 0..body.len() {
            out.extend(filter.feed(body.slice(at..=at)));
        }
        out.extend(filter.finish());
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn the_key_is_redacted() {
        let table = [
            ("no sk-12345678!", "no [key]!"),
            ("sk-12345678sk-12345678", "[key][key]"),
            ("sk-sk-12345678", "sk-[key]"),
            ("sk-1234567", "sk-1234567"),
            ("\"\\u0073\\u006B-1234\\u0035678\"", "\"[key]\""),
            ("\\u0073k-12345670", "\\u0073k-12345670"),
            // In the JSON of arguments, which is a string of the body.
            (r"\\u0073k-1234\\u0035678", "[key]"),
            (r"\u005cu0073\u006b-1234567\\\u00750038", "[key]"),
            (r"\\u0073k-1234567\\u0039", r"\\u0073k-1234567\\u0039"),
            (r"\\\\u0073k-12345678", r"\\[key]"),
            (r"\\\u0073k-12345678", r"\\[key]"),
            (r"\\\sk-12345678\n\\\\", r"\\\[key]\n\\\\"),
            ("a\\", "a\\"),
            ("s", "s"),
            ("", ""),
        ];
        for kind in [BodyKind::Json, BodyKind::Events, BodyKind::Other] {
            for (body, expected) in table {
                check(&["sk-12345678"], kind, body, expected);
            }
        }
        let written = serde_json::to_string(KEY).unwrap();
        check(&[KEY], BodyKind::Json, &written, "\"[key]\"");
        check(&[KEY], BodyKind::Json, KEY, "[key]");
        let slashes = written.replace('/', "\\/");
        check(&[KEY], BodyKind::Json, &slashes, "\"[key]\"");
        // Short keys are not redacted.
        for keys in [&["sk-1234"][..], &[]] {
            let keys = redacted_keys(keys.iter().copied());
            assert!(BodyFilter::new(&keys, BodyKind::Other).is_none());
        }
    }

    /// A key may begin with another one.
    #[test]
    fn several_keys_are_redacted() {
        let keys = ["sk-12345", "sk-12345678", "other-key"];
        for (body, expected) in [
            ("sk-12345678 sk-12345 other-key", "[key] [key] [key]"),
            ("sk-1234567", "[key]67"),
            ("sk-12345", "[key]"),
            ("\\u0073k-12345678", "[key]"),
            ("sk-1234 other-ke", "sk-1234 other-ke"),
        ] {
            check(&keys, BodyKind::Other, body, expected);
        }
    }
}
