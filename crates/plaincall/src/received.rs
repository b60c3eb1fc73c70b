//! The texts and results that the model of a run has received.

use std::sync::Arc;

use plaincall_reply::{Untrusted, untrusted::EchoGuard};

use crate::event::{RunEvent, UntrustedText};
use crate::result::CallResult;
use crate::run_state::SharedGuard;
use crate::tool::Tool;
use crate::toolbox::Toolbox;
use crate::whole_results::WholeResults;

/// The untrusted texts and the results that the model of a run has received.
#[derive(Debug)]
pub struct Received {
    /// Finds the parts of untrusted texts from which calls could be copied. `None` if echoes are not held.
    pub(crate) detector: Option<EchoGuard>,
    /// The untrusted texts. `None` if echoes are not held.
    pub(crate) guard: Option<SharedGuard>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) whole_results: Arc<WholeResults>,
}

impl Received {
    /// Returns whether an untrusted text mentions a call with this name. The model must not be asked to write such a call again
    /// (`spec/repair.md` 7). Always `false` if the policy ignores echoes.
    pub fn is_mentioned(&self, name: &str) -> bool {
        let guard = self.guard.as_ref();
        guard.is_some_and(|guard| guard.lock().mentions(name).is_some())
    }

    /// Returns whether an untrusted text mentions something in a reply that looks like a call (`spec/repair.md` 7). Always
    /// `false` if the policy ignores echoes.
    pub fn is_quotation(&self, reply: &str) -> bool {
        let names = self.toolbox.iter().map(Tool::name);
        let guard = self.guard.as_ref();
        guard.is_some_and(|guard| guard.lock().mentions_in(reply, names).is_some())
    }

    /// Truncates a complete result, from an event or a log, for the model (`spec/running.md`, "Long results"). The results of a
    /// turn are already truncated.
    pub fn for_model(&self, result: &CallResult) -> CallResult {
        self.whole_results.for_model(result)
    }

    /// Shortens a result of an earlier turn to `limit` bytes of its output, to keep the conversation short. Returns `None` if it
    /// is not longer. With the tool [`read_result`](crate::Tool::read_result), the model can read the rest.
    pub fn shortened(&self, result: &CallResult, limit: usize) -> Option<CallResult> {
        self.whole_results.shortened(result, limit)
    }

    /// Returns the event for an untrusted text; `None` if echoes are not held.
    pub(crate) fn untrusted(&self, name: &str, text: &Untrusted<'_>) -> Option<RunEvent> {
        let detector = self.detector.as_ref()?;
        let text = detector.relevant_part(text).map(Untrusted::into_owned);
        Some(RunEvent::Untrusted(UntrustedText::new(name, text)))
    }
}
