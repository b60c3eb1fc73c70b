//! The reference of the command line, as Markdown.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, Command};

const BEGINNING: &str = "\
# The command line

<!-- Written by `cargo xtask docs`. Do not edit; change the doc comments of the command. -->
";

/// The section after the list of commands.
const STATUSES: &str = "\
## Exit statuses

| status | meaning |
| --- | --- |
| 0 | success, even if the reader closed the output |
| 1 | the input has errors, a file could not be read, or a call was skipped; details on standard error |
| 2 | wrong usage or configuration; nothing was done |
| 124 | timeout |
| 130 | interrupted |

Results go to standard output, messages to standard error.
";

/// Returns the page: every command with its options.
pub(super) fn page() -> String {
    let root = plaincall_cli::command();
    let mut text = String::from(BEGINNING);
    let commands: Vec<(String, &Command)> = shown(&root)
        .flat_map(|command| {
            let name = command.get_name().to_owned();
            let below = shown(command).map({
                let name = name.clone();
                move |inner| (format!("{name} {}", inner.get_name()), inner)
            });
            std::iter::once((name, command)).chain(below)
        })
        .collect();
    paragraphs(&mut text, root.get_long_about().or(root.get_about()));
    text.push_str("\n| command | description |\n| --- | --- |\n");
    for (name, command) in &commands {
        let about = plain(command.get_about());
        let anchor = name.replace(' ', "-");
        push(
            &mut text,
            format_args!("| [`plaincall {name}`](#plaincall-{anchor}) | {about} |\n"),
        );
    }
    text.push_str("\nFor every command:\n\n");
    let global = |arg: &&Arg| arg.is_global_set() && !arg.is_hide_set();
    options(&mut text, root.get_arguments().filter(global));
    text.push_str(
        "- `-h`, `--help`: Print a summary (`-h`) or the full help (`--help`).\n- `-V`, `--version`: Print the version.\n\n",
    );
    text.push_str(STATUSES);
    for (name, command) in &commands {
        section(&mut text, name, command);
    }
    for group in groups(&commands) {
        push(
            &mut text,
            format_args!("\n## {} options\n\n", singular(group.heading)),
        );
        for (arg, names) in &group.options {
            let only = if names.len() < group.commands.len() {
                format!(" Only for {}.", names.join(", "))
            } else {
                String::new()
            };
            option(&mut text, arg, &only);
        }
    }
    text
}

/// The options under one heading, and the commands that have them.
struct Group<'a> {
    heading: &'a str,
    commands: Vec<String>,
    options: Vec<(&'a Arg, Vec<String>)>,
}

/// Returns the options that several commands share, by heading.
fn groups<'a>(commands: &[(String, &'a Command)]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (name, command) in commands {
        let name = format!("`{name}`");
        for arg in command.get_arguments().filter(|arg| is_shown(arg)) {
            let Some(heading) = arg.get_help_heading() else {
                continue;
            };
            let index = groups
                .iter()
                .position(|group| group.heading == heading)
                .unwrap_or_else(|| {
                    groups.push(Group {
                        heading,
                        commands: Vec::new(),
                        options: Vec::new(),
                    });
                    groups.len() - 1
                });
            let group = &mut groups[index];
            if group.commands.last() != Some(&name) {
                group.commands.push(name.clone());
            }
            let known = |(known, _): &&mut (&Arg, Vec<String>)| known.get_id() == arg.get_id();
            match group.options.iter_mut().find(known) {
                None => group.options.push((arg, vec![name.clone()])),
                Some((_, names)) => names.push(name.clone()),
            }
        }
    }
    groups
}

/// Returns whether an argument is listed for each command that has it.
fn is_shown(arg: &Arg) -> bool {
    let is_own = !matches!(arg.get_id().as_str(), "help" | "version");
    is_own && !arg.is_hide_set() && !arg.is_global_set()
}

/// Returns the subcommands of a command.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let commands = command.get_subcommands();
    commands.filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn section(text: &mut String, name: &str, command: &Command) {
    push(text, format_args!("\n## plaincall {name}\n\n"));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    push(text, format_args!("```text\n{}\n```\n", usage.trim()));
    paragraphs(text, command.get_long_about().or(command.get_about()));
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| is_shown(arg))
        .collect();
    let is_own = |arg: &&Arg| arg.get_help_heading().is_none();
    if arguments.iter().any(is_own) {
        text.push('\n');
    }
    options(text, arguments.iter().copied().filter(is_own));
    let mut headings: Vec<&str> = Vec::new();
    for heading in arguments.iter().filter_map(|arg| arg.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    let mut is_first = true;
    for heading in headings {
        let name = singular(heading).to_lowercase();
        let separator = if is_first { "\nSee also: " } else { ", " };
        push(
            text,
            format_args!("{separator}[{name} options](#{name}-options)"),
        );
        is_first = false;
    }
    if !is_first {
        text.push_str(".\n");
    }
    paragraphs(
        text,
        command.get_after_long_help().or(command.get_after_help()),
    );
}

/// The heading of options in the singular: "Limits" becomes "Limit".
fn singular(heading: &str) -> &str {
    heading.strip_suffix('s').unwrap_or(heading)
}

/// A list of arguments and options.
fn options<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    for arg in arguments {
        option(text, arg, "");
    }
}

fn option(text: &mut String, arg: &Arg, note: &str) {
    push(
        text,
        format_args!("- `{}`: {}{note}\n", written(arg), item(arg)),
    );
    let values: Vec<_> = arg.get_possible_values();
    let values = values.iter().filter(|_| arg.get_action().takes_values());
    for value in values.filter(|value| !value.is_hide_set()) {
        let help = plain(value.get_help());
        let colon = if help.is_empty() { "" } else { ": " };
        push(
            text,
            format_args!("  - `{}`{colon}{help}\n", value.get_name()),
        );
    }
}

/// Returns the notation of an argument.
fn written(arg: &Arg) -> String {
    let names: Vec<&str> = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(clap::builder::Str::as_str)
        .collect();
    let Some(long) = arg.get_long() else {
        return names.join(" ");
    };
    let short = arg.get_short().map(|short| format!("-{short}`, `"));
    let short = short.unwrap_or_default();
    let is_optional = arg
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    if is_optional && arg.get_action().takes_values() {
        format!("{short}--{long}[={}]", names.join(" "))
    } else if arg.get_action().takes_values() {
        format!("{short}--{long} {}", names.join(" "))
    } else {
        format!("{short}--{long}")
    }
}

fn item(arg: &Arg) -> String {
    let mut help = plain(arg.get_long_help().or(arg.get_help()));
    let end = if help.ends_with('.') { "" } else { "." };
    help.push_str(end);
    let defaults = arg.get_default_values();
    let is_shown = arg.get_action().takes_values() && !arg.is_hide_default_value_set();
    if let Some(default) = defaults.first().filter(|_| is_shown) {
        push(
            &mut help,
            format_args!(" Default: `{}`.", default.to_string_lossy()),
        );
    }
    help
}

/// Appends paragraphs on separate lines.
fn paragraphs(text: &mut String, help: Option<&StyledStr>) {
    let Some(help) = help else {
        return;
    };
    for paragraph in help.to_string().split("\n\n") {
        let paragraph = paragraph.trim();
        let end = if paragraph.ends_with(['.', ':']) {
            ""
        } else {
            "."
        };
        push(text, format_args!("\n{paragraph}{end}\n"));
    }
}

/// Help as one line.
fn plain(help: Option<&StyledStr>) -> String {
    let help = help.map(ToString::to_string).unwrap_or_default();
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writing to a string does not fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
}
