//! A model's reply, read in chunks: text, reasoning and validated calls.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use plaincall_syntax::{
    ByteEvents, ByteParser, Dialect, DialectError, Event, EventKind, OpenContent, Piece, Slot,
    Syntax, is_blank,
};

use crate::CallError;
use crate::CallHeader;
use crate::DecidedCall;
use crate::ReplyCheck;
use crate::Stop;
use crate::collector::{Collected, Collector};
use crate::invented::InventedResults;
use crate::outside::Outside;
use plaincall_tool::{Limits, ToolLookup};

/// Reads the replies of one conversation while the model writes: text or bytes in, [`ReplyItem`]s out.
///
/// Each call is validated once, when it ends: whether it may run (`spec/common.md` 10), and whether its arguments match
/// its tool. The result does not depend on how the input is split, except that text and argument deltas are split too.
///
/// ```
/// use plaincall_tool::{Limits, Parameter, ParameterKind, ToolSet, ToolSpec};
/// use plaincall_reply::{ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
/// use plaincall_syntax::Dialect;
///
/// let wait = ToolSpec::new("wait").parameter(Parameter::new("seconds", ParameterKind::Integer));
/// let dialect = Dialect::block();
/// let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
/// let mut reader = ReplyReader::new(&dialect, ToolSet::new([wait])?, check, Limits::for_running())?;
///
/// let mut calls = Vec::new();
/// for chunk in ["I wait.\n!!!GADGET_START:wait\n!!!AR", "G:seconds\n5\n!!!GADGET_END\n"] {
///     for item in reader.feed(chunk) {
///         if let ReplyItem::Call(read) = item {
///             calls.push(format!("{} {}", read.call.name, read.bound()?.arguments.to_value()));
///         }
///     }
/// }
/// assert_eq!(calls, [r#"wait {"seconds":5}"#]);
/// let end = reader.finish(Stop::Natural);
/// assert!(end.items.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ReplyReader<T> {
    blank: ByteParser,
    /// The parser of the current reply; `None` after its end.
    parser: Option<ByteParser>,
    state: State,
    tools: T,
}

/// Part of a reply.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReplyItem<'c> {
    /// Text outside calls, without results that the model invents (`spec/history.md` 5).
    Text(Cow<'c, str>),
    /// Reasoning of the model.
    Reasoning(Cow<'c, str>),
    /// The start of a call: its header has been read.
    CallStart(Arc<CallHeader>),
    /// Part of a value of a call.
    ArgumentDelta {
        /// The index of the call in order of appearance.
        call: usize,
        /// The pointer of the argument, as written; `None` for a body.
        pointer: Option<Arc<str>>,
        /// The text.
        text: Cow<'c, str>,
    },
    /// A call has ended.
    Call(Box<DecidedCall>),
    /// A reasoning close marker without an open marker. The calls from this index on may be part of the reasoning, so
    /// those that have not run are rejected (`spec/common.md` 5.2).
    MaybeReasoning {
        /// The index of the first such call.
        from: usize,
        /// The reason for the rejection.
        error: CallError,
    },
    /// An event of the parser, after the start and before the end of a call that it produces ([`ReplyReader::with_events`]).
    Event(Event<'c>),
}

impl ReplyItem<'_> {
    /// Rejects the calls among these items of a reply that a later item makes doubtful
    /// ([`MaybeReasoning`](Self::MaybeReasoning)). For callers that have not used the calls yet.
    pub fn reject_reasoning(items: &mut [Self]) {
        let mut later: Option<(usize, CallError)> = None;
        for item in items.iter_mut().rev() {
            match item {
                Self::MaybeReasoning { from, error } => {
                    let first = later
                        .as_ref()
                        .map_or(*from, |(first, _)| (*from).min(*first));
                    later = Some((first, error.clone()));
                }
                Self::Call(read) => {
                    let later = later.as_ref();
                    if let Some((_, error)) = later.filter(|(from, _)| read.call.index >= *from) {
                        read.reject(error);
                    }
                }
                _ => {}
            }
        }
    }

    /// Copies borrowed text.
    pub fn into_owned(self) -> ReplyItem<'static> {
        match self {
            Self::Text(text) => ReplyItem::Text(Cow::Owned(text.into_owned())),
            Self::Reasoning(text) => ReplyItem::Reasoning(Cow::Owned(text.into_owned())),
            Self::CallStart(started) => ReplyItem::CallStart(started),
            Self::ArgumentDelta {
                call,
                pointer,
                text,
            } => ReplyItem::ArgumentDelta {
                call,
                pointer,
                text: Cow::Owned(text.into_owned()),
            },
            Self::Call(read) => ReplyItem::Call(read),
            Self::MaybeReasoning { from, error } => ReplyItem::MaybeReasoning { from, error },
            Self::Event(event) => ReplyItem::Event(event.into_owned()),
        }
    }
}

/// The end of a reply, returned by [`ReplyReader::finish`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplyEnd {
    /// The last items.
    pub items: Vec<ReplyItem<'static>>,
    /// How the reply ended.
    pub stop: Stop,
}

impl<T: ToolLookup> ReplyReader<T> {
    /// Creates a reader for replies in `dialect`.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn new(
        dialect: &Dialect,
        tools: T,
        check: ReplyCheck,
        limits: Limits,
    ) -> Result<Self, DialectError> {
        let blank = ByteParser::new(dialect)?;
        let close = dialect
            .reasoning_markers()
            .map(|[_, close]| close.to_owned());
        Ok(Self {
            parser: Some(blank.clone()),
            blank,
            tools,
            state: State {
                check,
                close,
                collector: Collector::new(limits).with_outside(Outside::new(dialect)?),
                invented: Some(InventedResults::default()),
                has_events: false,
                call: 0,
                pointer: None,
            },
        })
    }

    /// Returns the parser's events instead of text and deltas, also those of results that a model invents. For forwarding a reply.
    #[must_use]
    pub fn with_events(mut self) -> Self {
        self.state.has_events = true;
        self.with_invented_results()
    }

    /// Keeps invented results in the text.
    pub(crate) fn with_invented_results(mut self) -> Self {
        self.state.invented = None;
        self
    }

    /// Returns a copy of the reader in its current state, with other tools.
    pub fn with_tools<U: ToolLookup>(&self, tools: U) -> ReplyReader<U> {
        ReplyReader {
            blank: self.blank.clone(),
            parser: self.parser.clone(),
            state: self.state.clone(),
            tools,
        }
    }

    /// Begins the next reply of the conversation: ids may be used again, numbering continues.
    pub fn begin_reply(&mut self) {
        let state = &mut self.state;
        state.collector.begin_turn();
        state.check.begin_reply();
        if let Some(invented) = &mut state.invented {
            *invented = InventedResults::default();
        }
        self.parser = Some(self.blank.clone());
    }

    /// Reads the next chunk of the reply: text, or bytes that may split a character. Dropping the iterator reads the
    /// rest of the chunk. After the end of a reply nothing is read.
    pub fn feed<'r, 'c>(
        &'r mut self,
        chunk: &'c (impl AsRef<[u8]> + ?Sized),
    ) -> ReplyItems<'r, 'c, T> {
        let events = self.parser.as_mut();
        ReplyItems {
            events: events.map(|parser| parser.feed(chunk.as_ref())),
            state: &mut self.state,
            tools: &self.tools,
            later: VecDeque::new(),
        }
    }

    /// Decides about a close marker of reasoning that is the last text so far, as if its line ended here. For replies that are
    /// known as a whole before any of their calls is used.
    pub fn end_line(&mut self) -> Option<ReplyItem<'static>> {
        // Text that may still become a marker follows in the same line.
        let held = self.parser.clone().into_iter().flat_map(ByteParser::finish);
        let is_last = held.into_iter().all(|event| match event.kind {
            EventKind::Text(held) => held.chars().all(is_blank),
            _ => true,
        });
        is_last.then(|| self.decide_line()).flatten()
    }

    fn decide_line(&mut self) -> Option<ReplyItem<'static>> {
        let stray = self.state.collector.finish();
        self.state.maybe_reasoning(stray)
    }

    /// Ends the reply and returns its last items. `stop` is how it ended.
    pub fn finish(&mut self, stop: Stop) -> ReplyEnd {
        let mut items = VecDeque::new();
        if let Some(parser) = self.parser.take() {
            for event in parser.finish() {
                let collected = self.state.collector.push(&event);
                self.state
                    .take(&event, collected, stop, &self.tools, &mut items);
            }
            items.extend(self.decide_line());
            items.extend(self.state.end_text());
        }
        ReplyEnd {
            items: items.into(),
            stop,
        }
    }

    /// Returns whether the text outside calls has a broken beginning of a call in our own syntaxes (`spec/common.md` 10.1).
    pub(crate) fn is_after_broken_start(&self) -> bool {
        self.state.collector.is_after_broken_start()
    }

    /// Returns the tools.
    pub const fn tools(&self) -> &T {
        &self.tools
    }

    /// Returns the number of calls that have begun, over all replies.
    pub fn calls(&self) -> usize {
        self.state.collector.calls()
    }

    /// Returns the kind of content that continues, or `None` if only the parser knows what comes next.
    #[doc(hidden)]
    pub fn open_content(&self) -> Option<OpenContent> {
        self.parser.as_ref().and_then(ByteParser::open_content)
    }

    /// Returns the syntax of the current reply, once its first call has been read.
    pub fn syntax(&self) -> Option<Syntax> {
        self.parser.as_ref().and_then(ByteParser::syntax)
    }
}

impl<T> fmt::Debug for ReplyReader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReplyReader")
            .field("calls", &self.state.collector.calls())
            .finish_non_exhaustive()
    }
}

/// The items of one chunk. See [`ReplyReader::feed`].
#[must_use = "reading ends when it is dropped, and the items are lost"]
pub struct ReplyItems<'r, 'c, T: ToolLookup> {
    events: Option<ByteEvents<'r, 'c>>,
    state: &'r mut State,
    tools: &'r T,
    /// The items of the last event after its first, if it has several.
    later: VecDeque<ReplyItem<'c>>,
}

impl<T: ToolLookup> ReplyItems<'_, '_, T> {
    /// Returns the same as [`ReplyReader::is_after_broken_start`], for the text up to the last item.
    pub(crate) fn is_after_broken_start(&self) -> bool {
        self.state.collector.is_after_broken_start()
    }
}

impl<'c, T: ToolLookup> Iterator for ReplyItems<'_, 'c, T> {
    type Item = ReplyItem<'c>;

    fn next(&mut self) -> Option<ReplyItem<'c>> {
        if !self.later.is_empty() {
            return self.later.pop_front();
        }
        let events = self.events.as_mut()?;
        loop {
            // By reference, and the item is constructed where it is returned: measured, moving them takes longer than reading.
            let event = &events.next();
            let event = event.as_ref()?;
            let collected = self.state.collector.push(event);
            if collected.is_none() {
                if self.state.has_events {
                    return Some(ReplyItem::Event(event.clone()));
                }
                if let Some(text) = self.state.content(&event.kind) {
                    return Some(self.state.item(&event.kind, text));
                }
                continue;
            }
            // A call that ends while the text still arrives does not end with the text.
            let stop = Stop::Broken;
            self.state
                .take(event, collected, stop, self.tools, &mut self.later);
            if !self.later.is_empty() {
                return self.later.pop_front();
            }
        }
    }
}

impl<T: ToolLookup> Drop for ReplyItems<'_, '_, T> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

impl<T: ToolLookup> fmt::Debug for ReplyItems<'_, '_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReplyItems").finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct State {
    check: ReplyCheck,
    close: Option<String>,
    collector: Collector,
    /// `None` if invented results stay in the text.
    invented: Option<InventedResults>,
    has_events: bool,
    call: usize,
    pointer: Option<Arc<str>>,
}

impl State {
    /// Returns the text held back before the next call or the end.
    fn end_text(&mut self) -> Option<ReplyItem<'static>> {
        let rest = self.invented.as_mut()?.rest();
        (!rest.is_empty()).then(|| ReplyItem::Text(Cow::Owned(rest)))
    }

    #[inline]
    fn text<'c>(&mut self, text: &Piece<'c>) -> Cow<'c, str> {
        match &mut self.invented {
            Some(invented) if invented.is_after_call() => match invented.text(text) {
                Cow::Borrowed(left) if left.len() == text.len() => text.to_cow(),
                left => Cow::Owned(left.into_owned()),
            },
            _ => text.to_cow(),
        }
    }

    fn maybe_reasoning(&self, collected: Option<Collected>) -> Option<ReplyItem<'static>> {
        match (collected, &self.close) {
            (Some(Collected::MaybeReasoning(from)), Some(close)) => {
                let error = CallError::MaybeReasoning(close.clone());
                Some(ReplyItem::MaybeReasoning { from, error })
            }
            _ => None,
        }
    }

    /// Adds the items of an event.
    fn take<'c>(
        &mut self,
        event: &Event<'c>,
        collected: Option<Collected>,
        stop: Stop,
        tools: &impl ToolLookup,
        items: &mut VecDeque<ReplyItem<'c>>,
    ) {
        let collected = match collected {
            Some(Collected::Started(started)) => {
                items.extend(self.end_text());
                if let Some(invented) = &mut self.invented {
                    invented.call(&started.name);
                }
                self.call = started.index;
                items.push_back(ReplyItem::CallStart(started));
                None
            }
            collected => collected,
        };
        if self.has_events {
            items.push_back(ReplyItem::Event(event.clone()));
        } else if let Some(text) = self.content(&event.kind) {
            items.push_back(self.item(&event.kind, text));
        }
        if let Some(Collected::Finished(call)) = collected {
            let read = self.check.decide(Arc::from(call), tools, stop);
            items.push_back(ReplyItem::Call(Box::new(read)));
        } else {
            items.extend(self.maybe_reasoning(collected));
        }
    }

    /// Returns the text of an event that has an item of its own.
    #[allow(
        clippy::inline_always,
        reason = "measured: the text then passes through memory once less"
    )]
    #[inline(always)]
    fn content<'c>(&mut self, kind: &EventKind<'c>) -> Option<Cow<'c, str>> {
        match kind {
            EventKind::Text(text) => Some(self.text(text)).filter(|text| !text.is_empty()),
            EventKind::Reasoning(text) | EventKind::ValueDelta(text) => Some(text.to_cow()),
            EventKind::ValueStart(slot) => {
                self.pointer = match slot {
                    Slot::Argument(pointer) => Some(pointer.as_str().into()),
                    Slot::Body => None,
                };
                None
            }
            _ => None,
        }
    }

    #[inline]
    fn item<'c>(&self, kind: &EventKind<'_>, text: Cow<'c, str>) -> ReplyItem<'c> {
        match kind {
            EventKind::ValueDelta(_) => ReplyItem::ArgumentDelta {
                call: self.call,
                pointer: self.pointer.clone(),
                text,
            },
            EventKind::Reasoning(_) => ReplyItem::Reasoning(text),
            _ => ReplyItem::Text(text),
        }
    }
}
