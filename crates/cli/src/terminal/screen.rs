//! A terminal with scrolling text and, below it, a region of lines that is redrawn in place.
//!
//! The cursor stays on the current row of the text, above the region. Each frame starts at the cursor and clears
//! everything below, so it repairs the region after a resize.

use std::fmt::Write as _;

use crate::terminal::line::Line;
use crate::terminal::prose::Prose;
use crate::terminal::tty::Size;

/// The maximum share of the height for the region, so that the text stays visible.
const SHARE: (usize, usize) = (3, 4);

/// A terminal with a redrawn region.
pub(crate) struct Screen {
    pub(crate) prose: Prose,
    has_color: bool,
    measure: fn() -> Size,
    size: Size,
    /// The last frame, to skip unchanged frames.
    frame: String,
    /// The width of the text on the cursor's row.
    row_width: usize,
}

/// A frame that is being drawn.
pub(crate) struct Frame {
    start: String,
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

    /// Returns the usable width. The last column stays free, because terminals treat it differently.
    pub(crate) fn columns(&self) -> usize {
        self.size.columns.saturating_sub(1).max(1)
    }

    /// Returns the maximum height of the region.
    pub(crate) fn room(&self) -> usize {
        let (numerator, denominator) = SHARE;
        (self.size.rows * numerator / denominator).min(self.size.rows.saturating_sub(1))
    }

    /// Starts a frame with the current size of the terminal.
    pub(crate) fn begin_frame(&mut self) -> Frame {
        let size = (self.measure)();
        let is_resized = size != self.size;
        let start = self.move_to_row_start(size);
        self.size = size;
        // The region starts below the current row.
        self.prose.fit(self.columns());
        Frame { start, is_resized }
    }

    /// Draws the changes.
    pub(crate) fn end_frame(&mut self, frame_start: &Frame, region: &[Line], out: &mut String) {
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
        if rows.is_empty() && !frame_start.is_resized && frame == self.frame {
            return;
        }
        // Synchronized output: supporting terminals show the frame at once; others ignore it.
        out.push_str("\x1b[?2026h");
        out.push_str(&frame_start.start);
        for row in &rows {
            row.write(out, self.has_color);
            out.push_str("\x1b[K\r\n");
        }
        out.push_str(&frame);
        out.push_str("\x1b[?2026l");
        self.row_width = column;
        self.frame = frame;
    }

    /// Moves the cursor to the start of its row, which a narrower terminal may have wrapped.
    fn move_to_row_start(&self, size: Size) -> String {
        let rows = self.row_width.saturating_sub(1) / size.columns.max(1);
        if size.columns < self.size.columns && rows > 0 {
            format!("\x1b[{rows}A\r")
        } else {
            "\r".to_owned()
        }
    }

    /// Removes the region and leaves the cursor on an empty row below the text.
    pub(crate) fn clear(&mut self, out: &mut String) {
        self.prose.end_started_row();
        out.push_str(&self.move_to_row_start(self.size));
        for row in self.prose.take_rows() {
            row.write(out, self.has_color);
            out.push_str("\x1b[K\r\n");
        }
        out.push_str("\x1b[J");
        self.row_width = 0;
        self.frame.clear();
    }

    /// Writes pending lines and removes the region, if any. Leaves other output alone.
    pub(crate) fn finish_text(&mut self, out: &mut String) {
        self.prose.end_started_row();
        if self.prose.waiting_rows() > 0 || !self.frame.is_empty() {
            self.clear(out);
        }
    }

    /// Updates the size of the terminal.
    pub(crate) fn measure(&mut self) {
        self.size = (self.measure)();
    }
}
