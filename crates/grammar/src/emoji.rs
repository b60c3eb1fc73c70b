//! The line and the body of an emoji call (`spec/grammar.md` 4).

use crate::keywords;
use crate::pattern::{Characters, Pattern};
use crate::schema_values::SchemaValues;
use crate::text::{Location, Strings};
use plaincall_tool::ToolSpec;
use plaincall_tool::schema::{Alternative, Kinds};
use plaincall_tool::usage::{UsageBody, UsageItem};

/// The form of an emoji call after its name.
#[derive(Clone, Debug)]
pub(crate) struct EmojiForm {
    /// The rest of the line, up to `]`.
    pub(crate) line: Pattern,
    /// The text between `]` and the end marker.
    pub(crate) body: EmojiBody,
}

#[derive(Clone, Debug)]
pub(crate) enum EmojiBody {
    Pattern(Pattern),
    /// A line end and any text or the one with this index, or nothing if it is optional.
    Text {
        is_required: bool,
        limited: Option<usize>,
    },
}

impl EmojiForm {
    /// Returns the number of its parts.
    pub(crate) fn size(&self) -> usize {
        let body = match &self.body {
            EmojiBody::Pattern(body) => body.size(),
            EmojiBody::Text { .. } => 1,
        };
        self.line.size() + body
    }
}

impl SchemaValues<'_, '_> {
    /// Returns the form of the tool's calls; `None` if no call can be valid.
    pub(crate) fn emoji_form(&mut self, tool: &ToolSpec) -> Option<EmojiForm> {
        let usage = tool.usage();
        let root = self.reader.root();
        for alternative in &root.alternatives {
            self.report_keywords("", alternative);
        }
        if usage.body == UsageBody::Json {
            let object = self.json("", &root.only(Kinds::OBJECT))?;
            let newline = || Pattern::literal("\n");
            let body = Pattern::sequence([newline(), object, newline().optional()]);
            let needs_none = tool
                .parameters()
                .iter()
                .all(|parameter| !parameter.required);
            return Some(EmojiForm {
                line: Pattern::literal(""),
                body: EmojiBody::Pattern(if needs_none { body.optional() } else { body }),
            });
        }
        if root.alternatives.len() > 1 {
            self.report("", "anyOf");
        }
        let last_required = usage.line.iter().rposition(|item| item.parameter.required);
        let mut line = Pattern::literal("");
        for (index, item) in usage.line.iter().enumerate().rev() {
            let words = self.words(item)?;
            let here = Pattern::sequence([Pattern::literal(" "), words, line]);
            let is_required = last_required.is_some_and(|last| index <= last);
            line = if is_required { here } else { here.optional() };
        }
        let body = match usage.body {
            UsageBody::Parameter(parameter) => self.body(&parameter.name, parameter.required)?,
            _ => EmojiBody::Pattern(Pattern::literal("\n").optional()),
        };
        Some(EmojiForm { line, body })
    }

    fn words(&mut self, item: &UsageItem<'_>) -> Option<Pattern> {
        let pointer = item.parameter.pointer();
        let allowed = self
            .reader
            .member(&self.reader.root(), &item.parameter.name);
        let mut options = Vec::new();
        let mut strings: Vec<&Alternative<'_>> = Vec::new();
        for alternative in &allowed.alternatives {
            self.report_keywords(&pointer, alternative);
            if self.has_too_many(&pointer, alternative) {
                return Some(word(item.takes_rest, self.is_self_closing));
            }
            let is_listed = keywords::listed(alternative).is_some();
            let kinds = alternative.kinds().unwrap_or(Kinds::ALL);
            if !is_listed && kinds.has(Kinds::STRING) {
                strings.push(alternative);
            }
            options.extend(self.scalars(&pointer, alternative, &allowed));
        }
        let before = options.len();
        let is_usable = |pattern: &Pattern| match pattern {
            Pattern::Literal(text) => {
                let is_edge = |c| c == ' ' || c == '\t';
                let is_trimmed = text.trim_matches(is_edge).len() == text.len();
                let has_blank = text.contains(is_edge);
                let is_cut = text.is_empty()
                    || text.contains(['[', ']', '\n', '\r'])
                    || (self.is_self_closing && text.ends_with('/'));
                !is_cut
                    && if item.takes_rest {
                        is_trimmed
                    } else {
                        !has_blank
                    }
            }
            _ => true,
        };
        options.retain(is_usable);
        if options.len() < before {
            self.report(&pointer, "enum");
        }
        if !strings.is_empty() {
            let any = word(item.takes_rest, self.is_self_closing);
            let location = Location::Line(any.clone());
            match self.strings(&pointer, &strings, &location, &options, allowed.kinds()) {
                Strings::Any => return Some(any),
                Strings::Limited(text) => return Some(Pattern::Text(text)),
                Strings::Impossible => {}
            }
        }
        (!options.is_empty()).then(|| Pattern::choice(options))
    }

    fn body(&mut self, name: &str, is_required: bool) -> Option<EmojiBody> {
        let pointer = plaincall_names::pointers::escape(name);
        let allowed = self.reader.member(&self.reader.root(), name);
        let mut options = Vec::new();
        let mut strings: Vec<&Alternative<'_>> = Vec::new();
        for alternative in &allowed.alternatives {
            self.report_keywords(&pointer, alternative);
            if self.has_too_many(&pointer, alternative) {
                return Some(EmojiBody::Text {
                    is_required,
                    limited: None,
                });
            }
            if keywords::listed(alternative).is_none() {
                strings.push(alternative);
            } else {
                options.extend(self.scalars(&pointer, alternative, &allowed));
            }
        }
        if !strings.is_empty() {
            let kinds = allowed.kinds();
            let limited = match self.strings(&pointer, &strings, &Location::Value, &options, kinds)
            {
                Strings::Any => None,
                Strings::Limited(text) => Some(text),
                Strings::Impossible => return None,
            };
            return Some(EmojiBody::Text {
                is_required,
                limited,
            });
        }
        if options.is_empty() {
            return None;
        }
        let body = Pattern::sequence([Pattern::literal("\n"), Pattern::choice(options)]);
        Some(EmojiBody::Pattern(if is_required {
            body
        } else {
            body.optional()
        }))
    }
}

/// Text on the line of an emoji call. It has no brackets, so it contains no marker, and does not end like a self-closing call.
fn word(takes_rest: bool, is_self_closing: bool) -> Pattern {
    let rest = Characters::one_of("[]\r\n\0").not();
    let edge = rest.without(" \t");
    let last = edge.without(if is_self_closing { "/" } else { "" });
    let inner = if takes_rest { rest } else { edge.clone() };
    let before = [
        Pattern::Characters(edge),
        Pattern::Characters(inner).repeat(0, None),
    ];
    let before = Pattern::sequence(before).optional();
    Pattern::sequence([before, Pattern::Characters(last)])
}
