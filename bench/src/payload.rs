//! The payloads: texts and their contents.

use plaincall_syntax::Dialect;

use crate::prose::Writer;

/// The parts of a payload, in order; also the parts that a parser finds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// The text between two calls.
    Text(String),
    Call(Call),
}

/// A call, as far as payloads need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The argument line of an emoji call.
    pub(crate) line: String,
    /// The pointer and text of each value; the body of an emoji call has no pointer.
    pub(crate) values: Vec<(String, String)>,
    /// Whether its own end marker ended it.
    pub(crate) closed: bool,
}

/// A text to read.
#[derive(Debug)]
pub(crate) struct Payload {
    /// The name for the command line.
    pub(crate) name: &'static str,
    /// Its description, for the table.
    pub(crate) title: &'static str,
    pub(crate) dialect: Dialect,
    /// The first byte of the dialect's canonical markers, which the copy loop searches for.
    pub(crate) first_byte: u8,
    /// The start marker, which the search for a whole marker finds.
    pub(crate) start: &'static str,
    pub(crate) text: String,
    pub(crate) parts: Vec<Part>,
}

impl Payload {
    fn block(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            dialect: Dialect::block(),
            first_byte: b'!',
            start: Dialect::BLOCK_START,
            text: String::new(),
            parts: Vec::new(),
        }
    }

    fn text(&mut self, text: String) {
        self.text.push_str(&text);
        // The text after the end marker of the previous call is part of the text between two calls.
        match self.parts.last_mut() {
            Some(Part::Text(before)) => before.push_str(&text),
            _ => self.parts.push(Part::Text(text)),
        }
    }

    fn block_call(&mut self, name: &str, values: Vec<(String, String)>) {
        self.text.push_str("!!!GADGET_START:");
        self.text.push_str(name);
        self.text.push('\n');
        for (pointer, value) in &values {
            self.text.push_str("!!!ARG:");
            self.text.push_str(pointer);
            self.text.push('\n');
            self.text.push_str(value);
            self.text.push('\n');
        }
        self.text.push_str("!!!GADGET_END");
        self.call(name, String::new(), values);
        self.text("\n".to_owned());
    }

    fn emoji_call(&mut self, name: &str, line: String, body: String) {
        self.text.push_str("🛠️[");
        self.text.push_str(name);
        self.text.push(' ');
        self.text.push_str(&line);
        self.text.push_str("]\n");
        self.text.push_str(&body);
        self.text.push_str("🛠️[/end]");
        self.call(name, line, vec![(String::new(), body)]);
        self.text("\n".to_owned());
    }

    fn call(&mut self, name: &str, line: String, values: Vec<(String, String)>) {
        let name = name.to_owned();
        self.parts.push(Part::Call(Call {
            name,
            line,
            values,
            closed: true,
        }));
    }
}

/// Returns all payloads: at full size, or smaller ones of the same kind.
pub(crate) fn all(quick: bool) -> Vec<Payload> {
    let share = if quick { 4 } else { 1 };
    vec![
        words(2_000_000 / share),
        prose(2_000_000 / share),
        value(5_000_000 / share),
        tiny(100_000 / share),
        heavy(100),
        emoji(2_000_000 / share),
    ]
}

/// Prose without calls.
pub(crate) fn words(len: usize) -> Payload {
    let mut payload = Payload::block("words", "prose, no calls");
    payload.text(paragraphs(&mut Writer::plain(1), len));
    payload
}

/// Prose in which 5 % of the bytes are calls.
pub(crate) fn prose(len: usize) -> Payload {
    let mut payload = Payload::block("prose", "prose, 5 % calls");
    let mut writer = Writer::plain(1);
    while payload.text.len() < len {
        payload.text(paragraphs(&mut writer, 5_000));
        let mut content = String::new();
        writer.code(&mut content, 190);
        let path = format!("notes/{}.txt", payload.parts.len());
        payload.block_call(
            "WriteFile",
            vec![("path".to_owned(), path), ("content".to_owned(), content)],
        );
    }
    payload
}

/// One value of `len` bytes between two sentences.
pub(crate) fn value(len: usize) -> Payload {
    let mut payload = Payload::block("value", "one long value");
    let mut writer = Writer::plain(2);
    payload.text(paragraphs(&mut writer, 60));
    let mut content = String::new();
    writer.code(&mut content, len);
    payload.block_call("WriteFile", vec![("content".to_owned(), content)]);
    payload.text(paragraphs(&mut writer, 60));
    payload
}

/// Calls of about fifty bytes, one directly after the other.
pub(crate) fn tiny(count: usize) -> Payload {
    let mut payload = Payload::block("tiny", "tiny calls");
    for number in 0..count {
        payload.block_call("Tick", vec![("n".to_owned(), number.to_string())]);
    }
    payload
}

/// About 90 bytes of prose before each call with an argument of about 200 bytes.
pub(crate) fn heavy(count: usize) -> Payload {
    let mut payload = Payload::block("heavy", "call-heavy");
    let mut writer = Writer::plain(3);
    for _ in 0..count {
        let mut before = String::new();
        while before.len() < 70 {
            writer.sentence(&mut before);
        }
        before.push('\n');
        payload.text(before);
        let mut content = String::new();
        writer.code(&mut content, 185);
        payload.block_call("WriteFile", vec![("content".to_owned(), content)]);
    }
    payload
}

/// Prose with emoji, and calls in the emoji-bracket syntax.
pub(crate) fn emoji(len: usize) -> Payload {
    let mut payload = Payload {
        dialect: Dialect::emoji(),
        first_byte: 0xF0,
        start: "🛠️[",
        ..Payload::block("emoji", "emoji prose, calls")
    };
    let mut writer = Writer::emoji(4);
    while payload.text.len() < len {
        payload.text(paragraphs(&mut writer, 1_000));
        let mut body = String::new();
        writer.code(&mut body, 190);
        body.push('\n');
        let line = format!("notes/{}.txt utf-8", payload.parts.len());
        payload.emoji_call("create-file", line, body);
    }
    payload
}

fn paragraphs(writer: &mut Writer, len: usize) -> String {
    let mut text = String::new();
    writer.prose(&mut text, len);
    text
}
