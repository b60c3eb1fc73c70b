//! Pages as text: HTML for a reader without a browser.
//!
//! Tokens are those of the HTML standard. Headings, lists, tables and links are shown; what is not closed or not nested
//! as it should be is read on as it comes.

use std::fmt::Write as _;

use encoding_rs::{Encoding, UTF_8};
use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use url::Url;

/// How much of a page is told, in bytes.
const TOLD: usize = 1 << 20;
/// How much is made of the addresses of its links, in bytes. Behind that, links are text.
const ADDRESSES: usize = 512 << 10;

/// The bytes of a page as text. What its set of characters does not hold becomes U+FFFD.
pub(super) fn decoded(bytes: &[u8], charset: Option<&str>) -> String {
    let encoding = match charset {
        Some(name) => Encoding::for_label(name.as_bytes()),
        None => declared(bytes),
    };
    let (text, ..) = encoding.unwrap_or(UTF_8).decode(bytes);
    text.into_owned()
}

/// The set of characters that a page names in its head.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let (_, behind) = head.split_once("charset=")?;
    let name = behind.trim_start_matches(['"', '\'']);
    let name = name.split(|c: char| c.is_whitespace() || "\"';/>".contains(c));
    let encoding = Encoding::for_label(name.into_iter().next()?.as_bytes())?;
    // The name itself could not be read otherwise.
    encoding.is_ascii_compatible().then_some(encoding)
}

#[derive(Debug, Default)]
pub(super) struct Readable {
    pub(super) text: String,
    pub(super) is_cut: bool,
    pub(super) lacks_addresses: bool,
}

/// What a page says. Its links are made whole by its own address, so a text can be longer than its page; it is cut where
/// it becomes too long.
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
            Token::String(text) => page.say(&String::from_utf8_lossy(&text)),
            Token::StartTag(tag) => page.begin(&tag),
            Token::EndTag(tag) => page.end(&String::from_utf8_lossy(&tag.name)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if page.text.said.len() > TOLD {
            break;
        }
    }
    if page.text.said.len() <= TOLD {
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
    addresses: usize,
    preformatted: usize,
    /// The element that is open and of which nothing is shown.
    hidden: Option<String>,
}

impl Page<'_> {
    fn say(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        let text = text.replace('\u{a0}', " ").replace('\u{ad}', "");
        if self.preformatted > 0 {
            self.text.say_as_it_is(&text);
        } else {
            self.text.say(&text);
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
                let says = attribute(b"alt").unwrap_or_default();
                if !says.trim().is_empty() {
                    self.text.say(&format!("[image: {}]", says.trim()));
                }
            }
            "li" => self.text.say("- "),
            "td" | "th" => self.text.cell(),
            "hr" => self.text.say("---"),
            "pre" => self.preformatted += 1,
            _ => {
                let level = name.strip_prefix('h').and_then(|level| level.parse().ok());
                if let Some(level @ 1..=6) = level {
                    self.text.say(&format!("{} ", "#".repeat(level)));
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
            self.text.say("[");
            self.link = Some((self.text.said.len(), url.into()));
        }
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

    /// Where an element of this name begins or ends: an empty line, a new line or nothing.
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
            let last = self.said.bytes().rev().take(self.breaks);
            let there = last.take_while(|byte| *byte == b'\n').count();
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

    fn finish(mut self) -> (String, bool) {
        let is_cut = self.said.len() > TOLD;
        self.said.truncate(self.said.floor_char_boundary(TOLD));
        self.said.truncate(self.said.trim_end().len());
        if !self.said.is_empty() {
            self.said.push('\n');
        }
        (self.said, is_cut)
    }
}
