//! What can be said to the program in a conversation, and not to the model.

use std::path::PathBuf;

use plaincall_call::names::nearest_name;

/// What `/help` prints.
pub(super) const HELP: &str = "\
/help          this list
/tools         the tools, and what they may do
/model         the model, and those of the configuration
/model NAME    another model from now on
/show [N]      what the last tool returned, or the Nth from the last
/save FILE     the conversation as text, or as JSON messages if FILE ends with .json
/exit          end (so does Ctrl-D)
A line that ends with \\ goes on in the next. Ctrl-C stops an answer.
";

const NAMES: [&str; 6] = ["help", "tools", "model", "show", "save", "exit"];

/// A command.
pub(super) enum Command {
    Help,
    Tools,
    Model(Option<String>),
    /// Which result, counted from the last one, which is 1.
    Show(usize),
    Save(PathBuf),
    End,
}

impl Command {
    /// The command that the line is, what is wrong with it, or nothing if it is a question.
    pub(super) fn read(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = name.strip_prefix('/')?;
        // A path at the beginning of a question is none.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        let rest = rest.trim();
        let alone = |command: Self| {
            if rest.is_empty() {
                Ok(command)
            } else {
                Err(format!("`/{name}` stands alone on its line"))
            }
        };
        Some(match name {
            "help" => alone(Self::Help),
            "tools" => alone(Self::Tools),
            "exit" | "quit" => alone(Self::End),
            "model" => Ok(Self::Model((!rest.is_empty()).then(|| rest.to_owned()))),
            "show" if rest.is_empty() => Ok(Self::Show(1)),
            "show" => match rest.parse() {
                Ok(back @ 1..) => Ok(Self::Show(back)),
                _ => Err(
                    "write a number behind it: `/show 2` shows the result before the last"
                        .to_owned(),
                ),
            },
            "save" if rest.is_empty() => Err("write a file behind it: `/save talk.txt`".to_owned()),
            "save" => Ok(Self::Save(PathBuf::from(rest))),
            _ => Err(match nearest_name(name, NAMES) {
                Some(near) => format!("there is no command `/{name}`; did you mean `/{near}`?"),
                None => format!("there is no command `/{name}`; `/help` lists them"),
            }),
        })
    }
}
