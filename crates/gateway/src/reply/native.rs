//! Replies of a model server that has tools itself (`spec/gateway.md` 11).

use plaincall_wire::openai::ToolCall;

use crate::api::encoder::ResponseSink;
use crate::error::GatewayError;
use crate::reply::{Flow, Reply};

/// A call of the model server that has begun.
#[derive(Debug)]
pub(super) struct NativeCall {
    /// The model server's index of it.
    given: Option<u64>,
    id: String,
    /// The index that the client gets.
    index: u64,
}

impl<O: ResponseSink> Reply<O> {
    /// Sends pieces of the model server's calls.
    pub(super) fn native_calls(&mut self, pieces: &[ToolCall<'_>]) -> Flow {
        for piece in pieces {
            let known = self
                .native
                .iter()
                .rposition(|call| call.given == piece.index);
            let known = known.or(self
                .native
                .len()
                .checked_sub(1)
                .filter(|_| piece.index.is_none()));
            let known = known.and_then(|at| self.native.get(at));
            let continued = known.filter(|call| !begins_call(call, piece));
            let (index, is_first) = match continued {
                Some(call) => (call.index, false),
                None => (self.sent, true),
            };
            if is_first {
                self.native.push(NativeCall {
                    given: piece.index,
                    id: piece.id.as_deref().unwrap_or_default().to_owned(),
                    index,
                });
                self.sent += 1;
                self.counts.native_calls += 1;
            } else if index + 1 < self.sent && !self.out.can_interleave() {
                let message = "the model server continued a call after it began another one";
                return self.fail(GatewayError::upstream(message));
            }
            let mut piece = piece.clone();
            if is_first && piece.id.as_deref().is_none_or(str::is_empty) {
                piece.id = Some(self.ids.next().into());
            }
            self.out.native_call(index, is_first, &piece);
        }
        Flow::Continue
    }
}

/// Returns whether a piece begins another call than this one. Some servers give every call the same index, or none.
fn begins_call(call: &NativeCall, piece: &ToolCall<'_>) -> bool {
    let id = piece.id.as_deref().unwrap_or_default();
    let has_other_id = !id.is_empty() && id != call.id;
    !piece.name().is_empty() && (has_other_id || (piece.index.is_none() && id.is_empty()))
}
