//! Counters for what happened in a request and its reply.

use std::ops::AddAssign;

use plaincall_tool::definitions::ChangedTool;

macro_rules! counts {
    ($($name:ident: $help:literal,)*) => {
        /// Counters for what happened in a request and its reply.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $(#[doc = $help] pub $name: u64,)*
        }

        impl Counts {
            /// Iterates over the names, descriptions and values of all counters.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), $help, self.$name),)*].into_iter()
            }
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    prompt_bytes: "Bytes of prompts with tools or calls.",
    calls: "Valid calls sent to clients.",
    native_calls: "Calls of the model server, sent unchanged.",
    rescued_calls: "Calls that arrived as text in native mode.",
    invalid_calls: "Invalid calls, repaired or sent with unreadable arguments.",
    truncated_calls: "Calls truncated with their reply.",
    disallowed_calls: "Calls removed because none was allowed.",
    stray_markers: "Stray markers in texts.",
    unmatched_reasoning: "Replies with an end of reasoning that has no beginning.",
    dependent_calls: "Replies ended before a call that depends on another call of the same reply.",
    surplus_calls: "Replies ended before a second call, because only one was allowed.",
    missing_calls: "Replies without a required call.",
    near_misses: "Replies without a call that contain text that resembles one.",
    constrained: "Requests with a grammar for the reply.",
    rejected_grammars: "Requests sent again without a grammar, because the model server rejected it.",
    repair_rounds: "Hidden repair rounds.",
    failed_repairs: "Hidden repair rounds that failed, so that the first reply was the answer.",
    invented_results: "Invented results removed from texts.",
    loosened_tools: "Tools offered with a looser schema.",
    dropped_tools: "Tools that could not be offered.",
    hidden_tools: "Tools that the settings of the model keep out of the prompt.",
    skipped_examples: "Examples of calls that did not fit into the prompt or were invalid.",
}

impl Counts {
    /// Counts the tools that were loosened or dropped.
    pub(crate) fn of_changed(changed: &[ChangedTool]) -> Self {
        let dropped = changed.iter().filter(|tool| tool.is_dropped).count() as u64;
        Self {
            loosened_tools: changed.len() as u64 - dropped,
            dropped_tools: dropped,
            ..Self::default()
        }
    }
}
