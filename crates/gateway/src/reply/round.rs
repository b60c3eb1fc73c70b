//! The state of one answer of the model.

use std::collections::HashSet;
use std::sync::Arc;

use plaincall_reply::Stop;

use crate::reply::open_call::Opened;
use crate::reply::plan::ReplyPlan;
use crate::reply::text::Text;

/// One answer of the model: the first, or that of a repair round.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) text: Text,
    pub(super) open: Option<Opened>,
    pub(super) given_ids: HashSet<String>,
    /// The number of calls that have started, without disallowed calls.
    pub(super) started: u64,
    pub(super) stop: Stop,
    /// The model's text without its reasoning, while a repair is possible. `None` if it is too long.
    pub(super) written: Option<String>,
    pub(super) answer: String,
    /// The beginning of a call at the end of the reply: a start marker and what follows it in its line.
    pub(super) header: Option<String>,
    /// Whether the reply was truncated in a call.
    pub(super) has_truncated_call: bool,
    /// Whether the model server has sent a choice.
    pub(super) has_choice: bool,
    /// The length of the received text, in bytes.
    pub(super) length: usize,
    pub(super) late: u32,
}

impl Round {
    pub(super) fn new(plan: &ReplyPlan) -> Self {
        Self {
            text: Text::new(Arc::clone(&plan.compiled)),
            open: None,
            given_ids: HashSet::new(),
            started: 0,
            stop: Stop::Broken,
            written: Some(String::new()),
            answer: String::new(),
            header: None,
            has_truncated_call: false,
            has_choice: false,
            length: 0,
            late: 0,
        }
    }
}
