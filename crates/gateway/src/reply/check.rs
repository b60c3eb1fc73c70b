//! Replies of which nothing leaves before it is checked.

use plaincall_call::{
    Completeness, Fault, ModelText, NotRun, Passage, ToolCall, bind, repair, repair_reply,
};
use plaincall_syntax::{Event, EventKind};

use crate::counts::Counts;
use crate::offer::Choice;
use crate::refusal::Refusal;
use crate::reply::plan::{Near, ReplyPlan};
use crate::settings::ReasoningSpan;

/// How many wrong calls of a reply are told about.
const MOST_TOLD: usize = 5;

/// What is known of a round.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// What the model has written, its reasoning left out.
    pub(super) written: String,
    /// What it has said in a round of repair.
    pub(super) said: String,
    /// The calls that are right: the name of the tool and the arguments as JSON text.
    pub(super) right: Vec<(String, String)>,
    /// What is to be said about the calls that are wrong.
    wrong: Vec<String>,
    /// Whether there are more of them than are told.
    is_more_wrong: bool,
}

/// What is wrong with a round.
pub(super) struct Complaint {
    /// In words for the model.
    pub(super) text: String,
    /// For the client, if there is no further round.
    pub(super) refusal: Refusal,
    /// Whether there is no call where one must be.
    pub(super) is_missing: bool,
}

impl Checked {
    /// Keeps the text of an event.
    pub(super) fn note(&mut self, event: &Event<'_>, reasoning: Option<&ReasoningSpan>) {
        match &event.kind {
            EventKind::Reasoning(_) => {}
            EventKind::Ignored(text)
                if reasoning.is_some_and(|span| **text == *span.open || **text == *span.close) => {}
            _ => self.written.push_str(event.source()),
        }
    }

    /// Checks a call that has ended. `may_run` is the decision by its end.
    pub(super) fn take(
        &mut self,
        call: &ToolCall,
        mut may_run: Result<(), NotRun>,
        plan: &ReplyPlan,
        completeness: Completeness,
    ) -> Counts {
        let is_wrong = || Counts {
            wrong_calls: 1,
            ..Counts::default()
        };
        let tool = plan.offer.get(&call.name);
        let Some(tool) = tool.filter(|tool| plan.choice.allows(&tool.name)) else {
            self.complain(call, Fault::UnknownTool, plan);
            return is_wrong();
        };
        if may_run.is_ok() && !call.dependencies.is_empty() {
            let message = "it names calls to wait for, and no such calls are known: leave them out";
            may_run = Err(NotRun::Wrong(message.to_owned()));
        }
        if let Err(reason) = may_run {
            self.complain(call, Fault::NotRun(&reason), plan);
            if !call.is_closed() && completeness == Completeness::Truncated {
                return Counts {
                    cut_calls: 1,
                    ..Counts::default()
                };
            }
            return is_wrong();
        }
        match bind(tool, call) {
            Ok(arguments) => {
                let json = arguments.to_value().to_string();
                self.right.push((call.name.clone(), json));
                Counts::default()
            }
            Err(problems) => {
                self.complain(call, Fault::Arguments(&problems), plan);
                is_wrong()
            }
        }
    }

    fn complain(&mut self, call: &ToolCall, fault: Fault<'_>, plan: &ReplyPlan) {
        if self.wrong.len() == MOST_TOLD {
            self.is_more_wrong = true;
            return;
        }
        // A dialect that could not work was refused when the reply began.
        let message = repair(call, fault, &plan.allowed(), &plan.spoken.told);
        self.wrong
            .push(message.map(Passage::into_text).unwrap_or_default());
    }

    /// What is wrong with the round, if anything is.
    pub(super) fn complaint(&self, plan: &ReplyPlan) -> Option<Complaint> {
        if plan.choice == Choice::None {
            return None;
        }
        let is_missing = self.right.is_empty() && plan.choice.is_required();
        if !self.wrong.is_empty() {
            return Some(Complaint {
                text: self.about_calls(),
                refusal: Refusal::model(
                    if plan.repair_rounds == 0 {
                        "the model has written a call that is wrong"
                    } else {
                        "the model has written a call that is wrong, also after it was asked to write it again"
                    },
                    "invalid_tool_call",
                ),
                is_missing,
            });
        }
        if !self.right.is_empty() {
            return None;
        }
        // To ask for a call that the model has only quoted would be to make one of what a page says.
        let is_own = match &plan.near {
            Near::All => true,
            Near::WithKey(key) => self.written.contains(key.as_str()),
            Near::Nothing => false,
        };
        let near = is_own.then(|| {
            let written = ModelText::new(&*self.written);
            repair_reply(&written, &plan.allowed(), &plan.spoken.told)
        });
        let near = near.and_then(|near| near.ok().flatten());
        let near = near.map(Passage::into_text);
        if near.is_none() && !is_missing {
            return None;
        }
        let text = near.unwrap_or_else(|| {
            "Your reply holds no call, but one must be made now: write the call of a tool.\n"
                .to_owned()
        });
        Some(Complaint {
            text,
            refusal: Refusal::model(
                if plan.repair_rounds == 0 {
                    "the model has written no call that can be read"
                } else {
                    "the model has written no call that can be read, also after it was asked again"
                },
                "missing_tool_call",
            ),
            is_missing,
        })
    }

    /// What is said about the calls that are wrong.
    fn about_calls(&self) -> String {
        let mut text = String::new();
        for wrong in &self.wrong {
            text.push_str(wrong);
            text.push('\n');
        }
        if self.is_more_wrong {
            text.push_str("More calls were wrong too.\n\n");
        }
        text.push_str(if self.right.is_empty() {
            "Write it again, right.\n"
        } else {
            "None of the calls of your reply was run, the right ones neither. Write all of them again.\n"
        });
        text
    }
}
