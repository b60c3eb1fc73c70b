//! What happened in a reply, for statistics.

use std::ops::AddAssign;

use plaincall_call::ChangedTool;

macro_rules! counts {
    ($($name:ident: $help:literal,)*) => {
        /// What happened in a reply, in numbers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $(#[doc = $help] pub $name: u64,)*
        }

        impl Counts {
            /// Each count with its name and what it means.
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
    calls: "Calls given to clients, complete and right.",
    wrong_calls: "Calls that were wrong: left unreadable, or asked for again.",
    cut_calls: "Calls that were truncated with their reply.",
    unwanted_calls: "Calls left out, since none was allowed.",
    stray_markers: "Markers without a meaning, left out of texts.",
    dependent_calls: "Replies that ended before a call that depends on another of theirs.",
    surplus_calls: "Replies that ended before a second call, since one was allowed.",
    missing_calls: "Replies without a call where one had to be.",
    repair_rounds: "Hidden rounds of repair.",
    invented_results: "Texts with results that the model has invented, left out.",
    loosened_tools: "Tools offered with a looser schema.",
    dropped_tools: "Tools that could not be offered.",
}

impl Counts {
    /// Counts the definitions of tools that changed before the model was asked.
    pub(crate) fn of_changed(changed: &[ChangedTool]) -> Self {
        let dropped = changed.iter().filter(|tool| tool.is_dropped).count() as u64;
        Self {
            loosened_tools: changed.len() as u64 - dropped,
            dropped_tools: dropped,
            ..Self::default()
        }
    }
}
