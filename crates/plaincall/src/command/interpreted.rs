//! Arguments that a command passes to an interpreter as code: to a shell, `awk`, `python -c` and similar programs. The result
//! is a hint, not a proof: a command line does not show what a program does with its arguments.

use plaincall_tool::{ParameterKind, ToolSpec};

use crate::command::template::Piece;
use crate::rules::{command_words, expanded_commands, without_prefix};

/// A parameter that an interpreter runs as code, or as a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interpreted {
    /// The name of the parameter.
    pub parameter: String,
    /// The interpreter, such as `sh -c`.
    pub interpreter: &'static str,
    /// Whether the parameter is the whole program of a shell.
    pub is_command_line: bool,
}

/// The first of the private-use characters that mark placeholders in a command line.
const FIRST: u32 = 0x000f_0000;

/// How many words of a wrapper are checked as the beginning of the command that it runs.
const WRAPPED: usize = 64;

/// Interpreters whose program follows an option: names, options, and the form for display.
const BY_OPTION: [(&str, &str, &str); 9] = [
    ("sh bash dash ash zsh ksh fish", "c", "sh -c"),
    (
        "python python2 python3 pypy pypy3 py pythonw",
        "c",
        "python -c",
    ),
    ("perl", "eE", "perl -e"),
    ("ruby", "e", "ruby -e"),
    ("node deno bun", "ep", "node -e"),
    ("php", "r", "php -r"),
    ("lua rscript osascript", "e", "-e"),
    ("sed gsed", "e", "sed"),
    ("psql", "c", "psql -c"),
];

const SSH_VALUES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// Returns the parameters that become code in a script or in the elements of a command.
pub(crate) fn interpreted(spec: &ToolSpec, line: Source<'_>) -> Vec<Interpreted> {
    let mut names = Vec::new();
    let mut mark = |pieces: &[Piece]| -> String {
        let pieces = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Argument(name) => {
                let place = names
                    .iter()
                    .position(|known| known == name)
                    .unwrap_or_else(|| {
                        names.push(name.clone());
                        names.len() - 1
                    });
                sign(place).to_string()
            }
            Piece::CurrentDirectory | Piece::RunDirectory | Piece::ToolsDirectory => "/".to_owned(),
        });
        pieces.collect()
    };
    let (commands, script) = match line {
        Source::Elements(elements) => {
            let words: Vec<String> = elements.iter().map(|element| mark(element)).collect();
            (expanded_commands(&[words]), String::new())
        }
        Source::Script(pieces) => {
            let script = mark(pieces);
            (expanded_commands(&command_words(&script)), script)
        }
    };
    let mut found: Vec<Interpreted> = Vec::new();
    let mut add = |text: &str, interpreter: &'static str, is_shell: bool| {
        for (place, name) in names.iter().enumerate() {
            let sign = sign(place);
            let is_known = found.iter().any(|known| known.parameter == *name);
            if text.contains(sign) && !is_known && is_free(spec, name) {
                found.push(Interpreted {
                    parameter: name.clone(),
                    interpreter,
                    is_command_line: is_shell && text.chars().eq([sign]),
                });
            }
        }
    };
    for found in &commands {
        let places = if found.may_run_others { WRAPPED } else { 1 };
        for place in 0..places.min(found.words.len()) {
            programs(found.words.get(place..).unwrap_or_default(), &mut add);
        }
    }
    for words in command_words(&script) {
        if let Some(program) = without_prefix(&words).first() {
            // An argument can name any program.
            add(program, "the shell, as a command", false);
        }
    }
    for line in script.lines() {
        if let Some((before, _)) = line.split_once("xargs") {
            add(before, "xargs", false);
        }
    }
    found
}

#[derive(Clone, Copy)]
pub(crate) enum Source<'s> {
    Elements(&'s [Vec<Piece>]),
    Script(&'s [Piece]),
}

fn sign(place: usize) -> char {
    let code = u32::try_from(place)
        .ok()
        .and_then(|place| char::from_u32(FIRST + place));
    code.unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns whether a parameter accepts any text.
fn is_free(spec: &ToolSpec, name: &str) -> bool {
    let document = spec.schema().document();
    let schema = document.get("properties").and_then(|all| all.get(name));
    let is_listed =
        schema.is_some_and(|schema| schema.get("enum").or(schema.get("const")).is_some());
    let kind = spec.get(name).map(|parameter| parameter.kind);
    matches!(kind, Some(ParameterKind::String | ParameterKind::Any)) && !is_listed
}

/// Calls `show` with each text that this command runs as code.
fn programs(words: &[String], show: &mut impl FnMut(&str, &'static str, bool)) {
    let Some((program, rest)) = words.split_first() else {
        return;
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    // Names of Windows have no case, and may have their extension.
    let name = &*name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let mut interpreters = BY_OPTION.iter();
    let is_named = |names: &str| names.split(' ').any(|known| known == name);
    if let Some((_, options, interpreter)) = interpreters.find(|(names, ..)| is_named(names)) {
        let is_shell = *interpreter == "sh -c";
        for (place, word) in rest.iter().enumerate() {
            let is_short = word.starts_with('-') && !word.starts_with("--");
            let long = ["--eval", "--print", "--expression", "--command"];
            let is_long = long.contains(&word.as_str());
            if is_long || is_short && word.contains(|c| options.contains(c)) {
                if let Some(text) = rest.get(place + 1) {
                    show(text, interpreter, is_shell);
                }
                return;
            }
            if let Some((_, text)) = word.split_once('=').filter(|_| word.starts_with("--e")) {
                show(text, interpreter, false);
            }
        }
    }
    let has_file = rest
        .iter()
        .any(|word| word == "-f" || word.starts_with("--file"));
    let operand = |with_value| operands(rest, with_value).take(1).collect();
    let (texts, interpreter, may_be_all): (Vec<&String>, _, _) = match name {
        "eval" => (rest.iter().collect(), "eval", true),
        "trap" => (rest.iter().take(1).collect(), "trap", false),
        "awk" | "gawk" | "mawk" | "nawk" if !has_file => (operand("Fvf"), "awk", false),
        "sed" | "gsed" if !has_file => (operand("flE"), "sed", false),
        "ssh" => (operands(rest, SSH_VALUES).skip(1).collect(), "ssh", true),
        "xargs" => (operand("adEIiLlnPs"), "xargs", false),
        // A script may expand its arguments into code.
        "cmd" => (rest.iter().collect(), "cmd /c", false),
        _ if matches!(name.rsplit_once('.'), Some((_, "bat" | "cmd"))) => {
            (rest.iter().collect(), "cmd /c", false)
        }
        "powershell" | "pwsh" if !runs_script(rest) => {
            (rest.iter().collect(), "powershell -Command", false)
        }
        _ => return,
    };
    for text in &texts {
        show(text, interpreter, may_be_all && texts.len() == 1);
    }
}

/// Returns whether `PowerShell` runs a script, with the other words as its arguments. Options may be abbreviated.
fn runs_script(words: &[String]) -> bool {
    words.iter().any(|word| {
        let option = word.strip_prefix(['-', '/']).unwrap_or_default();
        !option.is_empty() && "file".starts_with(&option.to_ascii_lowercase())
    })
}

/// Returns the words that are neither options nor values of options.
fn operands<'w>(words: &'w [String], with_value: &str) -> impl Iterator<Item = &'w String> {
    let mut is_value = false;
    let mut is_over = false;
    words.iter().filter(move |word| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        if is_over {
            return true;
        }
        match word.strip_prefix('-') {
            Some("-") => is_over = true,
            Some(option) if !option.is_empty() => {
                let mut letters = option.chars();
                is_value = letters.next().is_some_and(|c| with_value.contains(c))
                    && letters.next().is_none();
            }
            _ => {
                is_over = true;
                return true;
            }
        }
        false
    })
}
