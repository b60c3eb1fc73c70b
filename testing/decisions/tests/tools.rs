//! The tools of the replies: those of the gateway's tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use plaincall::{Effect, Tool, Toolbox};
use plaincall_tool::{ToolSet, ToolSpec, definitions::read_tool_definitions};
use serde_json::Value;

use crate::gateway::Adapters;
use crate::replies::model::tools as definitions;

/// The declared effects. Another tool counts as one that writes.
pub(crate) const EFFECTS: [(&str, Effect); 3] = [
    ("search", Effect::Read),
    ("now", Effect::Read),
    ("add", Effect::Idempotent),
];

/// The tools, with or without their effects.
pub(crate) struct Tools {
    pub(crate) set: Arc<ToolSet>,
    pub(crate) toolbox: Toolbox,
    pub(crate) gateway: Adapters,
    /// The arguments of the calls that have run, by the number of the call.
    pub(crate) ran: Ran,
}

/// The arguments of calls.
pub(crate) type Ran = Arc<Mutex<BTreeMap<u32, Value>>>;

impl Tools {
    /// Reads the tools.
    pub(crate) fn new(has_effects: bool) -> Self {
        let specs = read_tool_definitions(&definitions().to_string()).unwrap();
        let specs = specs.into_iter().map(|spec| {
            let effect = EFFECTS.iter().find(|(name, _)| *name == spec.name);
            match effect.filter(|_| has_effects) {
                Some((_, effect)) => spec.effect(*effect),
                None => spec,
            }
        });
        let specs: Vec<ToolSpec> = specs.collect();
        let ran = Ran::default();
        let tools = specs.iter().map(|spec| {
            let ran = Arc::clone(&ran);
            Tool::raw(spec.clone(), move |arguments, context| {
                let ran = Arc::clone(&ran);
                async move {
                    let before = ran
                        .lock()
                        .unwrap()
                        .insert(context.call(), arguments.to_value());
                    assert_eq!(before, None, "the call {} runs twice", context.call());
                    Ok(String::new())
                }
            })
        });
        let toolbox = Toolbox::new(tools).unwrap();
        let set = Arc::new(ToolSet::new(specs).unwrap());
        Self {
            set,
            toolbox,
            gateway: Adapters::new(),
            ran,
        }
    }
}
