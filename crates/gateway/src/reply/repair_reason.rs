//! Messages to the model about invalid and missing calls.

use plaincall_prompt::repair::{repair, repair_reply};
use plaincall_reply::{CallError, ModelText, PromptText, ToolCall};

use crate::error::GatewayError;
use crate::reply::plan::ReplyPlan;

/// The reason for a repair round.
pub(super) struct RepairReason {
    pub(super) text: String,
    /// The error for the client if there is no further round.
    pub(super) error: GatewayError,
    pub(super) is_missing: bool,
    /// Whether the text resembles a call.
    pub(super) is_near_miss: bool,
    /// Whether a repair round is safe.
    pub(super) can_be_asked: bool,
}

impl RepairReason {
    /// Creates the reason for an invalid call, before any call was sent, after this many rounds.
    pub(super) fn of_call(
        call: &ToolCall,
        error: &CallError,
        plan: &ReplyPlan,
        rounds: u32,
    ) -> Self {
        // The dialect was validated when the reply began.
        let message = repair([(call, error)], plan, &plan.compiled.dialect);
        let message = message.map(PromptText::into_text).unwrap_or_default();
        let is_quoted = plan.may_be_copied(call);
        let error = if is_quoted {
            "the model wrote an invalid call that also appears in a text of the conversation, so it was not asked to correct it".to_owned()
        } else {
            format!("the model wrote an invalid call{}", after(rounds))
        };
        Self {
            text: message
                + "\nYour reply was stopped here, and no call was run. Write this call again, corrected, then any calls that follow it.\n",
            error: GatewayError::model(error, "invalid_tool_call"),
            is_missing: plan.choice.is_required(),
            is_near_miss: false,
            can_be_asked: !is_quoted,
        }
    }
}

/// Returns the reason to repair a reply without a call: near misses, or a required call.
pub(super) fn without_call(written: &str, plan: &ReplyPlan, rounds: u32) -> Option<RepairReason> {
    let is_missing = plan.choice.is_required();
    let near = repair_reply(&ModelText::new(written), plan, &plan.compiled.dialect);
    let near = near.ok().flatten();
    let near = near.filter(|_| !plan.is_quotation(written));
    let near = near.map(PromptText::into_text);
    if near.is_none() && !is_missing {
        return None;
    }
    let is_near_miss = near.is_some();
    let error = format!("the model wrote no valid call{}", after(rounds));
    Some(RepairReason {
        text: near.unwrap_or_else(|| {
            "Your reply has no call, but one is required now. Call a tool.\n".to_owned()
        }),
        error: GatewayError::model(error, "missing_tool_call"),
        is_missing,
        is_near_miss,
        can_be_asked: true,
    })
}

/// The message about text that looks like a call.
pub(super) const NOT_A_CALL: &str = "Your reply has text that looks like a tool call but is not a valid one, so nothing was run. \
    If you want to call a tool, call it now in the usual way, with all required arguments, and write nothing after the call. \
    Otherwise, answer without it.\n";

/// The message about several calls, if only one is allowed.
pub(super) const SURPLUS: &str = "Your reply has more than one tool call, but only one call is allowed in a reply, so nothing was \
    run. If you want to call a tool, make one call now in the usual way, and write nothing after it. Otherwise, answer without \
    it.\n";

/// Returns the reason to ask once more after a reply that has reasoning and nothing else.
pub(super) fn only_reasoning() -> RepairReason {
    RepairReason {
        text: "Your reply has only reasoning, and nothing in it was run. If you want to call a tool, write the call after the reasoning. \
            Otherwise, write your answer after it.\n"
            .to_owned(),
        error: GatewayError::model("the model wrote only reasoning", "missing_answer"),
        is_missing: false,
        is_near_miss: true,
        can_be_asked: true,
    }
}

/// Returns the reason to ask once more, with this message, for calls that arrived as text and were not accepted; `None` if
/// untrusted text mentions them.
pub(super) fn as_text(message: &str, written: &str, plan: &ReplyPlan) -> Option<RepairReason> {
    (!plan.is_quotation(written)).then(|| RepairReason {
        text: message.to_owned(),
        error: GatewayError::model(
            "the model wrote no valid call".to_owned(),
            "missing_tool_call",
        ),
        is_missing: false,
        is_near_miss: true,
        can_be_asked: true,
    })
}

/// Returns the end of an error after this many repair rounds.
fn after(rounds: u32) -> String {
    match rounds {
        0 => String::new(),
        1 => ", even after 1 repair round".to_owned(),
        _ => format!(", even after {rounds} repair rounds"),
    }
}
