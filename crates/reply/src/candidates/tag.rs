//! The tag that begins a candidate, and what directly follows it.

use plaincall_syntax::{Begins, CALL_TAGS, begins_python};

use crate::candidates::python_scan::PythonScan;
use crate::candidates::{Candidates, LONGEST_HEAD, Piece, STRIPPED, STRIPPED_TAG, State};

impl Candidates {
    /// Takes a character of a tag, or of the beginning of a list.
    pub(super) fn take_tag(&mut self, c: char, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        // No tag that begins with `[` contains a blank.
        let may_be_list = self.held.len() == 1 || self.held.ends_with(char::is_whitespace);
        let is_list = self.held.starts_with('[') && may_be_list && !self.open.is_tagged;
        if is_list && self.is_apart && (c == '{' || c.is_whitespace()) {
            if c == '{' {
                let list = std::mem::take(&mut self.held);
                self.state = State::Json;
                list.chars().all(|c| self.take_json(c, out));
                return false;
            }
            self.held.push(c);
            return true;
        }
        let begun = self.held.len();
        self.held.push(c);
        let known = |tag: &&str| {
            let same = tag.get(..self.held.len());
            same.is_some_and(|same| same.eq_ignore_ascii_case(&self.held))
        };
        let mut tags = CALL_TAGS.iter().map(|(tag, _)| *tag);
        match tags.position(|tag| known(&tag)) {
            None => {
                let python = begins_python(&self.held);
                if self.is_apart && self.block.is_none() && self.held.len() <= LONGEST_HEAD {
                    match python {
                        Begins::No => {}
                        Begins::Perhaps => return true,
                        Begins::Yes => return self.begin_python(out),
                    }
                }
                self.held.truncate(begun);
                self.is_stripped |= self.held == STRIPPED && c.is_alphanumeric();
                // Marks of code are read again.
                let marks = self.held.find('`').map(|at| self.held.split_off(at));
                self.continue_as_text(out);
                marks.unwrap_or_default().chars().all(|c| self.take(c, out));
                false
            }
            Some(tag) => {
                if CALL_TAGS.get(tag).map(|(tag, _)| tag.len()) == Some(self.held.len()) {
                    // This bracket belongs to the call.
                    let is_list = self.held.ends_with('[');
                    self.held.truncate(self.held.len() - usize::from(is_list));
                    let is_glued = true;
                    self.state = State::Behind { tag, is_glued };
                    return !is_list;
                }
                true
            }
        }
    }

    /// Begins a list in Python.
    fn begin_python(&mut self, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        let text = std::mem::take(&mut self.held);
        self.begin("", None, true);
        let name = text.split('(').next().unwrap_or_default();
        let name = name.trim_start_matches('[').trim().to_owned();
        self.open.named.head.clone_from(&name);
        self.open.tool = Some(name);
        self.state = State::Python(PythonScan::default());
        text.chars().all(|c| self.take(c, out))
    }

    /// Takes a character behind a tag.
    pub(super) fn take_behind(
        &mut self,
        c: char,
        tag: usize,
        is_glued: bool,
        out: &mut dyn FnMut(Piece<'_>),
    ) -> bool {
        let (name, end) = CALL_TAGS.get(tag).copied().unwrap_or_default();
        let is_value = name.ends_with(['=', '.']);
        if c.is_whitespace() && !is_value {
            self.held.push(c);
            let is_glued = is_glued && c == '\n';
            self.state = State::Behind { tag, is_glued };
            return true;
        }
        let is_word = c.is_alphanumeric() || matches!(c, '_' | '"');
        let begins_call = matches!(c, '{' | '[' | '<') || (is_word && (is_value || is_glued));
        if !begins_call {
            self.continue_as_text(out);
            return false;
        }
        self.begin(end, None, true);
        let is_stripped = name == STRIPPED_TAG && self.is_stripped;
        let is_in_line = is_stripped || self.edges.may_precede(name);
        self.open.is_apart |= is_in_line && self.block.is_none();
        self.open.is_named = name.ends_with('=');
        if is_word && !is_value && end.starts_with("</") {
            self.state = State::Name;
            return false;
        }
        self.state = match (c, end) {
            ('{' | '[', _) if !is_value => State::Json,
            (_, "") => State::Head,
            _ => State::ToEnd,
        };
        false
    }

    /// Takes a character of the name of the tool in a tag with an end.
    pub(super) fn take_tool_name(&mut self, c: char, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        let is_inside = c.is_alphanumeric() || "_-.:".contains(c);
        let is_behind =
            self.held.ends_with(char::is_whitespace) && !self.open.named.head.is_empty();
        if is_inside && !is_behind {
            self.open.named.head.push(c);
        } else if c == '<' || (c == '(' && !is_behind) {
            self.state = State::ToEnd;
            return false;
        } else if !c.is_whitespace() {
            self.continue_as_text(out);
            return false;
        }
        self.held.push(c);
        true
    }
}
