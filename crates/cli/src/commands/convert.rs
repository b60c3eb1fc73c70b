//! `plaincall convert`: a text with its calls in the other syntax.

use std::path::Path;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_call::{Document, ReplyCheck, Segment, Stop, Syntax, ToolCall, ToolSet, bind};
use plaincall_syntax::Dialect;

use crate::options::SyntaxChoice;
use crate::options::{DialectOptions, SchemaOption};
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, complain, remark};
use crate::text::draft::Draft;
use crate::text::input::Input;
use crate::text::reading::{escaper, read_bytes, reply_check};
use crate::text::source::Counter;
use crate::text::translate::{in_block, in_emoji, sentences};

/// Rewrite the calls of a text in the other syntax.
///
/// Text outside calls stays as it is, byte for byte. A call that the other syntax cannot express stays as it is too
/// and is named on standard error with the reason: one that is wrong or cut off, one whose tool has no definition,
/// one with an id or dependencies, and one whose arguments have no place in the form that its tool's definition
/// gives.
///
/// Exit status: 0 if every call was rewritten, else 1.
#[derive(Args, Debug)]
pub(crate) struct ConvertOptions {
    /// The text to rewrite; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The syntax to write.
    #[arg(long, value_name = "SYNTAX")]
    pub(crate) to: Target,

    /// Write calls to the emoji syntax without the ids and dependencies that they have.
    ///
    /// What is dropped is named on standard error. Calls of the emoji syntax run in the order in which they stand.
    #[arg(long)]
    pub(crate) drop_ids: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

/// The syntax that `convert` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// The block syntax.
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

pub(crate) fn convert(options: &ConvertOptions, output: &mut Output) -> Outcome {
    // Markers that are set belong to the block syntax, whether it is read here or written.
    let both = options.dialect.with_syntax(SyntaxChoice::Auto)?;
    let dialect = match options.dialect.syntax {
        Some(SyntaxChoice::Block) => both.for_syntax(Syntax::Block),
        Some(SyntaxChoice::Emoji) => both.for_syntax(Syntax::Emoji),
        Some(SyntaxChoice::Auto) | None => both.clone(),
    };
    let dialect = options.dialect.begun(dialect);
    let syntax = match options.to {
        Target::Block => Syntax::Block,
        Target::Emoji => Syntax::Emoji,
    };
    let tools = options
        .schema
        .load(options.file.as_slice())?
        .unwrap_or_default();
    let file = options.file.as_deref().unwrap_or(Path::new("-"));
    let input = Input::open(file)?;
    let bytes = input.into_bytes()?;
    let document = read_bytes(&bytes, &dialect, None)?;
    let check = reply_check(&dialect)?.without_gate();
    let mut conversion = Conversion {
        counter: Counter::new(&bytes),
        bytes: &bytes,
        syntax,
        dialect: both.for_syntax(syntax),
        tools: &tools,
        drops_ids: options.drop_ids,
    };
    let (draft, mut status) = conversion.draft(&document, check)?;
    let target = options.dialect.begun(conversion.dialect.clone());
    let misread = if document.syntax.is_none_or(|own| own == syntax) {
        None
    } else {
        draft.misread(&target)?
    };
    if let Some((line, column)) = misread {
        status = Status::Wrong;
        complain(&format!(
            "nothing is rewritten: line {line}, column {column} of the result would be read as a call or swallow one, and is text here"
        ));
        output.bytes(&bytes)?;
    } else {
        output.bytes(&draft.bytes)?;
    }
    output.flush()?;
    Ok(status)
}

struct Conversion<'a> {
    bytes: &'a [u8],
    counter: Counter<'a>,
    /// The syntax that is written.
    syntax: Syntax,
    dialect: Dialect,
    tools: &'a ToolSet,
    drops_ids: bool,
}

impl Conversion<'_> {
    fn draft(
        &mut self,
        document: &Document,
        mut check: ReplyCheck,
    ) -> Result<(Draft, Status), Failure> {
        let escaper = escaper(&self.dialect)?;
        let mut draft = Draft::default();
        let mut status = Status::Good;
        for segment in &document.segments {
            let source = self.bytes.get(segment.span().range()).unwrap_or_default();
            match segment {
                Segment::Reasoning { .. } => draft.text(source),
                Segment::Text { text, .. } => match &escaper {
                    // Only what holds a marker has to be written in another way.
                    Some(escaper) if escaper.escape(text) != *text => {
                        draft.text(escaper.escape(text).as_bytes());
                    }
                    Some(_) if !source.contains(&b'\\') => draft.text(source),
                    Some(_) => draft.text(text.as_bytes()),
                    None => draft.text(source),
                },
                Segment::Call(call) => {
                    let tool = self.tools.get(&call.name);
                    let may_run = check.may_run(call, tool, Stop::Natural);
                    if call.syntax == self.syntax {
                        draft.call(source);
                        continue;
                    }
                    let may_run = may_run.map(drop).map_err(|error| error.to_string());
                    match self.rewritten(call, may_run) {
                        Ok(text) => draft.call(text.trim_end_matches('\n').as_bytes()),
                        Err(reason) => {
                            status = Status::Wrong;
                            complain(&format!("{} stays as it is: {reason}", self.called(call)));
                            draft.text(source);
                        }
                    }
                }
            }
        }
        Ok((draft, status))
    }

    /// What messages call a call.
    fn called(&mut self, call: &ToolCall) -> String {
        let (line, column) = self.counter.position(call.span.start);
        format!(
            "the call of {} at line {line}, column {column}",
            call.name.escape_debug()
        )
    }

    /// A call in the syntax that is written.
    fn rewritten(
        &mut self,
        call: &ToolCall,
        may_run: Result<(), String>,
    ) -> Result<String, String> {
        if !call.is_closed() {
            // Closing it here would make a whole call of what may be half of one.
            return Err("it is not closed".to_owned());
        }
        let Some(tool) = self.tools.get(&call.name) else {
            may_run?;
            return Err(
                "its tool has no definition, which says how arguments are written (`--schema`)"
                    .to_owned(),
            );
        };
        may_run?;
        let arguments = bind(tool, call).map_err(|problems| sentences(&problems))?;
        match self.syntax {
            Syntax::Block => in_block(tool, &arguments, &self.dialect),
            Syntax::Emoji => {
                let lost = lost(call);
                if let Some(lost) = lost.as_ref().filter(|_| !self.drops_ids) {
                    return Err(format!(
                        "the emoji syntax cannot express {lost} (`--drop-ids` leaves that out)"
                    ));
                }
                let text = in_emoji(tool, &arguments, &self.dialect)?;
                if let Some(lost) = lost {
                    remark(&format!(
                        "{} is rewritten without {lost}",
                        self.called(call)
                    ));
                }
                Ok(text)
            }
        }
    }
}

/// What a block call has that the emoji syntax lacks.
fn lost(call: &ToolCall) -> Option<String> {
    let id = (!call.is_id_automatic).then(|| format!("its id `{}`", call.id));
    let dependencies = match call.dependencies.as_slice() {
        [] => None,
        [one] => Some(format!("its dependency on `{one}`")),
        several => Some(format!("its dependencies on `{}`", several.join("`, `"))),
    };
    match (id, dependencies) {
        (Some(id), Some(dependencies)) => Some(format!("{id} and {dependencies}")),
        (one, other) => one.or(other),
    }
}
