//! What the model hears about calls that were wrong.

use std::collections::HashMap;

use plaincall::call::{Completeness, Fault, MayRun, NotRun, ToolCall, bind, repair};
use plaincall::{Declared, RejectReason, Status, Stop, Tool, Unclosed, dependency_faults};

use crate::asking::Work;
use crate::asking::turn::Turned;

/// How many wrong calls of a reply are told about.
const MOST_TOLD: usize = 5;

impl Work<'_> {
    /// What is to be said about the calls that were rejected because they were written wrong, if there are any.
    pub(super) fn complaints(&self, turned: &Turned) -> String {
        let completeness = completeness(turned);
        let toolbox = self.talk.run.toolbox();
        let specs: Vec<_> = toolbox.iter().map(Tool::spec).collect();
        let mut said = String::new();
        let mut told = 0;
        let mut check = self.talk.run.reply_check();
        // What makes a call doubtful is in the calls before it, so all are judged in order.
        let not_run: HashMap<usize, NotRun> = turned
            .calls
            .iter()
            .filter_map(|call| {
                let spec = toolbox.get(&call.name).map(Tool::spec);
                let reason = check.may_run(call, spec, completeness).err()?;
                Some((call.index, reason))
            })
            .collect();
        let declared = turned.calls.iter().map(|call| Declared {
            id: &call.id,
            dependencies: &call.dependencies,
            is_rejected: not_run.contains_key(&call.index),
        });
        let faults = dependency_faults(declared).into_iter();
        // An unknown id may be one of an earlier reply.
        let faults = faults.filter(|(_, fault)| !matches!(fault, RejectReason::UnknownIds { .. }));
        let dependencies: HashMap<usize, String> = faults
            .filter_map(|(place, fault)| Some((turned.calls.get(place)?.index, fault.to_string())))
            .collect();
        for result in &turned.results {
            let (Status::Rejected, Some(call)) = (result.status, turned.call(result.call)) else {
                continue;
            };
            // A text from outside may want it to be made right. The result says that it is wrong.
            if self.talk.untrusted.mentions(&call.name).is_some() {
                continue;
            }
            let Some(tool) = toolbox.get(&call.name) else {
                self.complain(call, Fault::UnknownTool, &specs, &mut told, &mut said);
                continue;
            };
            let spec = tool.spec();
            if let Some(reason) = not_run.get(&call.index) {
                self.complain(call, Fault::NotRun(reason), &specs, &mut told, &mut said);
            } else if let Err(problems) = bind(spec, call) {
                self.complain(
                    call,
                    Fault::Arguments(&problems),
                    &specs,
                    &mut told,
                    &mut said,
                );
            } else if let Some(fault) = dependencies.get(&call.index) {
                self.complain(
                    call,
                    Fault::Dependencies(fault),
                    &specs,
                    &mut told,
                    &mut said,
                );
            }
        }
        if told > MOST_TOLD {
            said.push_str("More calls were wrong too.\n");
        }
        said
    }

    /// How many calls were rejected only because they have no end marker.
    pub(super) fn unclosed(&self, turned: &Turned) -> u32 {
        let toolbox = self.talk.run.toolbox();
        let mut check = self.talk.run.reply_check();
        let mut lenient = check.clone().unclosed(Unclosed::Run);
        let is_unclosed = |call: &&ToolCall| {
            let spec = toolbox.get(&call.name).map(Tool::spec);
            let strictly = check.may_run(call, spec, completeness(turned));
            let leniently = lenient.may_run(call, spec, completeness(turned));
            strictly.is_err()
                && leniently == Ok(MayRun::Yes)
                && spec.is_some_and(|spec| bind(spec, call).is_ok())
        };
        let count = turned.calls.iter().filter(is_unclosed).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn complain(
        &self,
        call: &ToolCall,
        fault: Fault<'_>,
        specs: &[&plaincall::ToolSpec],
        told: &mut usize,
        said: &mut String,
    ) {
        *told += 1;
        if *told > MOST_TOLD {
            return;
        }
        // A dialect that cannot work was refused when the agent was built.
        if let Ok(message) = repair(call, fault, specs, &self.talk.dialect) {
            said.push_str(message.text());
            said.push('\n');
        }
    }
}

/// What is known about the end of the reply.
const fn completeness(turned: &Turned) -> Completeness {
    match turned.finish.stop {
        Stop::Natural => Completeness::Complete,
        Stop::EndOfFile => Completeness::EndOfFile,
        Stop::Length | Stop::Broken => Completeness::Truncated,
    }
}
