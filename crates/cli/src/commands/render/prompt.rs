//! What a model is told so that it can write calls.

use plaincall_call::{OwnText, PromptOptions, prompt};

use crate::commands::render::RenderOptions;
use crate::commands::render::sink::Sink;
use crate::commands::render::written_dialect;
use crate::status::{Outcome, Status};
use crate::text::reading::refused;
use crate::tools_file;

pub(super) fn render(options: &RenderOptions, sink: &mut Sink<'_>) -> Outcome {
    let dialect = written_dialect(options)?;
    let tools = options.schema.load_alone()?.unwrap_or_default();
    let mut wanted = PromptOptions::new();
    for (part, file) in &options.replace {
        let (_, text) = tools_file::read(file)?;
        wanted = wanted.replace(*part, OwnText::vouch(text));
    }
    for part in &options.omit {
        wanted = wanted.omit(*part);
    }
    if options.no_dependencies {
        wanted = wanted.without_dependencies();
    }
    if options.one_call {
        wanted = wanted.one_call();
    }
    let prompt = prompt(tools.iter(), &dialect, &wanted).map_err(|error| refused(&error))?;
    let mut from = 0;
    for (part, span) in prompt.parts() {
        // The empty lines before a part count as its own.
        let text = prompt.text().get(from..span.end).unwrap_or_default();
        sink.piece(part.name(), text.as_bytes())?;
        from = span.end;
    }
    let rest = prompt.text().get(from..).unwrap_or_default();
    if !rest.is_empty() {
        sink.piece("rest", rest.as_bytes())?;
    }
    Ok(Status::Good)
}
