//! What the model hears about calls that were wrong.

use plaincall::call::{Completeness, Fault, Unclosed, bind, repair};
use plaincall::{Status, Stop, Tool};

use crate::asking::Work;
use crate::asking::turn::Turned;

/// How many wrong calls of a reply are told about.
const MOST_TOLD: usize = 5;

impl Work<'_> {
    /// What is to be said about the calls that were rejected because they were written wrong, if there are any.
    pub(super) fn complaints(&self, turned: &Turned) -> String {
        let completeness = match turned.finish.stop {
            Stop::Natural => Completeness::Complete,
            Stop::Length | Stop::Broken => Completeness::CutOff,
        };
        let toolbox = self.talk.run.toolbox();
        let specs: Vec<_> = toolbox.iter().map(Tool::spec).collect();
        let mut said = String::new();
        let mut told = 0;
        for result in &turned.results {
            let (Status::Rejected, Some(call)) = (result.status, turned.call(result.call)) else {
                continue;
            };
            let Some(tool) = toolbox.get(&call.name) else {
                self.complain(call, Fault::UnknownTool, &specs, &mut told, &mut said);
                continue;
            };
            let spec = tool.spec();
            if let Err(reason) = call.may_run_as(spec, completeness, Unclosed::Reject) {
                self.complain(call, Fault::NotRun(&reason), &specs, &mut told, &mut said);
            } else if let Err(problems) = bind(spec, call) {
                self.complain(
                    call,
                    Fault::Arguments(&problems),
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

    fn complain(
        &self,
        call: &plaincall::call::ToolCall,
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
