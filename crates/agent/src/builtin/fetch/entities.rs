//! The characters that HTML writes by names and numbers.

use std::borrow::Cow;

/// The longest reference that is looked for, in bytes.
const LONGEST: usize = 12;

/// The names that pages use. Others stay as they are written.
const NAMES: &[(&str, &str)] = &[
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ensp", " "),
    ("emsp", " "),
    ("thinsp", " "),
    ("shy", ""),
    ("zwj", "\u{200d}"),
    ("zwnj", "\u{200c}"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("hellip", "…"),
    ("mdash", "—"),
    ("ndash", "–"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("sbquo", "‚"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bdquo", "„"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("lsaquo", "‹"),
    ("rsaquo", "›"),
    ("bull", "•"),
    ("middot", "·"),
    ("sect", "§"),
    ("para", "¶"),
    ("deg", "°"),
    ("plusmn", "±"),
    ("times", "×"),
    ("divide", "÷"),
    ("minus", "−"),
    ("frac12", "½"),
    ("frac14", "¼"),
    ("sup2", "²"),
    ("sup3", "³"),
    ("micro", "µ"),
    ("euro", "€"),
    ("pound", "£"),
    ("yen", "¥"),
    ("cent", "¢"),
    ("larr", "←"),
    ("rarr", "→"),
    ("uarr", "↑"),
    ("darr", "↓"),
    ("harr", "↔"),
    ("rArr", "⇒"),
    ("le", "≤"),
    ("ge", "≥"),
    ("ne", "≠"),
    ("asymp", "≈"),
    ("infin", "∞"),
    ("check", "✓"),
    ("lbrack", "["),
    ("rbrack", "]"),
    ("lsqb", "["),
    ("rsqb", "]"),
    ("lbrace", "{"),
    ("rbrace", "}"),
    ("lpar", "("),
    ("rpar", ")"),
    ("sol", "/"),
    ("bsol", "\\"),
    ("vert", "|"),
    ("colon", ":"),
    ("semi", ";"),
    ("comma", ","),
    ("period", "."),
    ("excl", "!"),
    ("quest", "?"),
    ("num", "#"),
    ("percnt", "%"),
    ("ast", "*"),
    ("commat", "@"),
    ("lowbar", "_"),
    ("grave", "`"),
    ("Tab", "\t"),
    ("NewLine", "\n"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("Auml", "Ä"),
    ("Ouml", "Ö"),
    ("Uuml", "Ü"),
    ("szlig", "ß"),
    ("aacute", "á"),
    ("agrave", "à"),
    ("acirc", "â"),
    ("aring", "å"),
    ("aelig", "æ"),
    ("ccedil", "ç"),
    ("eacute", "é"),
    ("egrave", "è"),
    ("ecirc", "ê"),
    ("euml", "ë"),
    ("iacute", "í"),
    ("ntilde", "ñ"),
    ("oacute", "ó"),
    ("ocirc", "ô"),
    ("oslash", "ø"),
    ("uacute", "ú"),
];

/// The text with the characters themselves.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        decoded.push_str(before);
        let begin = behind
            .get(..behind.floor_char_boundary(LONGEST))
            .unwrap_or_default();
        let found = begin
            .split_once(';')
            .and_then(|(name, _)| Some((name.len() + 1, character(name)?)));
        if let Some((length, character)) = found {
            decoded.push_str(&character);
            rest = behind.get(length..).unwrap_or_default();
        } else {
            decoded.push('&');
            rest = behind;
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

fn character(name: &str) -> Option<Cow<'static, str>> {
    let Some(number) = name.strip_prefix('#') else {
        let (_, character) = NAMES.iter().find(|(known, _)| *known == name)?;
        return Some(Cow::Borrowed(character));
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    let character = match char::from_u32(code) {
        Some('\0') | None => '\u{fffd}',
        Some('\u{a0}') => ' ',
        Some(character) => character,
    };
    Some(Cow::Owned(character.to_string()))
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn references() {
        for (text, expected) in [
            ("a", "a"),
            ("a &amp; b &lt;c&gt;", "a & b <c>"),
            ("&#65;&#x42;&#X43;", "ABC"),
            ("&#0;&#xD800;&#99999999;", "\u{fffd}\u{fffd}\u{fffd}"),
            ("&amp;lt;", "&lt;"),
            (
                "&unknown; & &; &#; &#x; &#xg; &amp",
                "&unknown; & &; &#; &#x; &#xg; &amp",
            ),
            ("&ä;&öööööööööööööö;", "&ä;&öööööööööööööö;"),
            ("&Auml;&auml;", "Ää"),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }
}
