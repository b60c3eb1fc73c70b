//! The calls of a model server that has tools itself, from their pieces (`spec/gateway.md` 11).

use std::borrow::Cow;

use plaincall_wire::openai::{CallArguments, CalledFunction, ChunkChoice, ToolCall};
use serde_json::Value;

use crate::api::encoder::ResponseSink;
use crate::error::GatewayError;
use crate::reply::Reply;
use crate::tools::OfferedTools;

/// Beginnings that chat templates put before the name of a tool.
const PREFIXES: [&str; 3] = ["functions.", "default_api.", "default_api:"];
/// The beginning of a template's token after the name of a tool.
const TOKEN: &str = "<|";
/// The field of a call in its old form.
pub(crate) const OLD_CALL: &str = "function_call";
/// The longest arguments that are kept for a comparison with a call that arrives as text, in bytes.
const MAX_KEPT: usize = 1 << 20;

/// The calls of the model server in a reply.
#[derive(Debug, Default)]
pub(super) struct NativeCalls {
    calls: Vec<NativeCall>,
    /// The call whose pieces are sent. Pieces of later ones wait for its end.
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
    /// The index that the client gets.
    index: u64,
    arguments: String,
    end: ObjectEnd,
    /// The pieces that wait for the end of the call before.
    waiting: Vec<ToolCall<'static>>,
    /// A later piece with the same name and no arguments: it repeats the beginning, or it is that of another call.
    repeated: Option<ToolCall<'static>>,
}

/// Finds the end of a JSON object in its pieces.
#[derive(Clone, Copy, Debug, Default)]
struct ObjectEnd {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

/// The meaning of a piece.
enum PieceOf {
    NewCall,
    Call(usize),
    /// The call with this place, whose beginning it repeats.
    Repeated(usize),
}

impl ObjectEnd {
    fn feed(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_complete => return,
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_in_string,
                b'"' => self.is_in_string = !self.is_in_string,
                b'{' | b'[' if !self.is_in_string => self.depth += 1,
                b'}' | b']' if !self.is_in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete = self.depth == 0;
                }
                _ => {}
            }
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

    /// Returns whether a call waits for the end of the open one.
    fn has_next(&self) -> bool {
        self.open.is_some_and(|open| open + 1 < self.calls.len())
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
            name if call.end.is_complete && name == call.name && !has_arguments => {
                return PieceOf::Repeated(place);
            }
            _ => call.end.is_complete,
        };
        if is_new {
            PieceOf::NewCall
        } else {
            PieceOf::Call(place)
        }
    }
}

impl<O: ResponseSink> Reply<O> {
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
            index: self.sent,
            arguments: String::new(),
            end: ObjectEnd::default(),
            waiting: Vec::new(),
            repeated: None,
        });
        self.sent += 1;
        self.counts.native_calls += 1;
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
        call.end.feed(&text);
        if call.arguments.len() + text.len() <= MAX_KEPT {
            call.arguments.push_str(&text);
        } else {
            // It equals no call that arrives as text.
            call.arguments = String::from('…');
        }
        let (index, call_is_complete) = (call.index, call.end.is_complete);
        piece.function.get_or_insert_default().arguments = Some(CallArguments::Text(text));
        if is_first && (self.is_whole || self.has_complete_call()) {
            self.end_native_call();
        }
        let native = &mut self.native.calls;
        match native.open {
            None if is_first => native.open = Some(place),
            Some(open) if open == place => {}
            Some(open) if open < place => {
                if let Some(call) = native.calls.get_mut(place) {
                    call.waiting.push(piece.into_owned());
                }
                return;
            }
            // The call has ended.
            _ if call_is_complete || piece.arguments().trim().is_empty() => return,
            _ => {
                let message = "the model server continued a call after other content";
                self.fail(GatewayError::upstream(message));
                return;
            }
        }
        self.out.native_call(index, is_first, &piece);
        while self.has_complete_call() && self.native.calls.has_next() {
            self.end_native_call();
        }
    }

    fn has_complete_call(&self) -> bool {
        let open = self.native.calls.open;
        let call = open.and_then(|open| self.native.calls.calls.get(open));
        call.is_some_and(|call| call.end.is_complete)
    }

    /// Ends the open call before something else, if its arguments are complete. Otherwise the rest of them may follow.
    pub(super) fn end_complete_call(&mut self) {
        self.native.calls.is_last = false;
        if self.has_complete_call() {
            self.end_native_call();
        }
    }

    /// Ends the open call, and sends the pieces of the next one.
    fn end_native_call(&mut self) {
        let native = &mut self.native.calls;
        let Some(open) = native.open.take() else {
            return;
        };
        if let Some(call) = native
            .calls
            .get(open)
            .filter(|call| call.arguments.is_empty())
        {
            self.out.arguments(call.index, "{}");
        }
        self.out.end_call();
        let next = open + 1;
        let Some(call) = native.calls.get_mut(next) else {
            return;
        };
        native.open = Some(next);
        for (number, piece) in std::mem::take(&mut call.waiting).iter().enumerate() {
            self.out.native_call(call.index, number == 0, piece);
        }
    }

    /// Ends all calls of the model server. A call without arguments gets `{}`, except the last one if it may be truncated.
    pub(super) fn end_native_calls(&mut self, is_truncated: bool) {
        let count = self.native.calls.calls.len();
        let is_kept = |place: usize| is_truncated && place + 1 == count;
        while let Some(open) = self.native.calls.open {
            if is_kept(open) {
                self.native.calls.open = None;
                return self.out.end_call();
            }
            self.end_native_call();
        }
    }
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
