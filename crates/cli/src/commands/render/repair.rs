//! What a model hears about the wrong calls of a reply.

use std::path::Path;

use plaincall::{Declared, RejectReason, dependency_faults};
use plaincall_call::{
    Completeness, Fault, MayRun, ModelText, NotRun, Problem, ReplyCheck, ToolCall, ToolSet,
    ToolSpec, repair, repair_reply,
};
use plaincall_syntax::Dialect;

use crate::commands::render::RenderOptions;
use crate::commands::render::sink::Sink;
use crate::status::{Failure, Outcome, Status};
use crate::text::input::Input;
use crate::text::reading::{read_bytes, refused, reply_check};

/// Writes repair messages.
pub(super) struct Mender {
    dialect: Dialect,
    tools: ToolSet,
    is_complete: bool,
}

impl Mender {
    pub(super) fn new(options: &RenderOptions) -> Result<Self, Failure> {
        let tools = options.schema.load(&options.files)?.ok_or_else(|| {
            let message = "what is wrong with a call is told by the definition of its tool: name it with `--schema`";
            Failure::Usage(message.to_owned())
        })?;
        Ok(Self {
            dialect: options.dialect.dialect()?,
            tools,
            is_complete: options.complete,
        })
    }

    pub(super) fn file(&self, file: &Path, sink: &mut Sink<'_>) -> Outcome {
        let input = Input::open(file)?;
        let completeness = input.completeness(self.is_complete);
        let bytes = input.into_bytes()?;
        let document = read_bytes(&bytes, &self.dialect, None)?;
        let tools: Vec<&ToolSpec> = self.tools.iter().collect();
        let mut check = reply_check(&self.dialect)?;
        let mut judged: Vec<Result<(), Wrong>> = document
            .calls()
            .map(|call| self.judge(call, &mut check, completeness))
            .collect();
        let declared = document
            .calls()
            .zip(&judged)
            .map(|(call, judged)| Declared {
                id: &call.id,
                dependencies: &call.dependencies,
                is_rejected: judged.is_err(),
            });
        for (place, fault) in dependency_faults(declared) {
            // An unknown id may be one of an earlier reply.
            if let Some(judged @ Ok(())) = judged.get_mut(place)
                && !matches!(fault, RejectReason::UnknownIds { .. })
            {
                *judged = Err(Wrong::Dependencies(fault.to_string()));
            }
        }
        let mut status = Status::Good;
        for (number, (call, judged)) in document.calls().zip(judged).enumerate() {
            let Err(wrong) = judged else {
                continue;
            };
            let fault = match &wrong {
                Wrong::NotRun(reason) => Fault::NotRun(reason),
                Wrong::Unknown => Fault::UnknownTool,
                Wrong::Arguments(problems) => Fault::Arguments(problems),
                Wrong::Dependencies(fault) => Fault::Dependencies(fault),
            };
            let told = repair(call, fault, &tools, &self.dialect);
            let passage = told.map_err(|error| refused(&error))?;
            sink.piece(&format!("call {}", number + 1), passage.text().as_bytes())?;
            status = Status::Wrong;
        }
        let reply = String::from_utf8_lossy(&bytes);
        let told = repair_reply(&ModelText::new(reply), &tools, &self.dialect);
        if let Some(passage) = told.map_err(|error| refused(&error))? {
            sink.piece("reply", passage.text().as_bytes())?;
            status = Status::Wrong;
        }
        Ok(status)
    }

    /// Why the call would not be run.
    fn judge(
        &self,
        call: &ToolCall,
        check: &mut ReplyCheck,
        completeness: Completeness,
    ) -> Result<(), Wrong> {
        let tool = self.tools.get(&call.name);
        let may_run = check.may_run(call, tool, completeness);
        let may_run = may_run.and_then(MayRun::unless_held);
        if tool.is_none() {
            return Err(match may_run {
                Err(reason) => Wrong::NotRun(reason),
                Ok(()) => Wrong::Unknown,
            });
        }
        match may_run {
            // Binding finds everything that is wrong.
            Ok(()) | Err(NotRun::Wrong(_)) => {}
            Err(reason) => return Err(Wrong::NotRun(reason)),
        }
        match self.tools.bind(call) {
            Ok(_) => Ok(()),
            Err(problems) => Err(Wrong::Arguments(problems)),
        }
    }
}

enum Wrong {
    NotRun(NotRun),
    Unknown,
    Arguments(Vec<Problem>),
    Dependencies(String),
}
