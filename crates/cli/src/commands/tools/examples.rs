//! `plaincall tools examples`: let a model write few-shot examples of tools.

use clap::Args;
use plaincall::prompt::few_shot::{FewShotExample, few_shot};
use plaincall::tool::ToolSpec;
use plaincall::{Dialect, Tool};
use plaincall_agent::Agent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commands::conversation::failure;
use crate::commands::tools::SourceOptions;
use crate::environment::Environment;
use crate::options::Color;
use crate::output::Output;
use crate::runtime::block_on;
use crate::settings::{Configuration, Ready, ToolSetup};
use crate::status::{Failure, Outcome, Status, print_note};
use crate::terminal::interrupts::Interrupts;

/// Let a model write few-shot examples of tools: questions, calls, results and answers.
///
/// Small models call tools more often after examples (docs/local-models.md). A larger model can write them: it gets the definition of
/// one tool at a time, and is asked for three questions as people ask them. Examples whose calls are not valid are omitted. The output is
/// TOML for a `tools.toml`. Read and edit it: the small model imitates what is in it. No tool is run.
///
/// Exit status: 0 if there are examples of each tool; 1 otherwise; 2 for wrong usage or configuration; 130 after Ctrl-C.
#[derive(Args, Debug)]
pub(crate) struct ExamplesOptions {
    /// The model that writes the examples: a name as in `plaincall ask`. Default: `model` in the configuration.
    #[arg(long, short, value_name = "NAME")]
    model: Option<String>,

    #[command(flatten)]
    sources: SourceOptions,
}

/// The answer of the model.
#[derive(Deserialize, JsonSchema)]
struct Written {
    examples: Vec<FewShotExample>,
}

/// An example in a `tools.toml`, without its arguments.
#[derive(Serialize)]
struct Texts<'e> {
    question: &'e str,
    result: &'e str,
    answer: &'e str,
}

pub(super) fn examples(options: &ExamplesOptions, color: Color) -> Outcome {
    let environment = Environment::read();
    let mut output = Output::new(color);
    block_on(async {
        let mut interrupts = Interrupts::new()?;
        tokio::select! {
            outcome = write_examples(options, &environment, &mut output) => outcome,
            interrupt = interrupts.next() => Ok(Status::Interrupted(interrupt.status())),
        }
    })
}

async fn write_examples(
    options: &ExamplesOptions,
    environment: &Environment,
    output: &mut Output,
) -> Outcome {
    let configuration: Configuration = options.sources.configuration(environment)?;
    let chosen = configuration.chosen(options.model.as_deref())?;
    let Ready { model, .. } = chosen.ready(environment)?;
    let ToolSetup { toolbox, .. } = options.sources.tool_setup(environment).await?;
    let mut status = Status::Success;
    let own = Tool::read_result();
    let specs = toolbox.iter().map(Tool::spec);
    for tool in specs.filter(|tool| *tool != own.spec()) {
        let agent = Agent::builder(model.clone()).build();
        let agent = agent.map_err(|error| failure(&error))?;
        let asked = agent.ask_as::<Written>(question(tool)).await;
        let written = asked.map_err(|error| failure(&error))?;
        let kept = valid(written.examples, tool)?;
        if kept.is_empty() {
            print_note(&format!("no example of `{}` is valid", tool.name));
            status = Status::Failed;
        }
        for example in kept {
            let name = toml::Value::from(tool.name.as_str());
            output.text(format_args!(
                "[[tools.{name}.examples]]\n{}\n",
                table(&example)
            ))?;
        }
        output.flush()?;
    }
    Ok(status)
}

/// Describes the examples of a tool.
fn question(tool: &ToolSpec) -> String {
    let definition = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema().document(),
    });
    format!(
        "Write three examples of conversations in which an assistant uses the tool below. Each has\n\
         - `question`: what a person types. Natural words, as in a chat, without the name of the tool or of its parameters. Each about another situation, with names, places and numbers of its own.\n\
         - `tool`: always \"{}\".\n\
         - `arguments`: the arguments of the call. Each value follows from the question.\n\
         - `result`: what the tool returns: short, and as a program would print it.\n\
         - `answer`: the answer of the assistant, in one sentence, with the facts of the result.\n\n\
         {definition}\n",
        tool.name
    )
}

/// Returns the valid examples, and reports the others.
fn valid(
    mut written: Vec<FewShotExample>,
    tool: &ToolSpec,
) -> Result<Vec<FewShotExample>, Failure> {
    for example in &mut written {
        example.tool = Some(tool.name.clone());
    }
    let count = written.len();
    for dialect in [Dialect::block(), Dialect::emoji()] {
        let shown = few_shot(&written, &[tool], &dialect.escaped(), count);
        let shown = shown.map_err(|error| Failure::Configuration(error.to_string()))?;
        for invalid in shown.invalid.iter().rev() {
            print_note(&format!("`{}`: {invalid}; it is omitted", tool.name));
            written.remove(invalid.index);
        }
    }
    Ok(written)
}

/// The keys of an example. The arguments are on one line.
fn table(example: &FewShotExample) -> String {
    let texts = Texts {
        question: &example.question,
        result: &example.result,
        answer: &example.answer,
    };
    let texts = toml::to_string(&texts).unwrap_or_default();
    let arguments = toml::Table::try_from(&example.arguments).unwrap_or_default();
    format!("{texts}arguments = {}\n", toml::Value::Table(arguments))
}
