//! The lines of a text on a terminal, and what stands below them.

use anstyle::{AnsiColor, Style};
use plaincall_call::{Remark, Severity, Syntax, Termination, ToolCall};
use plaincall_syntax::Header;

use crate::output::Output;
use crate::status::Failure;
use crate::visible::{is_invisible, visible};

/// What the parts of a text look like.
pub(crate) struct Palette {
    pub(crate) bar: Style,
    pub(crate) marker: Style,
    pub(crate) name: Style,
    pub(crate) place: Style,
    pub(crate) value: Style,
    pub(crate) reasoning: Style,
    pub(crate) ignored: Style,
    pub(crate) warning: Style,
    pub(crate) error: Style,
    pub(crate) note: Style,
}

impl Palette {
    const fn coloured() -> Self {
        Self {
            bar: AnsiColor::Cyan.on_default(),
            marker: Style::new().dimmed(),
            name: AnsiColor::Cyan.on_default().bold(),
            place: AnsiColor::Yellow.on_default(),
            value: AnsiColor::Green.on_default(),
            reasoning: Style::new().dimmed().italic(),
            ignored: Style::new().dimmed().strikethrough(),
            warning: AnsiColor::Yellow.on_default().bold(),
            error: AnsiColor::Red.on_default().bold(),
            note: Style::new().dimmed(),
        }
    }

    const fn plain() -> Self {
        const PLAIN: Style = Style::new();
        Self {
            bar: PLAIN,
            marker: PLAIN,
            name: PLAIN,
            place: PLAIN,
            value: PLAIN,
            reasoning: PLAIN,
            ignored: PLAIN,
            warning: PLAIN,
            error: PLAIN,
            note: PLAIN,
        }
    }
}

/// What the last thing written belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Call,
    /// The line on which a call has ended.
    BehindCall,
}

/// The lines that have been written, and what is to be written below the present one.
pub(crate) struct Screen {
    pub(crate) palette: Palette,
    part: Part,
    is_line_start: bool,
    /// Whether a carriage return has been read that a line feed may follow.
    has_return: bool,
    /// Lines for below the present one.
    below: Vec<Below>,
}

/// A line below the one that it is about.
struct Below {
    style: Style,
    message: String,
    /// Whether it belongs to the inside of a call.
    has_bar: bool,
}

impl Screen {
    pub(crate) fn new(has_color: bool) -> Self {
        Self {
            palette: if has_color {
                Palette::coloured()
            } else {
                Palette::plain()
            },
            part: Part::Text,
            is_line_start: true,
            has_return: false,
            below: Vec::new(),
        }
    }

    /// A call begins, on a line of its own.
    pub(crate) fn begin_call(&mut self, output: &mut Output) -> Result<(), Failure> {
        self.end_line(output)?;
        self.part = Part::Call;
        Ok(())
    }

    pub(crate) fn header(
        &mut self,
        header: &Header<'_>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let Palette {
            marker,
            name,
            place,
            ..
        } = self.palette;
        self.parts(
            header.source(),
            header.name(),
            [marker, name, place],
            output,
        )
    }

    /// Writes `source`, in which `part` stands, in three styles: before it, itself, behind it.
    pub(crate) fn parts(
        &mut self,
        source: &str,
        part: &str,
        styles: [Style; 3],
        output: &mut Output,
    ) -> Result<(), Failure> {
        let [before, itself, behind] = styles;
        // The part is a slice of the source, so the distance of the two is its place.
        let at = part.as_ptr().addr().wrapping_sub(source.as_ptr().addr());
        let split = source
            .split_at_checked(at)
            .and_then(|(front, rest)| Some((front, rest.strip_prefix(part)?)));
        let Some((front, rest)) = split else {
            return self.write(source, itself, output);
        };
        self.write(front, before, output)?;
        self.write(part, itself, output)?;
        self.write(rest, behind, output)
    }

    pub(crate) fn write(
        &mut self,
        text: &str,
        style: Style,
        output: &mut Output,
    ) -> Result<(), Failure> {
        for piece in text.split_inclusive('\n') {
            let (line, has_end) = match piece.strip_suffix('\n') {
                Some(line) => (line, true),
                None => (piece, false),
            };
            let is_over = line.is_empty() || (has_end && line == "\r");
            if self.part == Part::BehindCall && !is_over {
                // What was found about the call belongs below it, so what follows gets a line of its own.
                self.end_line(output)?;
            }
            self.line(line, style, output)?;
            if has_end {
                self.has_return = false;
                self.begin_line(output)?;
                output.bytes(b"\n")?;
                self.is_line_start = true;
                self.write_below(output)?;
            }
        }
        Ok(())
    }

    /// Writes a piece of a line.
    fn line(&mut self, line: &str, style: Style, output: &mut Output) -> Result<(), Failure> {
        if line.is_empty() {
            return Ok(());
        }
        self.begin_line(output)?;
        output.text(format_args!("{style}"))?;
        if self.has_return {
            output.text(format_args!("{}", visible('\r')))?;
        }
        let (line, has_return) = match line.strip_suffix('\r') {
            Some(line) => (line, true),
            None => (line, false),
        };
        self.has_return = has_return;
        let mut rest = line;
        while let Some(at) = rest.find(is_invisible) {
            let (plain, behind) = rest.split_at_checked(at).unwrap_or((rest, ""));
            output.bytes(plain.as_bytes())?;
            let mut characters = behind.chars();
            if let Some(found) = characters.next() {
                output.text(format_args!("{}", visible(found)))?;
            }
            rest = characters.as_str();
        }
        output.bytes(rest.as_bytes())?;
        output.text(format_args!("{style:#}"))
    }

    fn begin_line(&mut self, output: &mut Output) -> Result<(), Failure> {
        if self.is_line_start && self.part == Part::Call {
            let bar = self.palette.bar;
            output.text(format_args!("{bar}│{bar:#} "))?;
        }
        self.is_line_start = false;
        Ok(())
    }

    /// Ends the present line, if something stands on it.
    pub(crate) fn end_line(&mut self, output: &mut Output) -> Result<(), Failure> {
        self.has_return = false;
        if !self.is_line_start {
            output.bytes(b"\n")?;
            self.is_line_start = true;
        }
        self.write_below(output)
    }

    fn write_below(&mut self, output: &mut Output) -> Result<(), Failure> {
        if self.part == Part::BehindCall {
            self.part = Part::Text;
        }
        let bar = self.palette.bar;
        for Below {
            style,
            message,
            has_bar,
        } in std::mem::take(&mut self.below)
        {
            if has_bar {
                output.text(format_args!("{bar}│{bar:#} "))?;
            }
            output.text(format_args!("{style}└ {message}{style:#}\n"))?;
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, remark: Remark<'_>) {
        let severity = remark.severity();
        let style = match severity {
            Severity::Error => self.palette.error,
            Severity::Warning => self.palette.warning,
        };
        let message: String = remark.message().chars().map(shown).collect();
        self.below.push(Below {
            style,
            message: format!("{}[{}]: {message}", severity.name(), remark.code()),
            has_bar: self.part == Part::Call,
        });
    }

    pub(crate) fn note_end(&mut self, call: &ToolCall) {
        self.part = Part::BehindCall;
        let ended = match (call.termination, call.syntax) {
            (Termination::NextCall, _) => Some("ended by the next call"),
            // The parser has said it already for the emoji syntax.
            (Termination::EndOfStream, Syntax::Block) => Some("cut by the end of the text"),
            _ => None,
        };
        let id = call.is_id_automatic.then(|| format!("id {}", call.id));
        let notes: Vec<&str> = id.as_deref().into_iter().chain(ended).collect();
        if !notes.is_empty() {
            self.below.push(Below {
                style: self.palette.note,
                message: notes.join(", "),
                has_bar: false,
            });
        }
    }
}

/// A character as it can be seen, whatever it is.
fn shown(c: char) -> String {
    if is_invisible(c) {
        visible(c)
    } else {
        c.to_string()
    }
}
