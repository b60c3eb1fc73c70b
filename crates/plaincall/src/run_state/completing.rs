//! Calls that are complete: their tools and arguments.

use std::sync::Arc;
use std::time::Duration;

use plaincall_plan::CallIndex;
use plaincall_reply::SuspectMarker;
use plaincall_tool::Arguments;

use super::RunState;
use crate::call_arguments::{ArgumentTexts, unbound};
use crate::event::{CallRef, Completed, RunEvent};
use crate::held::HeldReason;

impl RunState {
    /// Completes a call. It is held if it appears in untrusted text or in an example, or may have been meant to end earlier. Text
    /// that the model receives later does not count, because the model cannot have copied the call from it.
    pub(super) fn complete(
        &mut self,
        call: CallIndex,
        tool: usize,
        arguments: &Arc<Arguments>,
        echo: Option<HeldReason>,
        suspect: Option<SuspectMarker>,
        at: Duration,
    ) {
        let mut held = echo.or_else(|| self.copied_example(call, arguments));
        if held.is_none()
            && let Some(suspect) = suspect
        {
            // The model is not asked to write a call again if untrusted text mentions it.
            let mention = self.mention_of(call);
            held = mention.or(Some(HeldReason::EndMarker(suspect)));
        }
        let texts = || (&**arguments).into();
        self.completed(call, tool, arguments, texts, held, at);
    }

    /// Completes or rejects a call of a log as it was, if it has ended: its tool may be gone or decide otherwise today. Returns
    /// whether it did.
    pub(super) fn restored(
        &mut self,
        call: CallIndex,
        today: Option<&Arc<Arguments>>,
        at: Duration,
    ) -> bool {
        let Some(recorded) = self.recorded.get(&call.get()).cloned() else {
            return false;
        };
        let Some(texts) = recorded.arguments else {
            let Some(reason) = recorded.rejected.filter(|_| today.is_some()) else {
                return false;
            };
            let _ = self.plan.reject(call, &*reason);
            return true;
        };
        let is_same = |today: &&Arc<Arguments>| ArgumentTexts::from(&***today) == texts;
        let arguments = today.filter(is_same).cloned();
        let entry = self.calls.get(call.index());
        let found = entry.and_then(|entry| self.toolbox.submittable(&entry.name));
        let Some((place, _)) = found.filter(|_| arguments.is_none() || recorded.has_changed) else {
            return false;
        };
        let arguments = arguments.unwrap_or_else(|| Arc::new(unbound(&texts.0)));
        self.completed(call, place, &arguments, || texts, recorded.held, at);
        true
    }

    fn completed(
        &mut self,
        call: CallIndex,
        tool: usize,
        arguments: &Arc<Arguments>,
        texts: impl FnOnce() -> ArgumentTexts,
        held: Option<HeldReason>,
        at: Duration,
    ) {
        let entry = self.calls.get_mut(call.index());
        let Some((entry, number)) = entry.zip(self.numbers.get(tool)) else {
            return;
        };
        let ids = &*entry.dependencies;
        // A call that has ended already, for instance because of the limit of calls, needs no arguments.
        if self.plan.complete(call, *number, ids).is_err() {
            return;
        }
        entry.times.complete = Some(at);
        entry.tool = Some(tool);
        entry.arguments = Some(Arc::clone(arguments));
        entry.held = held;
        if self.is_observed {
            let arguments = texts();
            self.emit(about!(self, call, at, Waiting(Completed { arguments })));
        }
    }
}
