//! A terminal on which text scrolls, and below it stand lines that are redrawn in place.
//!
//! The cursor rests on the row that is being written, above the region. Anything the terminal does to the lines below
//! it when it is resized, the next frame begins at the cursor and clears all that follows.

use std::fmt::Write as _;

use crate::terminal::line::Line;
use crate::terminal::prose::Prose;
use crate::terminal::tty::Size;

/// The region takes at most so much of the height, so that the text stays in sight.
const SHARE: (usize, usize) = (3, 4);

pub(crate) struct Screen {
    pub(crate) prose: Prose,
    has_color: bool,
    measure: fn() -> Size,
    size: Size,
    /// The last frame, so that nothing is written if nothing has changed.
    frame: String,
    /// How many columns of the cursor's row are taken.
    row_width: usize,
}

/// A frame that is being drawn.
pub(crate) struct Frame {
    begin: String,
    is_resized: bool,
}

impl Screen {
    pub(crate) fn new(has_color: bool, measure: fn() -> Size) -> Self {
        Self {
            prose: Prose::new(),
            has_color,
            size: measure(),
            measure,
            frame: String::new(),
            row_width: 0,
        }
    }

    /// The widest line: the last column stays free, since terminals differ in what they do there.
    pub(crate) fn columns(&self) -> usize {
        self.size.columns.saturating_sub(1).max(1)
    }

    /// How many rows the region may take.
    pub(crate) fn room(&self) -> usize {
        let (part, whole) = SHARE;
        (self.size.rows * part / whole).min(self.size.rows.saturating_sub(1))
    }

    /// Begins a frame, for the size that the terminal has now.
    pub(crate) fn begin_frame(&mut self) -> Frame {
        let size = (self.measure)();
        let is_resized = size != self.size;
        let begin = self.beginning(size);
        self.size = size;
        // The region is laid out below the row that is being written.
        self.prose.fit(self.columns());
        Frame { begin, is_resized }
    }

    /// Draws what has changed.
    pub(crate) fn end_frame(&mut self, begun: &Frame, region: &[Line], out: &mut String) {
        let rows = self.prose.take_rows();
        let mut frame = String::new();
        self.prose.row().write(&mut frame, self.has_color);
        frame.push_str("\x1b[K");
        for line in region {
            frame.push_str("\r\n");
            line.write(&mut frame, self.has_color);
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        if !region.is_empty() {
            let _ = write!(frame, "\x1b[{}A", region.len());
        }
        frame.push('\r');
        let column = self.prose.row().width();
        if column > 0 {
            let _ = write!(frame, "\x1b[{column}C");
        }
        if rows.is_empty() && !begun.is_resized && frame == self.frame {
            return;
        }
        // Terminals that know it show the frame as a whole; the others pass over it.
        out.push_str("\x1b[?2026h");
        out.push_str(&begun.begin);
        for row in &rows {
            row.write(out, self.has_color);
            out.push_str("\x1b[K\r\n");
        }
        out.push_str(&frame);
        out.push_str("\x1b[?2026l");
        self.row_width = column;
        self.frame = frame;
    }

    /// Moves the cursor to the beginning of its row, which a narrower terminal may have broken into several.
    fn beginning(&self, size: Size) -> String {
        let rows = self.row_width.saturating_sub(1) / size.columns.max(1);
        if size.columns < self.size.columns && rows > 0 {
            format!("\x1b[{rows}A\r")
        } else {
            "\r".to_owned()
        }
    }

    /// Takes the region away and leaves the cursor on an empty row below the text.
    pub(crate) fn clear(&mut self, out: &mut String) {
        self.prose.end_started_row();
        out.push_str(&self.beginning(self.size));
        for row in self.prose.take_rows() {
            row.write(out, self.has_color);
            out.push_str("\x1b[K\r\n");
        }
        out.push_str("\x1b[J");
        self.row_width = 0;
        self.frame.clear();
    }

    /// Writes pending lines and removes the region, if there is one. Other output on the terminal is left
    /// alone.
    pub(crate) fn rest(&mut self, out: &mut String) {
        self.prose.end_started_row();
        if self.prose.waiting_rows() > 0 || !self.frame.is_empty() {
            self.clear(out);
        }
    }

    /// Asks for the size anew, for what is written behind the last frame.
    pub(crate) fn measure(&mut self) {
        self.size = (self.measure)();
    }
}
