//! Converts HTML pages to text.
//!
//! Headings, lists, tables and links are kept. Unclosed and badly nested elements are tolerated.

use std::fmt::Write as _;

use encoding_rs::{Encoding, UTF_8};
use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use url::Url;

/// The longest text of a page, in bytes.
const LONGEST: usize = 1 << 20;
/// The most bytes of link URLs on a page. Links after that are plain text.
const ADDRESSES: usize = 512 << 10;

/// Decodes a page. Invalid bytes become U+FFFD.
pub(super) fn decoded(bytes: &[u8], charset: Option<&str>) -> String {
    let encoding = match charset {
        Some(name) => Encoding::for_label(name.as_bytes()),
        None => declared(bytes),
    };
    let (text, ..) = encoding.unwrap_or(UTF_8).decode(bytes);
    text.into_owned()
}

/// The character encoding that a page declares in its head.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let (_, behind) = head.split_once("charset=")?;
    let name = behind.trim_start_matches(['"', '\'']);
    let name = name.split(|c: char| c.is_whitespace() || "\"';/>".contains(c));
    let encoding = Encoding::for_label(name.into_iter().next()?.as_bytes())?;
    // Otherwise the declaration itself could not be read.
    encoding.is_ascii_compatible().then_some(encoding)
}

#[derive(Debug, Default)]
pub(super) struct Readable {
    pub(super) text: String,
    pub(super) is_truncated: bool,
    pub(super) lacks_addresses: bool,
}

/// The text of a page. Relative links are resolved, so the text can be longer than the page; too long a text is truncated.
pub(super) fn readable(html: &str, base: &Url) -> Readable {
    let mut page = Page {
        text: Prose::default(),
        base,
        link: None,
        addresses: 0,
        preformatted: 0,
        hidden: None,
    };
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::String(text) => page.push(&String::from_utf8_lossy(&text)),
            Token::StartTag(tag) => page.begin(&tag),
            Token::EndTag(tag) => page.end(&String::from_utf8_lossy(&tag.name)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if page.text.text.len() > LONGEST {
            break;
        }
    }
    if page.text.text.len() <= LONGEST {
        page.end_link();
    }
    let lacks_addresses = page.addresses > ADDRESSES;
    let (text, is_truncated) = page.text.finish();
    Readable {
        text,
        is_truncated,
        lacks_addresses,
    }
}

struct Page<'p> {
    text: Prose,
    base: &'p Url,
    /// The start of the text of an open link, and its URL.
    link: Option<(usize, String)>,
    addresses: usize,
    preformatted: usize,
    /// An open element whose content is hidden.
    hidden: Option<String>,
}

impl Page<'_> {
    fn push(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        let text = text.replace('\u{a0}', " ").replace('\u{ad}', "");
        if self.preformatted > 0 {
            self.text.push_raw(&text);
        } else {
            self.text.push(&text);
        }
    }

    fn begin(&mut self, tag: &StartTag<()>) {
        if self.hidden.is_some() {
            return;
        }
        let name = &*String::from_utf8_lossy(&tag.name);
        let attribute = |name: &[u8]| {
            let value = tag.attributes.get(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        self.edge(name);
        match name {
            "svg" | "math" if tag.self_closing => {}
            "script" | "style" | "template" | "noscript" | "svg" | "math" | "iframe" | "object"
            | "canvas" | "select" => self.hidden = Some(name.to_owned()),
            "a" => {
                self.end_link();
                self.begin_link(attribute(b"href"));
            }
            "img" => {
                let alt = attribute(b"alt").unwrap_or_default();
                if !alt.trim().is_empty() {
                    self.text.push(&format!("[image: {}]", alt.trim()));
                }
            }
            "li" => self.text.push("- "),
            "td" | "th" => self.text.cell(),
            "hr" => self.text.push("---"),
            "pre" => self.preformatted += 1,
            _ => {
                let level = name.strip_prefix('h').and_then(|level| level.parse().ok());
                if let Some(level @ 1..=6) = level {
                    self.text.push(&format!("{} ", "#".repeat(level)));
                }
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(hidden) = &self.hidden {
            if hidden == name {
                self.hidden = None;
            }
            return;
        }
        match name {
            "a" => self.end_link(),
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            _ => {}
        }
        self.edge(name);
    }

    fn begin_link(&mut self, href: Option<String>) {
        let href = href.filter(|href| {
            !href.is_empty() && !href.starts_with('#') && self.addresses <= ADDRESSES
        });
        let url = href.and_then(|href| self.base.join(&href).ok());
        if let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto")) {
            self.addresses += url.as_str().len();
            self.text.push("[");
            self.link = Some((self.text.text.len(), url.into()));
        }
    }

    fn end_link(&mut self) {
        let Some((from, target)) = self.link.take() else {
            return;
        };
        let text = self.text.text.get(from..).unwrap_or_default();
        if text.trim().is_empty() {
            // An invisible link.
            self.text.text.truncate(from - 1);
        } else {
            // Writing to a text cannot fail.
            let _ = write!(self.text.text, "]({target})");
        }
    }

    /// Adds the line breaks before and after an element.
    fn edge(&mut self, name: &str) {
        match name {
            "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "pre" | "blockquote" | "ul" | "ol"
            | "dl" | "table" | "figure" | "article" | "section" | "hr" | "main" => {
                self.end_link();
                self.text.breaks(2);
            }
            "div" | "br" | "li" | "tr" | "dt" | "dd" | "header" | "footer" | "nav" | "aside"
            | "form" | "fieldset" | "figcaption" | "address" | "details" | "summary" | "option"
            | "title" | "caption" | "body" => self.text.breaks(1),
            _ => {}
        }
    }
}

/// A text with collapsed whitespace.
#[derive(Default)]
struct Prose {
    text: String,
    /// How many line breaks come before the next text.
    breaks: usize,
    is_blank_due: bool,
    /// Whether the line already has a table cell.
    has_cell: bool,
}

impl Prose {
    fn push(&mut self, text: &str) {
        for (place, word) in text.split_ascii_whitespace().enumerate() {
            if place > 0 || text.starts_with(|c: char| c.is_ascii_whitespace()) {
                self.is_blank_due = true;
            }
            self.before();
            self.text.push_str(word);
        }
        if text.ends_with(|c: char| c.is_ascii_whitespace()) {
            self.is_blank_due = true;
        }
    }

    fn push_raw(&mut self, text: &str) {
        if !text.is_empty() {
            self.before();
            self.text.push_str(text);
        }
    }

    fn before(&mut self) {
        if self.breaks > 0 {
            let last = self.text.bytes().rev().take(self.breaks);
            let there = last.take_while(|byte| *byte == b'\n').count();
            if !self.text.is_empty() {
                self.text
                    .extend(std::iter::repeat_n('\n', self.breaks.saturating_sub(there)));
            }
            self.breaks = 0;
            self.is_blank_due = false;
            self.has_cell = false;
        }
        if std::mem::take(&mut self.is_blank_due)
            && !self.text.is_empty()
            && !self.text.ends_with(['\n', ' ', '['])
        {
            self.text.push(' ');
        }
    }

    fn breaks(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
    }

    fn cell(&mut self) {
        // No separator before the first cell of a line.
        let is_first = self.breaks > 0 || !self.has_cell;
        if !is_first {
            self.push(" | ");
        }
        self.before();
        self.has_cell = true;
    }

    fn finish(mut self) -> (String, bool) {
        let is_truncated = self.text.len() > LONGEST;
        self.text.truncate(self.text.floor_char_boundary(LONGEST));
        self.text.truncate(self.text.trim_end().len());
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        (self.text, is_truncated)
    }
}
