//! The calls of a model server that has tools itself, from their pieces (`spec/gateway.md` 11).

use std::borrow::Cow;

use plaincall_wire::Json;
use plaincall_wire::openai::{CallArguments, CalledFunction, ChunkChoice, OLD_CALL, ToolCall};
use serde_json::Value;

use crate::error::GatewayError;
use crate::reply::Reply;
use crate::reply::open_call::OpenJson;
use crate::tools::OfferedTools;

/// Beginnings that chat templates put before the name of a tool.
const PREFIXES: [&str; 3] = ["functions.", "default_api.", "default_api:"];
/// The beginning of a template's token after the name of a tool.
const TOKEN: &str = "<|";
/// The longest arguments that are kept for a comparison with a call that arrives as text, in bytes.
const MAX_KEPT: usize = 1 << 20;

/// The calls of the model server in a reply.
#[derive(Debug, Default)]
pub(super) struct NativeCalls {
    calls: Vec<NativeCall>,
    /// The call that is sent next. Pieces of later ones wait for its end.
    open: Option<usize>,
    /// Whether nothing has followed the last piece.
    is_last: bool,
}

/// A call of the model server that has begun.
#[derive(Debug)]
struct NativeCall {
    /// The model server's index of it.
    given: Option<u64>,
    /// The model server's id of it.
    id: String,
    name: String,
    /// The index that the client gets, once a piece has been sent.
    index: u64,
    arguments: String,
    json: OpenJson,
    /// The pieces that have not been sent.
    waiting: Vec<ToolCall<'static>>,
    /// A later piece with the same name and no arguments: it repeats the beginning, or it is that of another call.
    repeated: Option<ToolCall<'static>>,
}

/// The meaning of a piece.
enum PieceOf {
    NewCall,
    Call(usize),
    /// The call with this place, whose beginning it repeats.
    Repeated(usize),
}

impl NativeCall {
    /// Keeps a piece until it is sent. The arguments of a continuation are appended to the last piece.
    fn keep(&mut self, piece: ToolCall<'_>) {
        let last = self
            .waiting
            .last_mut()
            .filter(|_| other_fields(&piece).next().is_none());
        let kept = last.and_then(|last| last.function.as_mut()?.arguments.as_mut());
        if let Some(CallArguments::Text(kept)) = kept {
            kept.to_mut().push_str(piece.arguments());
        } else {
            self.waiting.push(piece.into_owned());
        }
    }
}

impl NativeCalls {
    /// Returns whether nothing has followed the last call.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns whether pieces wait for the end of a call.
    pub(super) fn is_holding(&self) -> bool {
        self.calls
            .last()
            .is_some_and(|call| !call.waiting.is_empty())
    }

    /// Returns the number of calls that have not ended.
    pub(super) fn pending(&self) -> usize {
        self.open.map_or(0, |open| self.calls.len() - open)
    }

    /// Returns whether the open call has no arguments, although those of a later one are complete. Where the pieces of later calls
    /// must not wait for the end of the reply, it gets none.
    fn lacks_arguments(&self) -> bool {
        let mut pending = self.calls.iter().skip(self.open.unwrap_or_default());
        let is_empty = pending.next().is_some_and(|call| call.arguments.is_empty());
        is_empty && pending.any(|call| call.json.is_complete)
    }

    /// Returns whether the model server has made a call of this tool with these arguments.
    pub(super) fn has(&self, name: &str, arguments: &Value) -> bool {
        let mut same = self.calls.iter().filter(|call| call.name == name);
        same.any(|call| match &*call.arguments {
            "" => arguments.as_object().is_some_and(serde_json::Map::is_empty),
            text => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *arguments),
        })
    }

    /// Some servers give every call the same index or id, or none, and repeat a name.
    fn meaning(&self, piece: &ToolCall<'_>) -> PieceOf {
        let mut calls = self.calls.iter().enumerate().rev();
        let same = calls.find(|(_, call)| call.given == piece.index);
        let last = || self.calls.iter().enumerate().next_back();
        let call = same.or_else(|| last().filter(|_| piece.index.is_none()));
        let Some((place, call)) = call else {
            return PieceOf::NewCall;
        };
        let id = piece.id.as_deref().unwrap_or_default();
        let has_arguments = !piece.arguments().trim().is_empty();
        let is_new = match piece.name() {
            "" => call.repeated.is_some() && has_arguments,
            _ if !id.is_empty() && id != call.id => true,
            _ if piece.index.is_none() && id.is_empty() => true,
            name if call.json.is_complete && name == call.name && !has_arguments => {
                return PieceOf::Repeated(place);
            }
            _ => call.json.is_complete,
        };
        if is_new {
            PieceOf::NewCall
        } else {
            PieceOf::Call(place)
        }
    }
}

impl Reply {
    /// Reads pieces of the model server's calls.
    pub(super) fn native_calls(&mut self, pieces: &[ToolCall<'_>]) {
        for piece in pieces {
            // In an answer that is not streamed, each piece is a call.
            let meaning = if self.is_whole {
                PieceOf::NewCall
            } else {
                self.native.calls.meaning(piece)
            };
            match meaning {
                PieceOf::NewCall => self.begin_native_call(piece),
                PieceOf::Call(place) => self.native_piece(place, false, continuation(piece)),
                PieceOf::Repeated(place) => {
                    if let Some(call) = self.native.calls.calls.get_mut(place) {
                        call.repeated = Some(piece.clone().into_owned());
                    }
                }
            }
        }
    }

    fn begin_native_call(&mut self, piece: &ToolCall<'_>) {
        let mut piece = piece.clone();
        let mut calls = self.native.calls.calls.iter_mut().rev();
        let repeated = calls.find(|call| call.given == piece.index);
        let repeated = repeated.and_then(|call| call.repeated.take());
        if let Some(head) = repeated.filter(|_| piece.name().is_empty()) {
            let function = head.function.unwrap_or_default();
            piece.function.get_or_insert_default().name = function.name;
            piece.id = head.id;
        }
        let name = tool_name(piece.name(), &self.plan.offer).to_owned();
        self.end_native_text_before(Some(&name), true);
        let id = piece.id.take().unwrap_or_default();
        let is_new = !id.is_empty() && self.ids.take(&id);
        self.native.calls.calls.push(NativeCall {
            given: piece.index,
            id: id.clone().into_owned(),
            name: name.clone(),
            index: 0,
            arguments: String::new(),
            json: OpenJson::default(),
            waiting: Vec::new(),
            repeated: None,
        });
        self.ids.is_short = false;
        piece.id = Some(if is_new { id } else { self.ids.next().into() });
        piece.kind.get_or_insert_with(|| "function".into());
        piece.function.get_or_insert_default().name = Some(name.into());
        let place = self.native.calls.calls.len() - 1;
        self.native_piece(place, true, piece);
    }

    /// Handles a piece of the call with this place.
    fn native_piece(&mut self, place: usize, is_first: bool, mut piece: ToolCall<'_>) {
        let native = &mut self.native.calls;
        native.is_last = true;
        let Some(call) = native.calls.get_mut(place) else {
            return;
        };
        let text = match piece.function.as_mut().and_then(|one| one.arguments.take()) {
            Some(CallArguments::Text(text)) => text,
            Some(CallArguments::Json(json)) => Cow::Owned(json.text().to_owned()),
            None => Cow::default(),
        };
        let is_none = call.arguments.is_empty() && matches!(text.trim(), "" | "null" | "\"\"");
        let text = if is_none { Cow::default() } else { text };
        let was_complete = call.json.is_complete;
        call.json.follow(&text);
        if call.arguments.len() + text.len() <= MAX_KEPT {
            call.arguments.push_str(&text);
        } else {
            // It equals no call that arrives as text.
            call.arguments = String::from('…');
        }
        piece.function.get_or_insert_default().arguments = Some(CallArguments::Text(text));
        match native.open {
            None if is_first => native.open = Some(place),
            Some(open) if open <= place => {}
            // The call has ended.
            _ if was_complete || piece.arguments().trim().is_empty() => return,
            _ => {
                let message = "the model server continued a call after other content";
                self.fail(GatewayError::upstream(message));
                return;
            }
        }
        if native.open == Some(place) && self.plan.streams_arguments() {
            self.send_native_piece(place, &piece);
        } else {
            call.keep(piece);
        }
        let streams = self.plan.streams_arguments() && !self.is_whole;
        while self.native.calls.pending() > 1
            && (self.has_complete_call() || streams && self.native.calls.lacks_arguments())
        {
            self.end_native_call();
        }
    }

    fn send_native_piece(&mut self, place: usize, piece: &ToolCall<'_>) {
        let Some(call) = self.native.calls.calls.get_mut(place) else {
            return;
        };
        let is_first = piece.kind.is_some();
        if is_first {
            call.index = self.sent;
            self.sent += 1;
            self.counts.native_calls += 1;
        }
        self.out.native_call(call.index, is_first, piece);
    }

    fn send_waiting(&mut self, place: usize) {
        let call = self.native.calls.calls.get_mut(place);
        let waiting = call.map(|call| std::mem::take(&mut call.waiting));
        for piece in waiting.iter().flatten() {
            self.send_native_piece(place, piece);
        }
    }

    fn has_complete_call(&self) -> bool {
        let open = self.native.calls.open;
        let call = open.and_then(|open| self.native.calls.calls.get(open));
        call.is_some_and(|call| call.json.is_complete)
    }

    /// Ends the open call before something else, if its arguments are complete. Otherwise the rest of them may follow.
    pub(super) fn end_complete_call(&mut self) {
        self.native.calls.is_last = false;
        if self.has_complete_call() {
            self.end_native_call();
        }
    }

    /// Ends the open call. The next one can be sent.
    fn end_native_call(&mut self) {
        let Some(open) = self.native.calls.open.take() else {
            return;
        };
        self.send_waiting(open);
        let calls = &self.native.calls.calls;
        if let Some(call) = calls.get(open).filter(|call| call.arguments.is_empty()) {
            self.out.arguments(call.index, "{}");
        }
        self.out.end_call();
        let next = open + 1;
        if next < calls.len() {
            self.native.calls.open = Some(next);
            if self.plan.streams_arguments() {
                self.send_waiting(next);
            }
        }
    }

    /// Ends all calls of the model server. A call without arguments gets `{}`. Calls with an open object, list or string are truncated,
    /// and are not sent. If the reply is known to be truncated, this includes calls with other incomplete arguments, and those
    /// without arguments, unless those of a later one have begun.
    pub(super) fn end_native_calls(&mut self, is_truncated: bool) {
        while let Some(open) = self.native.calls.open {
            let is_last = self.native.calls.pending() == 1;
            let mut pending = self.native.calls.calls.iter().skip(open);
            let call = pending.next().filter(|call| {
                let mut has_none = || {
                    let has_begun = |one: &NativeCall| self.is_whole || !one.arguments.is_empty();
                    call.arguments.is_empty() && pending.any(has_begun)
                };
                let is_cut = call.json.is_open() || is_truncated && !has_none();
                is_cut && !call.json.is_complete
            });
            let Some(call) = call else {
                self.end_native_call();
                continue;
            };
            if call.waiting.is_empty() {
                // It was sent while it was written.
                self.out.arguments(call.index, call.json.invalid_end());
                self.out.end_call();
            }
            self.round.has_truncated_call = true;
            self.counts.truncated_calls += 1;
            let next = open + 1;
            self.native.calls.open = (!is_last).then_some(next);
        }
    }
}

/// Returns the length of a piece for the limit of a reply, in bytes. A piece that is kept as a whole takes more than its text.
pub(super) fn length(piece: &ToolCall<'_>) -> usize {
    let fields = other_fields(piece).map(|(name, value)| name.len() + value.text().len());
    let fields = fields.sum::<usize>();
    let is_kept = fields > 0 || !piece.name().is_empty();
    let whole = if is_kept { size_of::<NativeCall>() } else { 0 };
    piece.arguments().len() + fields + whole
}

/// Returns the fields of a piece that no API defines.
fn other_fields<'p>(piece: &'p ToolCall<'_>) -> impl Iterator<Item = (&'p str, &'p Json<'p>)> {
    let function = piece.function.iter().flat_map(|one| one.unknown.iter());
    piece.unknown.iter().chain(function)
}

/// Returns a piece without what only the first piece of a call has.
fn continuation<'r>(piece: &ToolCall<'r>) -> ToolCall<'r> {
    let mut piece = piece.clone();
    (piece.id, piece.kind) = (None, None);
    if let Some(function) = &mut piece.function {
        function.name = None;
    }
    piece
}

/// Returns the name of a tool without the prefixes and tokens of chat templates, if the rest is exactly an offered tool.
pub(super) fn tool_name<'n>(name: &'n str, offer: &OfferedTools) -> &'n str {
    if offer.has_name(name) {
        return name;
    }
    let rest = name.find(TOKEN).map_or(name, |at| &name[..at]).trim();
    let mut rests = PREFIXES
        .iter()
        .filter_map(|prefix| rest.strip_prefix(prefix));
    let rest = rests.next().unwrap_or(rest);
    if offer.has_name(rest) { rest } else { name }
}

/// Converts a call in the old form, which has neither an index nor an id.
pub(super) fn convert_old_call(choice: &mut ChunkChoice<'_>) {
    let Some(delta) = &mut choice.delta else {
        return;
    };
    let function = delta.unknown.get(OLD_CALL).and_then(|json| {
        let function: CalledFunction<'_> = json.read().ok()?;
        Some(function.into_owned())
    });
    delta.unknown.remove(OLD_CALL);
    if let Some(function) = function {
        delta.tool_calls.get_or_insert_default().push(ToolCall {
            function: Some(function),
            ..ToolCall::default()
        });
    }
}
