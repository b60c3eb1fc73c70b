//! The states of the emoji-bracket syntax (`spec/emoji.md`).

use crate::LINE_LIMIT;
use crate::diagnostic::Code;
use crate::event::{Part, Syntax, Termination};
use crate::is_blank;
use crate::machine::{Content, Machine, State, Step, Token, Wait};
use crate::markers::{Family, Found, Role};
use crate::span::Span;

/// The parts of a header, in bytes from its marker.
struct HeaderParts {
    name: Part,
    arguments: Part,
    closes_itself: bool,
}

impl Machine {
    /// A start marker in text, with what follows it up to `]`.
    pub(crate) fn emoji_header(
        &mut self,
        window: &str,
        at: usize,
        end: bool,
        marker: usize,
        family: Family,
    ) -> Step {
        let code = match self.bracket(window.as_bytes(), marker, end) {
            Bracket::More => return Step::More(Wait::Bracket { from: marker }),
            Bracket::None(code) => code,
            Bracket::At(bracket) => {
                match header_parts(window, marker, bracket, self.self_closing) {
                    None => Code::NotAHeader,
                    Some(parts) => {
                        self.syntax = Some(Syntax::Emoji);
                        self.pin = Some(at);
                        self.state = if parts.closes_itself {
                            State::CallEnd(Termination::Explicit)
                        } else {
                            State::BodyStart(family)
                        };
                        let token = Token::CallStart {
                            syntax: Syntax::Emoji,
                            name: parts.name,
                            id: Part::default(),
                            rest: parts.arguments,
                        };
                        return Step::Whole(token, bracket + 1);
                    }
                }
            }
        };
        let span = Span::new(at, at + marker);
        self.marker_as_content(
            Content::Text,
            code,
            span,
            Role::EmojiStart(Family::Real),
            marker,
        )
    }

    /// `BodyStart`: removes one line end directly after the header.
    pub(crate) fn body_start(&mut self, window: &str, end: bool, family: Family) -> Step {
        let dropped = match window.as_bytes() {
            [] | [b'\r'] if !end => return Step::More(Wait::Any),
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
        self.state = State::Body(family);
        Step::Whole(Token::BodyStart, dropped)
    }

    /// `Body`: everything up to the first end marker of the family.
    pub(crate) fn body(&mut self, window: &str, at: usize, end: bool, family: Family) -> Step {
        if let Some(step) =
            self.backslashes(|machine| &machine.markers.body, Content::Value, window, end)
        {
            return step;
        }
        match self.markers.body.find(window.as_bytes(), 0, end) {
            Found::Nothing if !window.is_empty() => Step::Emit(Content::Value, window.len()),
            Found::Nothing if end => {
                let start = self.pin.take().unwrap_or(at);
                self.report(
                    Code::MissingEndMarker,
                    Span::new(start, at),
                    Role::EmojiEnd(family),
                );
                self.state = State::CallEnd(Termination::EndOfStream);
                Step::Whole(Token::ValueEnd, 0)
            }
            Found::Partial { at: 0, until } => Step::More(Wait::marker(0, until)),
            Found::Nothing => Step::More(Wait::Any),
            Found::EscapePrefix { end: len, prefix } => self.arm(Content::Value, prefix, len),
            Found::Whole { at: 0, len, role } if role == Role::EmojiEnd(family) => {
                self.pin = None;
                self.state = State::EndMarker {
                    len,
                    mid_line: false,
                };
                Step::Whole(Token::ValueEnd, 0)
            }
            Found::Whole { at: 0, len, role } => {
                let span = Span::new(at, at + len);
                self.marker_as_content(Content::Value, Code::MarkerInValue, span, role, len)
            }
            Found::Partial { at: len, .. } | Found::Whole { at: len, .. } => {
                Step::Emit(Content::Value, len)
            }
        }
    }

    /// Finds the `]` of the header that begins at `from`.
    fn bracket(&mut self, text: &[u8], from: usize, end: bool) -> Bracket {
        let bound = from + LINE_LIMIT + 1;
        let seen = text.get(..bound.min(text.len())).unwrap_or_default();
        let scan_from = self.bracket_scanned.max(from);
        let found = memchr::memchr2(b']', b'\n', seen.get(scan_from..).unwrap_or_default());
        // Cached when found, so that the next marker on the same line does not search again.
        self.bracket_scanned = found.map_or(seen.len().max(scan_from), |index| scan_from + index);
        match seen.get(self.bracket_scanned) {
            Some(b']') => Bracket::At(self.bracket_scanned),
            Some(_) => Bracket::None(Code::NotAHeader),
            None if seen.len() == bound => Bracket::None(Code::HeaderTooLong),
            None if end => Bracket::None(Code::TruncatedHeader),
            None => Bracket::More,
        }
    }
}

enum Bracket {
    More,
    At(usize),
    None(Code),
}

/// ```text
/// header = { blank } , name , [ blank , arguments ] ;   (* arguments verbatim *)
/// name   = any - "/" - blank , { any - blank } ;
/// ```
fn header_parts(window: &str, from: usize, to: usize, self_closing: bool) -> Option<HeaderParts> {
    let header = window.get(from..to)?;
    let shortened = header
        .strip_suffix('/')
        .and_then(|rest| rest.strip_suffix(is_blank))
        .filter(|_| self_closing);
    let to = from + shortened.unwrap_or(header).len();
    let blank = window.get(from..to)?;
    let start = from + (blank.len() - blank.trim_start_matches(is_blank).len());
    let rest = window.get(start..to)?;
    if rest.is_empty() || rest.starts_with('/') {
        return None;
    }
    let name_end = rest.find(is_blank).map_or(to, |index| start + index);
    Some(HeaderParts {
        name: Part::new(start, name_end),
        arguments: Part::new(to.min(name_end + 1), to),
        closes_itself: shortened.is_some(),
    })
}
