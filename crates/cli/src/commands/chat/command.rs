//! The slash commands of a conversation, such as `/help`.

use std::path::PathBuf;

use plaincall_names::nearest_name;

/// The text of `/help`.
pub(super) const HELP: &str = "\
/help          show this help
/tools         list the tools and their effects
/model         show the model, and list those in the configuration
/model NAME    switch to another model
/mcp           list the MCP servers
/mcp NAME      restart an MCP server
/show [N]      show the result of the last call, or of the Nth from the end
/save FILE     save the conversation as text, or as JSON if FILE ends with .json
/exit          exit (or press Ctrl-D)
End a line with \\ to continue it. Ctrl-C stops an answer.
";

const NAMES: [&str; 7] = ["help", "tools", "model", "mcp", "show", "save", "exit"];

/// A slash command.
pub(super) enum Command {
    Help,
    Tools,
    Model(Option<String>),
    /// The server to restart.
    Mcp(Option<String>),
    /// The number of the result, counted from the last, which is 1.
    Show(usize),
    Save(PathBuf),
    End,
}

impl Command {
    /// Parses a command. Returns an error message for an invalid command, and none if the line is a question.
    pub(super) fn read(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = name.strip_prefix('/')?;
        // A path at the beginning of a question is not a command.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        let rest = rest.trim();
        let word = || (!rest.is_empty()).then(|| rest.to_owned());
        let alone = |command: Self| {
            if rest.is_empty() {
                Ok(command)
            } else {
                Err(format!("`/{name}` takes no arguments"))
            }
        };
        Some(match name {
            "help" => alone(Self::Help),
            "tools" => alone(Self::Tools),
            "exit" | "quit" => alone(Self::End),
            "model" => Ok(Self::Model(word())),
            "mcp" => Ok(Self::Mcp(word())),
            "show" if rest.is_empty() => Ok(Self::Show(1)),
            "show" => match rest.parse() {
                Ok(back @ 1..) => Ok(Self::Show(back)),
                _ => Err("expected a number: `/show 2` shows the second to last result".to_owned()),
            },
            "save" if rest.is_empty() => {
                Err("expected a file name, such as `/save chat.txt`".to_owned())
            }
            "save" => Ok(Self::Save(PathBuf::from(rest))),
            _ => Err(match nearest_name(name, NAMES) {
                Some(near) => format!("unknown command `/{name}`; did you mean `/{near}`?"),
                None => format!("unknown command `/{name}`; see `/help`"),
            }),
        })
    }
}
