//! What a model hears about the wrong calls of a reply.

use std::path::Path;

use plaincall::{Declared, RejectReason, dependency_faults};
use plaincall_call::{CallError, ModelText, ToolSet, repair, repair_reply};
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
        let stop = input.stop(self.is_complete);
        let bytes = input.into_bytes()?;
        let document = read_bytes(&bytes, &self.dialect, None)?;
        let mut check = reply_check(&self.dialect)?.without_gate();
        let mut errors: Vec<Option<CallError>> = document
            .calls()
            .map(|call| check.bind(call, &self.tools, stop).err())
            .collect();
        let declared = document.calls().zip(&errors).map(|(call, error)| Declared {
            id: &call.id,
            dependencies: &call.dependencies,
            is_rejected: error.is_some(),
        });
        for (place, fault) in dependency_faults(declared) {
            // An unknown id may be one of an earlier reply.
            if let Some(error @ None) = errors.get_mut(place)
                && !matches!(fault, RejectReason::UnknownIds { .. })
            {
                *error = Some(CallError::Dependencies(fault.to_string()));
            }
        }
        let mut status = Status::Good;
        for (number, (call, error)) in document.calls().zip(&errors).enumerate() {
            let Some(error) = error else {
                continue;
            };
            let passage = repair([(call, error)], &self.tools, &self.dialect);
            let passage = passage.map_err(|error| refused(&error))?;
            sink.piece(&format!("call {}", number + 1), passage.text().as_bytes())?;
            status = Status::Wrong;
        }
        let reply = String::from_utf8_lossy(&bytes);
        let told = repair_reply(&ModelText::new(reply), &self.tools, &self.dialect);
        if let Some(passage) = told.map_err(|error| refused(&error))? {
            sink.piece("reply", passage.text().as_bytes())?;
            status = Status::Wrong;
        }
        Ok(status)
    }
}
