//! `plaincall explain`: what each byte of a text is taken for, and the rule behind it.
#![allow(
    clippy::doc_markdown,
    reason = "help has no markup that would be read, so a proper name stands in it as it is"
)]
#![allow(
    clippy::struct_excessive_bools,
    reason = "independent switches of the command line"
)]

mod shown;

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::Args;
use plaincall_call::{Severity, Span, Unclosed};
use plaincall_syntax::{Dialect, ExplainedRange, Meaning, explain as explain_text};
use serde::Serialize;

use crate::explain::shown::shown;
use crate::options::DialectOptions;
use crate::output::Output;
use crate::picture::line::Line;
use crate::picture::palette::{CALL, CALL_NAME, DIM, PLAIN, REASONING};
use crate::run::Size;
use crate::status::{Failure, Outcome, Status};
use crate::text::advice::NEAR_MISS;
use crate::text::findings::{Findings, Found, counted};
use crate::text::input::{Input, each};
use crate::text::reading::refused;
use crate::text::rejections::AsRun;
use crate::text::source::{Counter, Source};
use crate::visible::harmless;

/// The columns that a text takes at most where nobody knows how wide the page is.
const SHOWN: usize = 60;
/// The columns that it has at least behind its place; where there are fewer it gets a line of its own.
const LEAST: usize = 16;
/// How far what is said of a range stands inside.
const INSIDE: usize = 4;
/// How far apart the columns are.
const GAP: usize = 2;

const ARGUMENT: Style = AnsiColor::Yellow.on_default();
const VALUE: Style = AnsiColor::Green.on_default();
const WRONG: Style = AnsiColor::Red.on_default().bold();
const ODD: Style = AnsiColor::Yellow.on_default().bold();

/// Show what each byte of a text is taken for, and the rule behind it.
///
/// Every byte of the text stands in exactly one range. Each range is printed with its place in bytes, its line and column,
/// its text, what it is taken for, and the section of the definition (`spec/`) that says so. What `check` finds stands
/// at its place, with what to do about it. How the text of an argument becomes its value is what `parse --explain` says.
///
/// Exit status: 0 if the input could be read, whatever stands in it; 1 if a file could not be read.
#[derive(Args, Debug)]
#[command(after_long_help = EXPLAIN_FORM)]
pub(crate) struct ExplainOptions {
    /// The texts to explain; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object a range, each on a line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

const EXPLAIN_FORM: &str = "\
Visible signs stand for what cannot be seen: `␊` is a line feed, `␍` a carriage return, `␉` a tab, `␠` a blank at the edge \
of a range, `\\xff` a byte that is not UTF-8. A long text is shown with its beginning and its end.

Ranges (`--json`): `file`, `span` (bytes, from and to), `line`, `column`, `text` (whole, each part that is not UTF-8 as \
U+FFFD), `taken_for`, `words` (the same for people), `rule` (as `spec/block.md 4.1`), `call` (the name of the tool) and \
`argument` (its pointer) where the range belongs to one, and `findings`, each with `code`, `severity`, `span`, `message`, \
`rule`, and where there is one `help` and `meant`. `taken_for` is one of `text`, `reasoning_open`, `reasoning`, \
`reasoning_close`, `reasoning_cut_off`, `escape`, `marker_as_content`, `call_start`, `self_closing_call`, \
`blank_before_argument`, `fence_before_argument`, `text_before_argument`, `argument_start`, `rest_of_pointer_line`, \
`line_end_before_body`, `value`, `body`, `empty_value`, `empty_body`, `line_end_after_value`, `end_marker`, \
`end_marker_in_mid_line`, `end_by_next_call`, `end_of_input`. The spans cover the text without a gap; what only ends somewhere, and a value that is \
empty, is a range of no bytes.";

pub(crate) fn explain(options: &ExplainOptions, output: &mut Output) -> Outcome {
    let dialect = options.dialect.dialect()?;
    let mut is_first = true;
    each(&options.files, output, |file, output| {
        let input = Input::open(file)?;
        let name = input.name.clone();
        let text = Explained::new(name, input.into_bytes()?, &dialect)?;
        if options.json {
            text.write_json(output)?;
        } else {
            if !std::mem::take(&mut is_first) {
                output.bytes(b"\n")?;
            }
            text.write(output)?;
        }
        Ok(Status::Good)
    })
}

/// A text in ranges, each with what was found there.
struct Explained {
    source: Source,
    bytes: Vec<u8>,
    findings: Findings,
    ranges: Vec<Range>,
}

struct Range {
    range: ExplainedRange,
    /// Which of the findings begin there.
    findings: std::ops::Range<usize>,
}

impl Explained {
    fn new(name: String, bytes: Vec<u8>, dialect: &Dialect) -> Result<Self, Failure> {
        let ranges = explain_text(&bytes, dialect).map_err(|error| refused(&error))?;
        let source = Source::new(name, bytes.clone());
        let run = AsRun {
            dialect,
            tools: None,
            unclosed: Unclosed::default(),
        };
        let findings = Findings::of(&source, dialect, run)?;
        let ranges = with_findings(&source, ranges, &findings.remarks);
        Ok(Self {
            source,
            bytes,
            findings,
            ranges,
        })
    }

    fn text(&self, span: Span) -> &[u8] {
        self.bytes.get(span.range()).unwrap_or_default()
    }

    /// For people.
    fn write(&self, output: &mut Output) -> Result<(), Failure> {
        let mut counter = Counter::new(&self.bytes);
        let mut places = Vec::with_capacity(self.ranges.len());
        for Range { range, .. } in &self.ranges {
            let Span { start, end } = range.span;
            let (line, column) = counter.position(start);
            places.push((format!("{start}..{end}"), format!("{line}:{column}")));
        }
        let widest = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or_default();
        let page = Page {
            width: output
                .is_terminal
                .then(|| Size::of_standard_output().columns),
            bytes: widest(&mut places.iter().map(|(bytes, _)| bytes.len())),
            position: widest(&mut places.iter().map(|(_, position)| position.len())),
        };
        let syntax = match self.findings.syntax {
            Some(syntax) => format!(", {} syntax", syntax.name()),
            None => String::new(),
        };
        let size = counted(self.bytes.len(), "byte");
        let calls = counted(self.findings.calls, "call");
        output.text(format_args!(
            "{}: {size}, {calls}{syntax}\n",
            harmless(&self.source.name)
        ))?;
        let mut text = String::new();
        let mut counter = Counter::new(&self.bytes);
        for (range, place) in self.ranges.iter().zip(&places) {
            for line in self.lines(range, place, &page, &mut counter) {
                line.write(&mut text, output.has_color);
                text.push('\n');
            }
            output.text(format_args!("{text}"))?;
            text.clear();
        }
        Ok(())
    }

    fn lines(
        &self,
        range: &Range,
        (bytes, position): &(String, String),
        page: &Page,
        counter: &mut Counter<'_>,
    ) -> Vec<Line> {
        let Range { range, findings } = range;
        let mut lines = Vec::new();
        let mut line = Line::new();
        line.pad_to(page.bytes - bytes.len());
        line.push(DIM, bytes);
        line.pad_to(page.bytes + GAP);
        line.push(DIM, position);
        let column = page.bytes + page.position + 2 * GAP;
        let behind = page
            .width
            .map_or(SHOWN, |width| width.saturating_sub(column));
        let (column, room) = if behind < LEAST {
            lines.push(std::mem::take(&mut line));
            (INSIDE, page.room(INSIDE))
        } else {
            (column, behind)
        };
        line.pad_to(column);
        if range.span.is_empty() {
            line.push(DIM, "(no bytes)");
        } else {
            line.push(style(range.meaning), &shown(self.text(range.span), room));
        }
        lines.push(line);

        let mut words = Line::of(PLAIN, &range.to_string());
        words.push(DIM, &format!(" ({})", range.section));
        page.push(&mut lines, &words);
        for found in self
            .findings
            .remarks
            .get(findings.clone())
            .unwrap_or_default()
        {
            let finding = &found.finding;
            let style = match finding.severity {
                Severity::Error => WRONG,
                Severity::Warning => ODD,
            };
            let mut line = Line::of(
                style,
                &format!("{}[{}]", finding.severity.name(), finding.code),
            );
            let start = self.source.in_bytes(finding.span.start);
            if start > range.span.start {
                let (row, column) = counter.position(start);
                line.push(DIM, &format!(" {row}:{column}"));
            }
            line.push(style, ":");
            line.push(PLAIN, &format!(" {}", finding.message));
            line.push(DIM, &format!(" ({})", finding.section));
            page.push(&mut lines, &line);
            if let Some(help) = &found.help {
                let mut line = Line::of(CALL, "help:");
                line.push(PLAIN, &format!(" {help}"));
                page.push(&mut lines, &line);
            }
        }
        lines
    }

    /// For programs.
    fn write_json(&self, output: &mut Output) -> Result<(), Failure> {
        let mut counter = Counter::new(&self.bytes);
        for Range { range, findings } in &self.ranges {
            let Span { start, end } = range.span;
            let (line, column) = counter.position(start);
            let findings = self.findings.remarks.get(findings.clone());
            let findings = findings.unwrap_or_default().iter().map(|found| {
                let Span { start, end } = found.finding.span;
                JsonFinding {
                    code: found.finding.code,
                    severity: found.finding.severity.name(),
                    span: (self.source.in_bytes(start), self.source.in_bytes(end)),
                    message: &found.finding.message,
                    rule: found.finding.section.to_string(),
                    help: found.help.as_deref(),
                    meant: found.meant.as_deref(),
                }
            });
            output.json_line(&JsonRange {
                file: &self.source.name,
                span: (start, end),
                line,
                column,
                text: &String::from_utf8_lossy(self.text(range.span)),
                taken_for: range.meaning.name(),
                words: range.to_string(),
                rule: range.section.to_string(),
                call: range.call.as_deref(),
                argument: range.argument.as_deref(),
                findings: findings.collect(),
            })?;
        }
        Ok(())
    }
}

/// How the lines are laid out.
struct Page {
    /// The columns of the terminal, if there is one.
    width: Option<usize>,
    /// The columns of places in bytes, and of lines and columns.
    bytes: usize,
    position: usize,
}

impl Page {
    /// The columns behind one.
    fn room(&self, column: usize) -> usize {
        self.width
            .map_or(usize::MAX, |width| width.saturating_sub(column).max(LEAST))
    }

    /// Adds what is said of a range, broken where the page ends.
    fn push(&self, lines: &mut Vec<Line>, said: &Line) {
        for row in said.wrapped(self.room(INSIDE)) {
            let mut line = Line::new();
            line.pad_to(INSIDE);
            line.append(&row);
            lines.push(line);
        }
    }
}

/// Gives each range what was found there. What looks like a marker gets ranges of its own.
fn with_findings(source: &Source, ranges: Vec<ExplainedRange>, found: &[Found]) -> Vec<Range> {
    let is_near = |found: &&Found| found.finding.code == NEAR_MISS;
    let near = found.iter().filter(is_near);
    let mut borders = near
        .flat_map(|found| [found.finding.span.start, found.finding.span.end])
        .map(|border| source.in_bytes(border))
        .peekable();
    let mut parts = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        while let Some(&border) = borders.peek()
            && border < range.span.end
        {
            borders.next();
            if border > range.span.start && is_content(range.meaning) {
                let mut front = range.clone();
                front.span.end = border;
                range.span.start = border;
                parts.push(front);
            }
        }
        parts.push(range);
    }
    let count = parts.len();
    let mut next = 0;
    let given = parts.into_iter().enumerate().map(|(index, range)| {
        let first = next;
        let is_last = index + 1 == count;
        while let Some(found) = found.get(next)
            && (is_last || source.in_bytes(found.finding.span.start) < range.span.end)
        {
            next += 1;
        }
        Range {
            range,
            findings: first..next,
        }
    });
    given.collect()
}

/// Whether a range of it may be told in two.
fn is_content(meaning: Meaning) -> bool {
    matches!(
        meaning,
        Meaning::Text
            | Meaning::Reasoning
            | Meaning::Value
            | Meaning::Body
            | Meaning::BlankBeforeArgument
            | Meaning::FenceBeforeArgument
            | Meaning::TextBeforeArgument
    )
}

fn style(meaning: Meaning) -> Style {
    match meaning {
        Meaning::Text | Meaning::MarkerAsContent(..) => PLAIN,
        Meaning::Reasoning => REASONING,
        Meaning::CallStart(_) | Meaning::SelfClosingCall => CALL_NAME,
        Meaning::EndMarker(_) | Meaning::EndMarkerInMidLine => CALL,
        Meaning::ArgumentStart => ARGUMENT,
        Meaning::Value | Meaning::Body => VALUE,
        _ => DIM,
    }
}

#[derive(Serialize)]
struct JsonRange<'a> {
    file: &'a str,
    span: (usize, usize),
    line: usize,
    column: usize,
    text: &'a str,
    taken_for: &'a str,
    words: String,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<&'a str>,
    findings: Vec<JsonFinding<'a>>,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    code: &'a str,
    severity: &'a str,
    span: (usize, usize),
    message: &'a str,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meant: Option<&'a str>,
}
