//! The untrusted texts that the model received, and the calls that appear in them (`spec/running.md`, "Echoes").

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plaincall_plan::CallIndex;
use plaincall_prompt::few_shot::{ShownCall, ShownCalls};
use plaincall_reply::Untrusted;
use plaincall_reply::untrusted::{Echo, EchoGuard};
use plaincall_tool::Arguments;

use super::RunState;
use crate::event::{RunEvent, ShownExamples, UntrustedText};
use crate::held::HeldReason;
use crate::policy::{Echoes, Policy};
use crate::result::CallResult;

/// The guard of a run, which the run shares with its state.
#[derive(Clone, Debug)]
pub(crate) struct SharedGuard(Arc<Mutex<EchoGuard>>);

impl SharedGuard {
    pub(crate) fn lock(&self) -> MutexGuard<'_, EchoGuard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct UntrustedTexts {
    pub(crate) guard: SharedGuard,
    /// The reasons to hold a call that appears in a text, by the numbers of the texts in the guard.
    reasons: Vec<HeldReason>,
    /// The calls of the examples that the model reads, as they were recorded, and which of their values it knows.
    recorded_examples: Arc<[ShownCall]>,
    examples: ShownCalls,
    /// The number of texts that the model received, without results.
    text_count: u32,
    /// The calls whose results the model has not received yet.
    pending_results: Vec<CallIndex>,
    /// The size of results of submitted calls that are kept until the next turn, and its limit, in bytes.
    kept: usize,
    limit: usize,
}

impl UntrustedTexts {
    /// Returns `None` if echoes are not held.
    pub(crate) fn new(guard: EchoGuard, policy: &Policy) -> Option<Self> {
        (policy.echoes == Echoes::Held).then(|| Self {
            guard: SharedGuard(Arc::new(Mutex::new(
                guard.keep_at_most(policy.untrusted_limit),
            ))),
            reasons: Vec::new(),
            recorded_examples: [].into(),
            examples: ShownCalls::default(),
            text_count: 0,
            pending_results: Vec::new(),
            kept: 0,
            limit: policy.untrusted_limit,
        })
    }

    /// Returns whether a text must be kept until the next turn, because a call could be copied from it.
    fn keeps(&self, text: &Untrusted<'_>) -> bool {
        self.kept <= self.limit && self.guard.lock().relevant_part(text).is_some()
    }

    /// Counts the part of a submitted call's result that must be kept. This happens when the call ends, not when the program
    /// takes the result, so that a replay of the log counts the same.
    fn count(&mut self, result: &CallResult) {
        for text in result.untrusted_texts() {
            if self.guard.lock().relevant_part(&text).is_some() {
                self.kept = self.kept.saturating_add(text.len());
            }
        }
    }

    fn observe(&mut self, text: &Untrusted<'_>, what: impl FnOnce() -> HeldReason) {
        self.guard.lock().observe(text);
        self.examples.observe(text);
        self.reasons.push(what());
    }

    fn reason_of(&self, found: Echo) -> HeldReason {
        let text = match found {
            Echo::Found { text } => self.reasons.get(text).cloned(),
            // The text is not known.
            _ => None,
        };
        text.unwrap_or(HeldReason::UntrustedLimit)
    }
}

impl RunState {
    /// Notes examples, unless they are the same as before: the model may know more of their values since.
    pub(super) fn observe_examples(&mut self, shown: ShownExamples) {
        if let Some(untrusted) = &mut self.untrusted
            && untrusted.recorded_examples != shown.calls
        {
            untrusted.recorded_examples = Arc::clone(&shown.calls);
            untrusted.examples = shown.calls.iter().cloned().collect();
            self.emit(RunEvent::Examples(shown));
        }
    }

    /// Notes a message of the user: the model may use its values.
    pub(super) fn observe_message(&mut self, text: &str) {
        if let Some(untrusted) = &mut self.untrusted {
            untrusted.examples.observe(&Untrusted::new(text));
        }
    }

    /// Returns the reason if a complete call equals that of an example, with values that the conversation does not contain.
    pub(super) fn copied_example(
        &self,
        call: CallIndex,
        arguments: &Arguments,
    ) -> Option<HeldReason> {
        let name = &self.calls.get(call.index())?.name;
        let examples = &self.untrusted.as_ref()?.examples;
        (examples.is_copied(name, arguments)).then_some(HeldReason::Example)
    }

    pub(super) fn observe_untrusted(&mut self, mut received: UntrustedText) {
        let Some(untrusted) = &mut self.untrusted else {
            return;
        };
        let number = untrusted.text_count;
        untrusted.text_count = number.saturating_add(1);
        if let Some(text) = &received.text {
            let name = Arc::clone(&received.name);
            untrusted.observe(text, || HeldReason::Untrusted { number, name });
        }
        received.number = number;
        self.emit(RunEvent::Untrusted(received));
    }

    /// Remembers that the model receives the result of a call with the next turn. The tool that submitted a call receives its
    /// result at once.
    pub(super) fn keep_for_next_turn(&mut self, call: CallIndex) {
        if let Some(untrusted) = &mut self.untrusted {
            let entry = self.calls.get(call.index());
            if let Some(nested) = entry.filter(|entry| entry.parent.is_some()) {
                for text in nested.result.iter().flat_map(CallResult::untrusted_texts) {
                    untrusted.observe(&text, || HeldReason::Result {
                        call: call.get(),
                        id: Arc::clone(&nested.id),
                    });
                }
                return;
            }
            untrusted.pending_results.push(call);
            let submitted = entry.filter(|entry| entry.is_submitted);
            if let Some(result) = submitted.and_then(|entry| entry.result.as_ref()) {
                untrusted.count(result);
            }
        }
    }

    /// Observes the results that the model received, when a turn starts.
    pub(super) fn observe_results(&mut self) {
        let Some(untrusted) = &mut self.untrusted else {
            return;
        };
        untrusted.guard.lock().begin_reply();
        if take(&mut untrusted.kept) > untrusted.limit {
            untrusted.guard.lock().lose_track();
        }
        let mut pending_results = take(&mut untrusted.pending_results);
        // The order in which tools ended does not matter.
        pending_results.sort_unstable();
        for call in pending_results {
            let Some(entry) = self.calls.get(call.index()) else {
                continue;
            };
            let Some(result) = &entry.result else {
                continue;
            };
            for text in result.untrusted_texts() {
                untrusted.observe(&text, || HeldReason::Result {
                    call: call.get(),
                    id: Arc::clone(&entry.id),
                });
            }
        }
    }

    pub(super) fn echo_of(
        &mut self,
        find: impl FnOnce(&mut EchoGuard) -> Option<Echo>,
    ) -> Option<HeldReason> {
        let untrusted = self.untrusted.as_mut()?;
        let found = find(&mut untrusted.guard.lock())?;
        Some(untrusted.reason_of(found))
    }

    /// Takes the result of a submitted call. Only the text from which a call could be copied stays here.
    pub(crate) fn take_result(&mut self, call: CallIndex) -> Option<CallResult> {
        let entry = self.calls.get_mut(call.index())?;
        let kept = entry.result.as_mut()?;
        let whole = kept.clone();
        // A result that no tool produced contains no untrusted text.
        let is_pending = entry.attempts > 0 && entry.parent.is_none();
        let untrusted = self.untrusted.as_ref().filter(|_| is_pending);
        let is_kept =
            |text: &Untrusted<'_>| untrusted.is_some_and(|untrusted| untrusted.keeps(text));
        for text in [&mut kept.output, &mut kept.error] {
            *text = text.take().filter(|text| is_kept(&Untrusted::new(&**text)));
        }
        kept.untrusted = kept.untrusted.take().filter(|text| is_kept(text));
        kept.note = None;
        Some(whole)
    }

    pub(super) fn mention_of(&mut self, call: CallIndex) -> Option<HeldReason> {
        let name = Arc::clone(&self.calls.get(call.index())?.name);
        self.echo_of(|guard| guard.mentions(&name))
    }
}
