//! What of a body is changed on its way to the client: the gateway's key, finish reasons and line separators.

use std::borrow::Cow;

use plaincall_wire::openai::api_finish_reason;

/// The shortest key that is looked for in texts, in bytes. Shorter ones are words that stand everywhere.
pub(crate) const MIN_KEY: usize = 8;
pub(crate) const REDACTED: &str = "[key]";

const FINISH_REASON: &[u8] = b"\"finish_reason\"";
/// How much behind it is looked at, in bytes: the colon, the value and blanks around both.
const MAX_REASON: usize = 256;
/// Characters that some clients take for line ends, and what JSON writes for them.
const SEPARATORS: [(&[u8], &[u8]); 3] = [
    (b"\xC2\x85", b"\\u0085"),
    (b"\xE2\x80\xA8", b"\\u2028"),
    (b"\xE2\x80\xA9", b"\\u2029"),
];

/// Changes a body that is sent in pieces (`spec/gateway.md` 7), independently of how it is split. It holds back at most six
/// times the length of the key, or a few hundred bytes.
#[derive(Clone, Debug)]
pub(crate) struct BodyFilter {
    key: Vec<u8>,
    kind: BodyKind,
    /// Whether something to change may begin with a byte.
    begins: [bool; 256],
    held: Vec<u8>,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// JSON, whose finish reasons are mapped.
    Json,
    /// JSON in events: line separators are escaped too.
    Events,
    /// Anything else: only the key is looked for.
    Other,
}

enum Look {
    Nothing,
    /// More must come before that is known.
    Begun,
    /// So many bytes go, and these come in their place.
    Replace(usize, Cow<'static, [u8]>),
}

impl BodyFilter {
    /// A filter for a body of this kind; `None` if there is nothing to look for.
    pub(crate) fn new(key: Option<&str>, kind: BodyKind) -> Option<Self> {
        let key = key.filter(|key| key.len() >= MIN_KEY);
        if key.is_none() && kind == BodyKind::Other {
            return None;
        }
        let key = key.unwrap_or_default().as_bytes().to_vec();
        let mut begins = [false; 256];
        let first = key.first().copied();
        let firsts = first.into_iter().chain(first.map(|_| b'\\'));
        let quote = (kind != BodyKind::Other).then_some(b'"');
        let separators: &[u8] = match kind {
            BodyKind::Events => b"\xC2\xE2",
            BodyKind::Json | BodyKind::Other => b"",
        };
        for byte in firsts.chain(quote).chain(separators.iter().copied()) {
            if let Some(begins) = begins.get_mut(usize::from(byte)) {
                *begins = true;
            }
        }
        Some(Self {
            key,
            kind,
            begins,
            held: Vec::new(),
        })
    }

    /// What goes out when these bytes have come.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        self.pass(&bytes, false)
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.held);
        self.pass(&bytes, true)
    }

    fn pass(&mut self, bytes: &[u8], is_end: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        let may_begin = |byte: &u8| self.begins.get(usize::from(*byte)) == Some(&true);
        while let Some(at) = rest.iter().position(may_begin) {
            let (plain, tail) = rest.split_at(at);
            out.extend_from_slice(plain);
            let len = match self.look(tail, is_end) {
                Look::Begun => {
                    self.held = tail.to_vec();
                    return out;
                }
                Look::Nothing => {
                    out.extend(tail.first());
                    1
                }
                Look::Replace(len, text) => {
                    out.extend_from_slice(&text);
                    len
                }
            };
            rest = tail.get(len..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
        out
    }

    /// What stands at the beginning of these bytes.
    fn look(&self, bytes: &[u8], is_end: bool) -> Look {
        let mut is_started = false;
        let looks = [
            as_it_is(bytes, &self.key),
            in_json(bytes, &self.key),
            match self.kind {
                BodyKind::Events => separator(bytes),
                BodyKind::Json | BodyKind::Other => Look::Nothing,
            },
            match self.kind {
                BodyKind::Json | BodyKind::Events => finish_reason(bytes),
                BodyKind::Other => Look::Nothing,
            },
        ];
        for look in looks {
            match look {
                Look::Replace(..) => return look,
                Look::Begun => is_started = true,
                Look::Nothing => {}
            }
        }
        if is_started && !is_end {
            Look::Begun
        } else {
            Look::Nothing
        }
    }
}

/// A key as its bytes.
fn as_it_is(bytes: &[u8], key: &[u8]) -> Look {
    match bytes.strip_prefix(key) {
        _ if key.is_empty() => Look::Nothing,
        Some(_) => Look::Replace(key.len(), REDACTED.as_bytes().into()),
        None if key.starts_with(bytes) => Look::Begun,
        None => Look::Nothing,
    }
}

/// A key as JSON may spell it: any of its characters with an escape.
fn in_json(bytes: &[u8], key: &[u8]) -> Look {
    if key.is_empty() {
        return Look::Nothing;
    }
    let mut at = 0;
    for wanted in key {
        let Some(rest) = bytes.get(at..) else {
            return Look::Nothing;
        };
        at += match rest {
            [] | [b'\\'] => return Look::Begun,
            [b'\\', b'u', digits @ ..] => {
                let hex = format!("00{wanted:02x}");
                let given = digits
                    .get(..digits.len().min(hex.len()))
                    .unwrap_or_default();
                let is_same = |(one, other): (&u8, u8)| one.eq_ignore_ascii_case(&other);
                match given.iter().zip(hex.bytes()).all(is_same) {
                    false => return Look::Nothing,
                    true if given.len() < hex.len() => return Look::Begun,
                    true => 2 + hex.len(),
                }
            }
            [b'\\', escaped, ..] if escaped == wanted && b"\"\\/".contains(escaped) => 2,
            [byte, ..] if byte == wanted && *byte != b'\\' => 1,
            _ => return Look::Nothing,
        };
    }
    Look::Replace(at, REDACTED.as_bytes().into())
}

fn separator(bytes: &[u8]) -> Look {
    for (character, escape) in SEPARATORS {
        if bytes.starts_with(character) {
            return Look::Replace(character.len(), escape.into());
        }
        if character.starts_with(bytes) {
            return Look::Begun;
        }
    }
    Look::Nothing
}

/// A finish reason that is none of the API. Inside a string of JSON its quotes would have backslashes.
fn finish_reason(bytes: &[u8]) -> Look {
    let Some(rest) = bytes.strip_prefix(FINISH_REASON) else {
        return if FINISH_REASON.starts_with(bytes) {
            Look::Begun
        } else {
            Look::Nothing
        };
    };
    let (rest, started) = match rest.get(..MAX_REASON) {
        Some(rest) => (rest, Look::Nothing),
        None => (rest, Look::Begun),
    };
    let value = match rest.trim_ascii_start() {
        [] => return started,
        [b':', value @ ..] => value.trim_ascii_start(),
        _ => return Look::Nothing,
    };
    let reason = match value {
        [] => return started,
        [b'"', reason @ ..] => reason,
        _ => return Look::Nothing,
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
        Some((reason, mapped)) if reason == mapped => Look::Nothing,
        mapped => {
            let mapped = mapped.map_or("length", |(_, mapped)| mapped);
            let len = FINISH_REASON.len() + rest.len() - reason.len() + end;
            let field = format!("\"finish_reason\":\"{mapped}");
            Look::Replace(len, field.into_bytes().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BodyFilter, BodyKind};

    const KEY: &str = "sk-\u{e9}/12\"34-sk-5";

    /// What comes of a body is the same however it is cut, and little is held back.
    fn check(key: &str, kind: BodyKind, body: &str, expected: &str) {
        let body = body.as_bytes();
        let cuts = (0..=body.len()).flat_map(|one| (one..=body.len()).map(move |two| (one, two)));
        for (first, second) in cuts {
            let mut filter = BodyFilter::new(Some(key), kind).expect("there is a key");
            let mut out = filter.feed(&body[..first]);
            out.extend(filter.feed(&body[first..second]));
            out.extend(filter.feed(&body[second..]));
            assert!(filter.held.len() <= 6 * key.len() + 300);
            out.extend(filter.finish());
            assert_eq!(String::from_utf8_lossy(&out), expected, "{first} {second}");
        }
        let mut filter = BodyFilter::new(Some(key), kind).expect("there is a key");
        let mut out = Vec::new();
        for byte in body {
            out.extend(filter.feed(&[*byte]));
        }
        out.extend(filter.finish());
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn the_key_is_left_out() {
        let table = [
            ("no sk-12345678!", "no [key]!"),
            ("sk-12345678sk-12345678", "[key][key]"),
            ("sk-sk-12345678", "sk-[key]"),
            ("sk-1234567", "sk-1234567"),
            ("\"\\u0073\\u006B-1234\\u0035678\"", "\"[key]\""),
            ("\\u0073k-12345670", "\\u0073k-12345670"),
            ("a\\", "a\\"),
            ("s", "s"),
            ("", ""),
        ];
        for kind in [BodyKind::Json, BodyKind::Events, BodyKind::Other] {
            for (body, expected) in table {
                check("sk-12345678", kind, body, expected);
            }
        }
        let written = serde_json::to_string(KEY).unwrap();
        check(KEY, BodyKind::Json, &written, "\"[key]\"");
        check(KEY, BodyKind::Json, KEY, "[key]");
        let slashes = written.replace('/', "\\/");
        check(KEY, BodyKind::Json, &slashes, "\"[key]\"");
        // What is too short is no key.
        assert!(BodyFilter::new(Some("sk-1234"), BodyKind::Other).is_none());
        assert!(BodyFilter::new(None, BodyKind::Other).is_none());
    }
}
