//! The notation of text in a JSON string (`spec/grammar.md` 3.3).

use crate::pattern::{Characters, Pattern};

/// The characters with an escape of one letter.
const SHORT: [(char, char); 8] = [
    ('"', '"'),
    ('\\', '\\'),
    ('/', '/'),
    ('\u{8}', 'b'),
    ('\u{C}', 'f'),
    ('\n', 'n'),
    ('\r', 'r'),
    ('\t', 't'),
];
/// The code points that `\u` can write: not those of surrogates, which must be pairs.
const UNITS: [(u32, u32); 2] = [(0, 0xD7FF), (0xE000, 0xFFFF)];

/// The JSON strings of any text, also with the escapes of pairs of surrogates.
pub(crate) fn any() -> Pattern {
    let half = |second: &str| {
        Pattern::sequence([
            Pattern::literal("\\u"),
            Pattern::one_of("dD"),
            Pattern::one_of(second),
            hexadecimal().repeat(2, Some(2)),
        ])
    };
    let pair = Pattern::sequence([half("89abAB"), half("cdefCDEF")]);
    let one = Pattern::choice([character(&Characters::any()), pair]);
    quoted(one.repeat(0, None))
}

/// The JSON strings of the texts that a regular pattern matches.
pub(crate) fn written(texts: &Pattern) -> Pattern {
    quoted(inside(texts))
}

fn quoted(inside: Pattern) -> Pattern {
    let quote = || Pattern::literal("\"");
    Pattern::sequence([quote(), inside, quote()])
}

fn hexadecimal() -> Pattern {
    Pattern::one_of("0123456789abcdefABCDEF")
}

fn inside(texts: &Pattern) -> Pattern {
    match texts {
        Pattern::Literal(text) => {
            Pattern::sequence(text.chars().map(|one| character(&Characters::one(one))))
        }
        Pattern::Characters(characters) => character(characters),
        Pattern::Sequence(parts) => Pattern::sequence(parts.iter().map(inside)),
        Pattern::Choice(options) => Pattern::choice(options.iter().map(inside)),
        Pattern::Repeat { of, least, most } => inside(of).repeat(*least, *most),
        Pattern::Rule(_) | Pattern::Text(_) => texts.clone(),
    }
}

/// One of these characters, in each notation.
fn character(characters: &Characters) -> Pattern {
    let escaped = Characters::of_ranges([(0, 0x1F)]).or(&Characters::one_of("\"\\"));
    let plain = characters.and(&escaped.not());
    let short = SHORT.iter().filter(|(one, _)| characters.has(*one));
    let short: String = short.map(|(_, letter)| *letter).collect();
    let units = characters.and(&Characters::of_ranges(UNITS));
    let backslash = |rest: Pattern| Pattern::sequence([Pattern::literal("\\"), rest]);
    let long = || backslash(Pattern::sequence([Pattern::literal("u"), codes(&units, 4)]));
    let options = [
        (!plain.is_empty()).then_some(Pattern::Characters(plain)),
        (!short.is_empty()).then(|| backslash(Pattern::one_of(&short))),
        (!units.is_empty()).then(long),
    ];
    Pattern::choice(options.into_iter().flatten())
}

/// The numbers of a set, with this many hexadecimal digits.
fn codes(numbers: &Characters, digits: u32) -> Pattern {
    if digits == 0 {
        return Pattern::literal("");
    }
    let unit = 16_u32.pow(digits - 1);
    // The first digits, by what may follow them.
    let mut groups: Vec<(Characters, String)> = Vec::new();
    for digit in 0..16 {
        let (low, high) = (digit * unit, digit * unit + unit - 1);
        let inside = numbers.and(&Characters::of_ranges([(low, high)]));
        let rest = inside.ranges().iter();
        let rest = Characters::of_ranges(rest.map(|(first, last)| (first - low, last - low)));
        let letter = char::from_digit(digit, 16).unwrap_or_default();
        let either = [letter, letter.to_ascii_uppercase()];
        match groups.iter_mut().find(|(known, _)| *known == rest) {
            _ if rest.is_empty() => {}
            Some((_, digits)) => digits.extend(either),
            None => groups.push((rest, either.iter().collect())),
        }
    }
    Pattern::choice(groups.into_iter().map(|(rest, first)| {
        Pattern::sequence([Pattern::one_of(&first), codes(&rest, digits - 1)])
    }))
}
