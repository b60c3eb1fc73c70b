//! `plaincall render`: what a model is told, as text.

mod calls;
mod conversation;
mod deltas;
mod messages;
mod prompt;
mod repair;
mod results;
mod sink;

use std::path::Path;

use plaincall_syntax::Dialect;

use crate::arguments::{RenderOptions, Rendered};
use crate::input::each;
use crate::output::Output;
use crate::status::{Failure, Outcome};

pub(crate) fn render(options: &RenderOptions, output: &mut Output) -> Outcome {
    options.check()?;
    let mut sizes = options.stats.then(sink::Sizes::default);
    let status = match options.what {
        Rendered::Prompt => prompt::render(options, &mut sink::Sink::new(output, &mut sizes))?,
        what => {
            let mut one = of_files(what, options)?;
            each(&options.files, output, |file, output| {
                one(file, &mut sink::Sink::new(output, &mut sizes))
            })?
        }
    };
    if let Some(sizes) = sizes {
        sizes.print(output)?;
    }
    Ok(status)
}

/// What is done with each file.
type OfFile<'o> = Box<dyn FnMut(&Path, &mut sink::Sink<'_>) -> Outcome + 'o>;

fn of_files(what: Rendered, options: &RenderOptions) -> Result<OfFile<'_>, Failure> {
    Ok(match what {
        Rendered::Calls | Rendered::Prompt => {
            let mut writer = calls::Writer::new(options)?;
            Box::new(move |file, sink| writer.file(file, sink))
        }
        Rendered::History => {
            let teller = messages::Teller::new(options)?;
            Box::new(move |file, sink| teller.file(file, sink))
        }
        Rendered::Results => {
            let dialect = options.dialect.dialect()?;
            Box::new(move |file, sink| results::file(file, &dialect, sink))
        }
        Rendered::Repair => {
            let mender = repair::Mender::new(options)?;
            Box::new(move |file, sink| mender.file(file, sink))
        }
        Rendered::Deltas => {
            let stream = deltas::Stream::new(options)?;
            Box::new(move |file, sink| stream.file(file, sink))
        }
    })
}

/// The dialect in which something is written that does not come from a text: it must name a syntax.
fn written_dialect(options: &RenderOptions) -> Result<Dialect, Failure> {
    let dialect = options.dialect.dialect()?;
    if dialect.syntax().is_none() {
        let message =
            "say in which syntax the model is to write: `--syntax block` or `--syntax emoji`";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(dialect)
}
