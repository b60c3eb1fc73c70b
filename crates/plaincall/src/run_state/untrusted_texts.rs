//! What the model has been told from outside, and which calls stand in it (`spec/running.md`, "Echoes").

use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{
    SuspectMarker, Untrusted,
    untrusted::{Echo, EchoGuard},
};
use plaincall_plan::CallIndex;

use super::RunState;
use crate::event::{AwaitingApproval, CallRef, RunEvent, UntrustedText};
use crate::held::HeldReason;
use crate::policy::{Echoes, Policy};
use crate::result::CallResult;

#[derive(Debug)]
pub(crate) struct UntrustedTexts {
    guard: EchoGuard,
    /// What the texts are that the guard has heard, by their numbers there.
    heard: Vec<HeldReason>,
    /// How many texts were given to the model beside results.
    given: u32,
    /// The calls whose tools have said something that the model has not been told yet.
    untold: Vec<CallIndex>,
    /// How many bytes of results of submitted calls are kept until the next turn, and how many may be.
    kept: usize,
    most: usize,
}

impl UntrustedTexts {
    /// `None` if echoes are nothing special in this run.
    pub(crate) fn new(guard: EchoGuard, policy: &Policy) -> Option<Self> {
        (policy.echoes == Echoes::Held).then(|| Self {
            guard: guard.keep_at_most(policy.untrusted_limit),
            heard: Vec::new(),
            given: 0,
            untold: Vec::new(),
            kept: 0,
            most: policy.untrusted_limit,
        })
    }

    /// Whether a text has to be kept until the next turn, because a call could be copied from it.
    fn keeps(&self, text: &Untrusted<'_>) -> bool {
        self.kept <= self.most && self.guard.what_counts(text).is_some()
    }

    /// Counts what has to be kept of the result of a submitted call. That happens when the call ends, not when somebody
    /// takes the result, so that a log says it too.
    fn count(&mut self, result: &CallResult) {
        for text in result.said() {
            if self.guard.what_counts(&text).is_some() {
                self.kept = self.kept.saturating_add(text.len());
            }
        }
    }

    fn hear(&mut self, text: &Untrusted<'_>, what: impl FnOnce() -> HeldReason) {
        self.guard.observe(text);
        self.heard.push(what());
    }

    fn text_of(&self, found: Echo) -> HeldReason {
        let text = match found {
            Echo::Found { text } => self.heard.get(text).cloned(),
            // Whatever else a guard finds, nobody knows which text it was.
            _ => None,
        };
        text.unwrap_or(HeldReason::UntrustedLimit)
    }
}

impl RunState {
    pub(super) fn hear(
        &mut self,
        name: Arc<str>,
        text: Option<Arc<Untrusted<'static>>>,
        at: Duration,
    ) {
        let Some(untrusted) = &mut self.untrusted else {
            return;
        };
        let number = untrusted.given;
        untrusted.given = number.saturating_add(1);
        if let Some(text) = &text {
            untrusted.hear(text, || HeldReason::Untrusted {
                number,
                name: Arc::clone(&name),
            });
        }
        let heard = UntrustedText {
            number,
            name,
            text,
            at,
        };
        self.tell(|| RunEvent::Untrusted(heard));
    }

    /// A tool has said something; the model is told with the next turn.
    pub(super) fn keep_for_next_turn(&mut self, call: CallIndex) {
        if let Some(untrusted) = &mut self.untrusted {
            untrusted.untold.push(call);
            let entry = self.calls.get(call.index());
            let submitted = entry.filter(|entry| entry.is_submitted);
            if let Some(result) = submitted.and_then(|entry| entry.result.as_ref()) {
                untrusted.count(result);
            }
        }
    }

    /// A turn begins, so the model has been told what the tools had said.
    pub(super) fn hear_results(&mut self) {
        let Some(untrusted) = &mut self.untrusted else {
            return;
        };
        if take(&mut untrusted.kept) > untrusted.most {
            untrusted.guard.lose_track();
        }
        let mut untold = take(&mut untrusted.untold);
        // The order in which tools ended does not matter.
        untold.sort_unstable();
        for call in untold {
            let Some(entry) = self.calls.get(call.index()) else {
                continue;
            };
            let Some(result) = &entry.result else {
                continue;
            };
            for text in result.said() {
                untrusted.hear(&text, || HeldReason::Result {
                    call: call.get(),
                    id: Arc::clone(&entry.id),
                });
            }
        }
    }

    /// Why only the gate can let a call run that is complete: it stands in a text from outside, or it was perhaps meant to
    /// end earlier. What the model is told after this it has not copied.
    pub(super) fn held(
        &self,
        call: CallIndex,
        echo: Option<HeldReason>,
        suspect: Option<SuspectMarker>,
    ) -> Option<HeldReason> {
        // Nobody asks the model to write a call again that an untrusted text mentions.
        let suspect = || Some(HeldReason::EndMarker(suspect?));
        echo.or_else(|| suspect().map(|own| self.mention_of(call).unwrap_or(own)))
    }

    pub(super) fn echo_of(
        &self,
        find: impl FnOnce(&EchoGuard) -> Option<Echo>,
    ) -> Option<HeldReason> {
        let untrusted = self.untrusted.as_ref()?;
        Some(untrusted.text_of(find(&untrusted.guard)?))
    }

    /// Takes the result of a submitted call, which nobody else can ask for. What stays of it is what a call could be
    /// copied from.
    pub(crate) fn take_result(&mut self, call: CallIndex) -> Option<CallResult> {
        let entry = self.calls.get_mut(call.index())?;
        let kept = entry.result.as_mut()?;
        let whole = kept.clone();
        // What no tool has said the model is not told.
        let untrusted = self.untrusted.as_ref().filter(|_| entry.attempts > 0);
        let is_kept =
            |text: &Untrusted<'_>| untrusted.is_some_and(|untrusted| untrusted.keeps(text));
        for text in [&mut kept.output, &mut kept.error] {
            *text = text.take().filter(|text| is_kept(&Untrusted::new(&**text)));
        }
        kept.untrusted = kept.untrusted.take().filter(|text| is_kept(text));
        kept.note = None;
        Some(whole)
    }

    pub(super) fn mention_of(&self, call: CallIndex) -> Option<HeldReason> {
        let untrusted = self.untrusted.as_ref()?;
        let name = &self.calls.get(call.index())?.name;
        Some(untrusted.text_of(untrusted.guard.mentions(name)?))
    }

    /// Tells that a call waits for the gate, and why nothing but the gate can let it pass, if that is so.
    pub(super) fn tell_ready(&mut self, call: CallIndex, at: Duration) {
        let held = self.call(call).and_then(|entry| entry.held.clone());
        self.tell_of(call, at, |CallRef { call, id, name, at }| {
            RunEvent::Ready(AwaitingApproval {
                call,
                id,
                name,
                held,
                at,
            })
        });
    }
}
