//! Pages as text: HTML without its tags.
//!
//! It reads what browsers show: headings, lists, tables, links. What is not closed or not nested as it should be is read
//! on as it comes. Each character is looked at a bounded number of times.

use std::fmt::Write as _;

use reqwest::Url;

use crate::builtin::fetch::entities;

/// How much of a page is told, in bytes.
const TOLD: usize = 1 << 20;
/// How much is made of the addresses of its links, in bytes. Behind that, links are text.
const ADDRESSES: usize = 512 << 10;

/// Elements of which nothing is shown.
const HIDDEN: [&str; 10] = [
    "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas",
    "select",
];
/// Elements that begin and end with an empty line.
const APART: [&str; 18] = [
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "pre",
    "blockquote",
    "ul",
    "ol",
    "dl",
    "table",
    "figure",
    "article",
    "section",
    "hr",
    "main",
];
/// Elements that begin and end with a line.
const LINES: [&str; 20] = [
    "div",
    "br",
    "li",
    "tr",
    "dt",
    "dd",
    "header",
    "footer",
    "nav",
    "aside",
    "form",
    "fieldset",
    "figcaption",
    "address",
    "details",
    "summary",
    "option",
    "title",
    "caption",
    "body",
];
/// The characters of windows-1252 from 0x80 to 0x9F.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The bytes of a page as text. What its set of characters does not hold becomes U+FFFD.
pub(super) fn decoded(bytes: &[u8], charset: Option<&str>) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match charset.or_else(|| declared(bytes)) {
        // Each byte is a character; the name of one is that of the other on the web.
        Some("iso-8859-1" | "latin1" | "us-ascii" | "ascii" | "windows-1252" | "cp1252") => bytes
            .iter()
            .map(|&byte| match byte {
                0x80..=0x9f => WINDOWS
                    .get(usize::from(byte - 0x80))
                    .copied()
                    .unwrap_or('\u{fffd}'),
                byte => char::from(byte),
            })
            .collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The set of characters that a page names in its head, as far as it is one that matters here.
fn declared(bytes: &[u8]) -> Option<&'static str> {
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let (_, behind) = head.split_once("charset=")?;
    let name = behind.trim_start_matches(['"', '\'']);
    ["iso-8859-1", "windows-1252"]
        .into_iter()
        .find(|known| name.starts_with(known))
}

/// What a page says.
#[derive(Debug, Default)]
pub(super) struct Readable {
    pub(super) text: String,
    /// Whether it says more.
    pub(super) is_cut: bool,
    /// Whether links are left without their addresses.
    pub(super) lacks_addresses: bool,
}

/// What a page says, for a reader without a browser. Its links are made whole by its own address, so a text can be longer
/// than its page; it is cut where it becomes too long.
pub(super) fn readable(html: &str, base: &Url) -> Readable {
    let mut page = Page {
        text: Prose::default(),
        base,
        link: None,
        addresses: 0,
        preformatted: 0,
    };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        page.say(before);
        if page.text.said.len() > TOLD {
            break;
        }
        rest = page.tag(tag);
    }
    if page.text.said.len() <= TOLD {
        page.say(rest);
        page.end_link();
    }
    let lacks_addresses = page.addresses > ADDRESSES;
    let (text, is_cut) = page.text.finish();
    Readable {
        text,
        is_cut,
        lacks_addresses,
    }
}

struct Page<'p> {
    text: Prose,
    base: &'p Url,
    /// Where the text of an open link begins, and where it leads.
    link: Option<(usize, String)>,
    /// How many bytes of addresses were made.
    addresses: usize,
    preformatted: usize,
}

impl Page<'_> {
    fn say(&mut self, text: &str) {
        let text = entities::decoded(text);
        if self.preformatted > 0 {
            self.text.say_as_it_is(&text);
        } else {
            self.text.say(&text);
        }
    }

    /// Reads what begins with `<`, and returns what is behind it.
    fn tag<'h>(&mut self, html: &'h str) -> &'h str {
        if let Some(comment) = html.strip_prefix("<!--") {
            return behind(comment, "-->");
        }
        if html.starts_with("<!") || html.starts_with("<?") {
            return behind(html, ">");
        }
        let is_end = html.starts_with("</");
        let inside = html.get(1 + usize::from(is_end)..).unwrap_or_default();
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.say("<");
            return html.get(1..).unwrap_or_default();
        }
        let name_end = inside
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'))
            .unwrap_or(inside.len());
        let (name, rest) = inside.split_at(name_end);
        let name = name.to_ascii_lowercase();
        let (attributes, rest) = attributes(rest);
        let closes_itself = attributes.ends_with('/');
        if !is_end && !closes_itself && HIDDEN.contains(&name.as_str()) {
            return behind_element(rest, &name);
        }
        if is_end {
            self.end(&name);
        } else {
            self.begin(&name, attributes);
        }
        rest
    }

    fn begin(&mut self, name: &str, attributes: &str) {
        self.edge(name);
        match name {
            "a" => {
                self.end_link();
                let href = attribute(attributes, "href");
                let target = href.filter(|href| !href.starts_with('#'));
                let target = target.filter(|_| self.addresses <= ADDRESSES);
                let target = target.and_then(|href| self.base.join(&entities::decoded(href)).ok());
                let target =
                    target.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"));
                self.addresses += target.as_ref().map_or(0, |url| url.as_str().len());
                if let Some(url) = target {
                    self.text.say("[");
                    self.link = Some((self.text.said.len(), url.into()));
                }
            }
            "img" => {
                let says = attribute(attributes, "alt").map(entities::decoded);
                if let Some(says) = says.filter(|says| !says.trim().is_empty()) {
                    self.text.say(&format!("[image: {}]", says.trim()));
                }
            }
            "li" => self.text.say("- "),
            "td" | "th" => self.text.cell(),
            "hr" => self.text.say("---"),
            "pre" => self.preformatted += 1,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name
                    .bytes()
                    .last()
                    .map_or(1, |digit| usize::from(digit - b'0'));
                self.text.say(&format!("{} ", "#".repeat(level)));
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "a" => self.end_link(),
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            _ => {}
        }
        self.edge(name);
    }

    fn end_link(&mut self) {
        let Some((from, target)) = self.link.take() else {
            return;
        };
        let said = self.text.said.get(from..).unwrap_or_default();
        if said.trim().is_empty() {
            // Nobody sees such a link.
            self.text.said.truncate(from - 1);
        } else {
            // Writing to a text cannot fail.
            let _ = write!(self.text.said, "]({target})");
        }
    }

    fn edge(&mut self, name: &str) {
        if APART.contains(&name) {
            self.end_link();
            self.text.breaks(2);
        } else if LINES.contains(&name) {
            self.text.breaks(1);
        }
    }
}

/// What is behind the first of these texts; nothing if there is none.
fn behind<'h>(html: &'h str, end: &str) -> &'h str {
    html.split_once(end).map_or("", |(_, behind)| behind)
}

/// What is behind the end of an element whose content is not shown.
fn behind_element<'h>(html: &'h str, name: &str) -> &'h str {
    let mut rest = html;
    while let Some((_, behind_it)) = rest.split_once("</") {
        let is_it = behind_it
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_it {
            return behind(behind_it, ">");
        }
        rest = behind_it;
    }
    ""
}

/// The attributes of a tag, and what is behind the tag. A `>` between quotes does not end it.
fn attributes(html: &str) -> (&str, &str) {
    let mut quote = None;
    let mut before = ' ';
    for (at, character) in html.char_indices() {
        match (quote, character) {
            (None, '>') => {
                let attributes = html.get(..at).unwrap_or_default();
                return (attributes, html.get(at + 1..).unwrap_or_default());
            }
            // Elsewhere a quote is a character like others.
            (None, '"' | '\'') if before == '=' => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
        if !character.is_ascii_whitespace() {
            before = character;
        }
    }
    (html, "")
}

/// The value of an attribute.
fn attribute<'h>(attributes: &'h str, name: &str) -> Option<&'h str> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/'))
            .unwrap_or(rest.len());
        // At least one character, or it would never come to an end.
        let end = end.max(rest.chars().next().map_or(1, char::len_utf8));
        let (found, behind) = rest.split_at(end);
        let behind = behind.trim_ascii_start();
        let Some(value) = behind.strip_prefix('=').map(str::trim_ascii_start) else {
            rest = behind;
            continue;
        };
        let (value, behind) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inside = value.get(1..).unwrap_or_default();
                inside.split_once(quote).unwrap_or((inside, ""))
            }
            _ => value.split_at(
                value
                    .find(|c: char| c.is_ascii_whitespace())
                    .unwrap_or(value.len()),
            ),
        };
        if found.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = behind;
    }
}

/// A text in which blanks and line ends count once.
#[derive(Default)]
struct Prose {
    said: String,
    /// How many line ends are due before what comes next.
    breaks: usize,
    is_blank_due: bool,
    /// Whether the line has a cell of a table already.
    has_cell: bool,
}

impl Prose {
    fn say(&mut self, text: &str) {
        for (place, word) in text.split_ascii_whitespace().enumerate() {
            if place > 0 || text.starts_with(|c: char| c.is_ascii_whitespace()) {
                self.is_blank_due = true;
            }
            self.before();
            self.said.push_str(word);
        }
        if text.ends_with(|c: char| c.is_ascii_whitespace()) {
            self.is_blank_due = true;
        }
    }

    fn say_as_it_is(&mut self, text: &str) {
        if !text.is_empty() {
            self.before();
            self.said.push_str(text);
        }
    }

    fn before(&mut self) {
        if self.breaks > 0 {
            let there = self.said.len() - self.said.trim_end_matches('\n').len();
            if !self.said.is_empty() {
                self.said
                    .extend(std::iter::repeat_n('\n', self.breaks.saturating_sub(there)));
            }
            self.breaks = 0;
            self.is_blank_due = false;
            self.has_cell = false;
        }
        if std::mem::take(&mut self.is_blank_due)
            && !self.said.is_empty()
            && !self.said.ends_with(['\n', ' ', '['])
        {
            self.said.push(' ');
        }
    }

    fn breaks(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
    }

    fn cell(&mut self) {
        // The first cell of a line has nothing before it.
        let is_first = self.breaks > 0 || !self.has_cell;
        if !is_first {
            self.say(" | ");
        }
        self.before();
        self.has_cell = true;
    }

    /// The text, and whether it is cut.
    fn finish(mut self) -> (String, bool) {
        let is_cut = self.said.len() > TOLD;
        self.said.truncate(self.said.floor_char_boundary(TOLD));
        let end = self.said.trim_end().len();
        self.said.truncate(end);
        if !self.said.is_empty() {
            self.said.push('\n');
        }
        (self.said, is_cut)
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{TOLD, decoded, readable};

    #[test]
    fn pages() {
        let base = Url::parse("https://example.org/a/b").unwrap();
        for (html, expected) in [
            ("", ""),
            ("just text", "just text\n"),
            ("<p>one<p>two", "one\n\ntwo\n"),
            ("<div>one</div><div>two</div>", "one\ntwo\n"),
            ("a<br>b<br/>c", "a\nb\nc\n"),
            (" a \n b\t<b>c</b>d ", "a b cd\n"),
            ("<h2> Title </h2>text", "## Title\n\ntext\n"),
            ("<ul><li>a<li>b</ul>c", "- a\n- b\n\nc\n"),
            (
                "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
                "a | b\n1 | 2\n",
            ),
            ("<pre>a\n  b &lt;\n</pre>c", "a\n  b <\n\nc\n"),
            ("x<script>if (a < b) '</p>'</script>y", "xy\n"),
            ("x<SCRIPT>never closed", "x\n"),
            ("x<style>p{}</STYLE >y", "xy\n"),
            ("x<!-- a > b -->y<!doctype html>z", "xyz\n"),
            ("x<!-- never closed", "x\n"),
            ("1 < 2 && 3 > 2", "1 < 2 && 3 > 2\n"),
            ("a &lt;b&gt; &amp;amp;", "a <b> &amp;\n"),
            (
                "<a href='../c?x=1&amp;y=2'>see</a> it",
                "[see](https://example.org/c?x=1&y=2) it\n",
            ),
            (
                "<a href=x>a <a href=y>b",
                "[a](https://example.org/a/x) [b](https://example.org/a/y)\n",
            ),
            ("<a href='#top'>up</a> <a name=x>here</a>", "up here\n"),
            ("<a href='javascript:alert(1)'>a</a>", "a\n"),
            ("<a href=x><img src=y></a>z", "z\n"),
            (
                "<a title='>' data-a=\"<b>\" href=\"x\">a</a>",
                "[a](https://example.org/a/x)\n",
            ),
            (
                "<img alt='A &quot;map&quot;' src=x>",
                "[image: A \"map\"]\n",
            ),
            ("<img alt='' src=x>a", "a\n"),
            ("<p title=\"don't\">a</p>b", "a\n\nb\n"),
            ("<p don't>a</p>b", "a\n\nb\n"),
            ("<title>T</title><body><p>a", "T\n\na\n"),
            ("<svg><text>x</text></svg>a", "a\n"),
            ("a<p", "a\n"),
            ("a<", "a<\n"),
            ("a</", "a</\n"),
            ("<a = / == =x ' \" href>b</a>", "b\n"),
        ] {
            let found = readable(html, &base);
            assert_eq!(found.text, expected, "{html}");
            assert!(!found.is_cut);
        }
    }

    /// Pages that say more than their bytes: each link with the whole address of the page.
    #[test]
    fn pages_that_swell() {
        let base = Url::parse(&format!("https://example.org/{}/", "a".repeat(8_000))).unwrap();
        for (part, is_cut, lacks_addresses) in [
            ("<a href=x>y</a>", false, true),
            ("<a href=x></a>", false, true),
            ("text and text ", true, false),
        ] {
            let found = readable(&part.repeat((3 << 19) / part.len()), &base);
            assert!(found.text.len() <= TOLD + 1, "{part}: {}", found.text.len());
            assert_eq!(found.is_cut, is_cut, "{part}");
            assert_eq!(found.lacks_addresses, lacks_addresses, "{part}");
        }
        let text = readable(&"<a href=x>y</a>".repeat(200), &base).text;
        let whole = format!("[y]({base}x)");
        assert!(
            text.starts_with(&whole) && text.ends_with("yy\n"),
            "{}",
            text.len()
        );
    }

    /// What is never closed, many times over, in texts in which a second look at the rest would take minutes.
    #[test]
    fn pages_that_mean_harm() {
        let base = Url::parse("https://example.org/").unwrap();
        for part in [
            "<",
            "</",
            "<a",
            "<a href=",
            "<a href=x>",
            "<!--",
            "<script>",
            "<p>",
            "<pre>",
            "&",
            "&amp;",
            "<a href=\"",
            "' ",
            "<td>",
            "</a>",
            "<svg></",
            "\n",
            " ",
            "= ",
        ] {
            let _ = readable(&part.repeat((1 << 17) / part.len()), &base);
        }
    }

    #[test]
    fn sets_of_characters() {
        for (bytes, charset, expected) in [
            ("ä".as_bytes(), None, "ä"),
            (b"\xef\xbb\xbfa", Some("utf-8"), "a"),
            (b"\xe4\x80", Some("iso-8859-1"), "ä€"),
            (b"\xe4", Some("utf-8"), "\u{fffd}"),
            (
                b"<meta charset=\"ISO-8859-1\">\xe4",
                None,
                "<meta charset=\"ISO-8859-1\">ä",
            ),
            (b"\xe4", Some("unknown"), "\u{fffd}"),
        ] {
            assert_eq!(decoded(bytes, charset), expected);
        }
    }
}
