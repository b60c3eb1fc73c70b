//! `plaincall chat`: hold a conversation.

mod command;
mod lines;
mod save;

use std::pin::pin;
use std::time::Duration;

use clap::Args;
use tokio::time::sleep;

use crate::commands::chat::command::{Command, HELP};
use crate::commands::chat::lines::{Line, Lines};
use crate::commands::conversation::{
    Built, Ended, Setup, build, chosen, explained, play, report_grammar, warning,
};
use crate::environment::Environment;
use crate::options::{AgentOptions, Color, SessionOptions};
use crate::output::write_stderr;
use crate::runtime::block_on;
use crate::sanitize::sanitize;
use crate::settings::{Configuration, close_servers, report_notes};
use crate::status::{
    Failure, KEEP_FILES, Outcome, Status, print_error, print_note, report_removed_files,
};
use crate::terminal::call_line::status_word;
use crate::terminal::human::count;
use crate::terminal::interrupts::{Interrupt, Interrupts};

/// How long closing may take before a note is shown.
const CLOSING_NOTE_AFTER: Duration = Duration::from_millis(500);

/// Chat with a model, with tools.
///
/// Each line is a message. Pasted text stays one message, and a backslash at the end of a line continues it on the next
/// line. While the model answers, Ctrl-C stops the answer. At the prompt, Ctrl-D or Ctrl-C twice ends the program.
/// `/help` lists the commands: `/tools`, `/model`, `/mcp`, `/show`, `/save` and others.
///
/// Models, tools and rules come from the configuration and the options, as for `ask`. In a pipe, each line is a
/// message, only the answers go to standard output, and Ctrl-C ends the program.
///
/// Exit status: 0 on success; 1 if a message from a pipe got no answer; 2 for wrong usage or configuration; 130 after Ctrl-C in a
/// pipe, 143 after SIGTERM, 129 after the terminal was closed.
#[derive(Args, Debug)]
pub(crate) struct ChatOptions {
    /// Show the output of each tool. At most 20 lines.
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    session: SessionOptions,

    #[command(flatten)]
    agent: AgentOptions,
}

pub(crate) fn chat(options: &ChatOptions, color: Color) -> Outcome {
    let environment = Environment::read();
    let configuration = Configuration::of(&options.agent, &environment)?;
    block_on(conversation(options, color, configuration, &environment))
}

/// The step after a line.
enum Next {
    /// Read the next line. `is_answered` is false if a question got no answer or a command failed.
    Line { is_answered: bool },
    /// End the program.
    End(Option<Interrupt>),
}

struct Chat<'c> {
    built: Built,
    /// Whether the lines come from a terminal.
    is_typed: bool,
    options: &'c AgentOptions,
    configuration: &'c Configuration,
    environment: &'c Environment,
}

async fn conversation(
    options: &ChatOptions,
    color: Color,
    mut configuration: Configuration,
    environment: &Environment,
) -> Outcome {
    let setup = Setup {
        has_schema: false,
        agent: &options.agent,
        session: &options.session,
        is_record: false,
        is_verbose: options.verbose,
        color,
    };
    let (built, mut interrupts) = match build(&setup, &mut configuration, environment).await? {
        Ok(built) => built,
        Err(interrupt) => return Ok(Status::Interrupted(interrupt.status())),
    };
    let mut lines = Lines::open(configuration.state.as_deref())?;
    let is_typed = lines.is_typed();
    let mut chat = Chat {
        built,
        is_typed,
        options: &options.agent,
        configuration: &configuration,
        environment,
    };
    if is_typed {
        chat.greet();
    }
    let mut status = Status::Success;
    let interrupt = loop {
        let line = {
            // Nothing else writes to the terminal while a line is edited.
            let _quiet = chat.built.displays.prompter.pause().await;
            tokio::select! {
                line = lines.next() => line?,
                interrupt = interrupts.next() => {
                    // The line editor reads Ctrl-C as a key; this signal comes from another process.
                    if interrupt.is_from_keyboard() && is_typed {
                        continue;
                    }
                    break Some(interrupt);
                }
            }
        };
        let next = match line {
            Line::End => Next::End(None),
            Line::Text(text) => chat.line(&text, &mut interrupts).await,
        };
        match next {
            Next::Line { is_answered } if is_answered || is_typed => {}
            Next::Line { .. } => status = Status::Failed,
            Next::End(interrupt) => break interrupt,
        }
    };
    lines.close();
    let ended = Box::pin(chat.end(&mut interrupts)).await;
    match (interrupt, ended) {
        (Some(interrupt), _) => Ok(Status::Interrupted(interrupt.status())),
        (None, ended) => ended.map(|()| status),
    }
}

impl Chat<'_> {
    fn greet(&self) {
        let Built {
            conversation,
            model,
            ..
        } = &self.built;
        let tools = count(conversation.tools().len(), "tool");
        let resumed = match conversation.turns() {
            0 => String::new(),
            turns => format!(", continuing after {}", count(turns as usize, "turn")),
        };
        print_note(&format!(
            "{model}, {tools}{resumed}; /help for help, Ctrl-D to exit"
        ));
    }

    async fn line(&mut self, text: &str, interrupts: &mut Interrupts) -> Next {
        let next_line = Next::Line { is_answered: true };
        if text.trim().is_empty() {
            return next_line;
        }
        match Command::read(text) {
            None => return self.question(text, interrupts).await,
            Some(Err(message)) => {
                print_error(&message);
                return Next::Line { is_answered: false };
            }
            Some(Ok(Command::End)) => return Next::End(None),
            Some(Ok(Command::Help)) => write_stderr(format_args!("{HELP}")),
            Some(Ok(Command::Tools)) => self.tools(),
            Some(Ok(Command::Model(None))) => self.models(),
            Some(Ok(Command::Model(Some(name)))) => {
                if let Err(failure) = self.set_model(&name).await {
                    print_error(&failure.message());
                    return Next::Line { is_answered: false };
                }
            }
            Some(Ok(Command::Mcp(name))) => {
                if let Err(message) = self.servers(name.as_deref()).await {
                    print_error(&message);
                    return Next::Line { is_answered: false };
                }
            }
            Some(Ok(Command::Show(back))) => return self.show(back),
            Some(Ok(Command::Save(path))) => {
                match save::save(&path, &self.built.conversation.messages()) {
                    Ok(()) => print_note(&format!("saved to {}", path.display())),
                    Err(message) => {
                        print_error(&message);
                        return Next::Line { is_answered: false };
                    }
                }
            }
        }
        next_line
    }

    async fn question(&mut self, text: &str, interrupts: &mut Interrupts) -> Next {
        let is_typed = self.is_typed;
        let Built {
            conversation,
            displays,
            ..
        } = &mut self.built;
        match play(conversation.stream(text), displays, interrupts).await {
            Ended::Finished(Ok(answer), _) => {
                if let Some(warning) = warning(&answer) {
                    let _quiet = displays.prompter.pause().await;
                    print_note(&warning);
                }
                Next::Line { is_answered: true }
            }
            Ended::Finished(Err(error), interrupt) => {
                // Let pending output finish first.
                let _quiet = displays.prompter.pause().await;
                match interrupt {
                    // A conversation through a pipe has no prompt to return to.
                    Some(interrupt) if !interrupt.is_from_keyboard() || !is_typed => {
                        Next::End(Some(interrupt))
                    }
                    Some(_) => {
                        print_note("stopped");
                        Next::Line { is_answered: true }
                    }
                    None => {
                        print_error(&explained(&error, self.configuration));
                        Next::Line { is_answered: false }
                    }
                }
            }
            Ended::Aborted(interrupt)
                if is_typed && interrupt.is_from_keyboard() && !interrupt.is_urgent() =>
            {
                let _quiet = displays.prompter.pause().await;
                print_note("stopped; a running tool may need some time to exit");
                Next::Line { is_answered: true }
            }
            Ended::Aborted(interrupt) => Next::End(Some(interrupt)),
        }
    }

    /// Closes the conversation. Waits for tools that are still exiting, until a signal comes.
    async fn end(self, interrupts: &mut Interrupts) -> Result<(), Failure> {
        let Built {
            conversation,
            mut displays,
            servers,
            ..
        } = self.built;
        let written = displays.close().await;
        let closing = async {
            report_removed_files(conversation.close().await, KEEP_FILES);
            close_servers(servers).await;
        };
        let mut closing = pin!(closing);
        tokio::select! {
            () = &mut closing => {}
            () = sleep(CLOSING_NOTE_AFTER) => {
                print_note("waiting for stopped tools to exit; press Ctrl-C to kill them");
                tokio::select! {
                    () = closing => {}
                    // Dropping the runtime kills the processes that still run.
                    _ = interrupts.next() => {}
                }
            }
            _ = interrupts.next() => {}
        }
        written.map_or(Ok(()), Err)
    }

    fn tools(&self) {
        let toolbox = self.built.conversation.tools();
        if toolbox.is_empty() {
            print_note("there are no tools; add some with `--tools`, `--builtin` or `--mcp`");
            return;
        }
        for tool in toolbox.iter() {
            let spec = tool.spec();
            let about = spec.description.lines().next().unwrap_or_default();
            let line = format!("{} ({})  {about}", tool.name(), spec.effect.name());
            write_stderr(format_args!("{}\n", sanitize(line.trim_end())));
        }
    }

    /// Lists the MCP servers, or restarts one.
    async fn servers(&self, name: Option<&str>) -> Result<(), String> {
        let servers = &self.built.servers;
        if let Some(name) = name {
            let Some(all) = servers.iter().find(|all| all.names().any(|it| it == name)) else {
                return Err(format!("unknown MCP server `{name}`; `/mcp` lists them"));
            };
            all.restart(name).await?;
            print_note(&format!("restarted the MCP server `{name}`"));
            return Ok(());
        }
        let mut states = Vec::new();
        for servers in servers {
            for (name, tools, end) in servers.states().await {
                let end = end.unwrap_or_else(|| "is connected".to_owned());
                states.push(format!("{name}  {}, {end}", count(tools, "tool")));
            }
            report_notes(servers);
        }
        if states.is_empty() {
            print_note("there are no MCP servers; add some with `--mcp`");
        }
        for line in states {
            write_stderr(format_args!("{}\n", sanitize(&line)));
        }
        Ok(())
    }

    /// Prints a complete result.
    fn show(&self, back: usize) -> Next {
        let Some(result) = self.built.displays.result(back) else {
            print_error(
                "no such result; `/show` shows the last result, `/show 2` the one before it",
            );
            return Next::Line { is_answered: false };
        };
        write_stderr(format_args!(
            "{}  {}\n",
            sanitize(&result.name),
            status_word(result.status)
        ));
        for text in [&result.output, &result.error, &result.note]
            .into_iter()
            .flatten()
        {
            write_stderr(format_args!("{}\n", sanitize(text.trim_end_matches('\n'))));
        }
        Next::Line { is_answered: true }
    }

    fn models(&self) {
        print_note(&format!("current model: {}", self.built.model));
        let names = self.configuration.model_names();
        for name in names.filter(|name| *name != self.built.model) {
            write_stderr(format_args!("{}\n", sanitize(name)));
        }
    }

    async fn set_model(&mut self, name: &str) -> Result<(), Failure> {
        let chosen = chosen(Some(name), None, self.options, self.configuration)?;
        let ready = chosen.ready(self.environment)?;
        let conversation = &mut self.built.conversation;
        report_grammar(conversation.check_grammar(&ready.model).await)?;
        conversation.set_model(ready.model);
        conversation.set_limits(self.configuration.limits(&chosen.entry));
        self.built.model = ready.name;
        print_note(&format!(
            "switched to {}; the conversation keeps its syntax",
            self.built.model
        ));
        Ok(())
    }
}
