//! A terminal's screen as an SVG.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

/// The width of a column and the height of a row, in pixels.
const COLUMN: f64 = 8.4;
const ROW: f64 = 19.0;
/// The space around the text, and the height of the title bar.
const MARGIN: f64 = 16.0;
const TITLE: f64 = 34.0;

const STYLE: &str = "text { font: 14px ui-monospace, 'SF Mono', 'Cascadia Mono', 'DejaVu Sans Mono', Menlo, Consolas, \
    monospace; fill: #d6dae2; white-space: pre } .b { font-weight: bold } .d { fill: #8b93a1 } .i { font-style: italic } \
    .c1 { fill: #ff7b72 } .c2 { fill: #57c98b } .c3 { fill: #e3b341 } .c4 { fill: #6ea8fe } .c5 { fill: #d2a8ff } \
    .c6 { fill: #56c8d8 }";

/// Draws the rows of a screen up to the last that is not empty, below the command that was entered.
pub(crate) fn svg(screen: &Screen, command: &str) -> String {
    let (rows, columns) = screen.size();
    let lines: Vec<String> = (0..rows.get()).map(|row| line(screen, row)).collect();
    let count = lines.iter().rposition(|line| !line.is_empty());
    let count = u16::try_from(count.map_or(0, |last| last + 1)).unwrap();
    let width = f64::from(columns.get()) * COLUMN + 2.0 * MARGIN;
    let height = TITLE + f64::from(count) * ROW + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\">\n<title>{}</title>\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" \
         rx=\"8\" fill=\"#14181f\"/>\n<text x=\"{MARGIN}\" y=\"22\" class=\"d\">$ {}</text>\n",
        escape(command),
        escape(command)
    );
    for (row, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
    {
        let y = TITLE + (f64::from(u16::try_from(row).unwrap()) + 0.75) * ROW;
        writeln!(svg, "<text y=\"{y:.0}\">{line}</text>").unwrap();
    }
    svg + "</svg>\n"
}

/// A row as spans of one style, each at its column.
fn line(screen: &Screen, row: u16) -> String {
    let (_, columns) = screen.size();
    let mut spans: Vec<(u16, String, String)> = Vec::new();
    let mut after_blank = true;
    for column in 0..columns.get() {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
            after_blank = true;
            continue;
        };
        let (classes, text) = (classes(cell), cell.contents());
        match spans.last_mut() {
            // A blank does not start a span, so that one at the end of a row is not drawn.
            Some((_, last, span)) if !after_blank && *last == classes => span.push_str(text),
            _ if text == " " => {
                after_blank = true;
                continue;
            }
            _ => spans.push((column, classes, text.to_owned())),
        }
        after_blank = false;
    }
    let mut line = String::new();
    for (column, classes, text) in spans {
        let x = MARGIN + f64::from(column) * COLUMN;
        let class = match classes.trim() {
            "" => String::new(),
            classes => format!(" class=\"{classes}\""),
        };
        let text = escape(text.trim_end());
        write!(line, "<tspan x=\"{x:.1}\"{class}>{text}</tspan>").unwrap();
    }
    line
}

fn classes(cell: &Cell) -> String {
    let mut classes = String::new();
    for (is_so, name) in [
        (cell.bold(), "b "),
        (cell.dim(), "d "),
        (cell.italic(), "i "),
    ] {
        classes.push_str(if is_so { name } else { "" });
    }
    if let Color::Idx(index) = cell.fgcolor() {
        write!(classes, "c{index}").unwrap();
    }
    classes
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
