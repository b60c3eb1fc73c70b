//! Whether a call may be sent, and what the model is told if not.

use plaincall_call::{
    CallError, ModelText, PromptText, ToolCall,
    repair::{repair, repair_reply},
};

use crate::error::GatewayError;
use crate::invalid_call_mark::InvalidCallMark;
use crate::reply::plan::ReplyPlan;

pub(super) fn invalid_call_mark(call: &ToolCall, error: &CallError) -> InvalidCallMark {
    match error {
        CallError::UnknownTool(_) => InvalidCallMark::UnknownTool,
        CallError::Arguments(_) if call.parse_error.is_none() => InvalidCallMark::Arguments,
        _ => InvalidCallMark::Form,
    }
}

/// Why the model is asked again.
pub(super) struct RepairReason {
    pub(super) text: String,
    /// What the client is told if there is no further round.
    pub(super) error: GatewayError,
    pub(super) is_missing: bool,
    /// Whether the model may be asked at all.
    pub(super) can_be_asked: bool,
}

impl RepairReason {
    /// An invalid call, before which none has been sent.
    pub(super) fn of_call(call: &ToolCall, error: &CallError, plan: &ReplyPlan) -> Self {
        // A dialect that could not work was refused when the reply began.
        let message = repair([(call, error)], plan, &plan.compiled.prompt_dialect);
        let message = message.map(PromptText::into_text).unwrap_or_default();
        let is_quoted = plan.guard().mentions(&call.name).is_some();
        let error = match (is_quoted, plan.repair_rounds) {
            (true, _) => {
                "the model wrote an invalid call that also appears in a text of the conversation, so it was not asked to correct it"
            }
            (false, 0) => "the model wrote an invalid call",
            _ => "the model wrote an invalid call, even after it was asked to correct it",
        };
        Self {
            text: message
                + "\nYour reply was stopped here, and no call was executed. Write this call again, corrected, then any calls that follow it.\n",
            error: GatewayError::model(error, "invalid_tool_call"),
            is_missing: plan.choice.is_required(),
            can_be_asked: !is_quoted,
        }
    }
}

/// What is wrong with a reply without a call, if anything is: near misses, or that a call is required.
pub(super) fn without_call(written: &str, plan: &ReplyPlan) -> Option<RepairReason> {
    let is_missing = plan.choice.is_required();
    let near = repair_reply(
        &ModelText::new(written),
        plan,
        &plan.compiled.prompt_dialect,
    );
    let near = near.ok().flatten();
    let near = near.filter(|_| !plan.is_quotation(written));
    let near = near.map(PromptText::into_text);
    if near.is_none() && !is_missing {
        return None;
    }
    let error = match plan.repair_rounds {
        0 => "the model wrote no valid call",
        _ => "the model wrote no valid call, even after it was asked again",
    };
    Some(RepairReason {
        text: near.unwrap_or_else(|| {
            "Your reply contains no call, but one is required now. Call a tool.\n".to_owned()
        }),
        error: GatewayError::model(error, "missing_tool_call"),
        is_missing,
        can_be_asked: true,
    })
}
