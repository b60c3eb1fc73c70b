//! Shell command lines: the words of a simple command, and all commands that a text may contain.
//!
//! There are two parsers. [`simple_command`] accepts only texts that every POSIX shell parses in the same way, so its result
//! is exactly what runs. [`command_words`] accepts every text and splits it wherever a shell may begin a command, so it finds
//! at least every command that is visible in the text.

use std::mem::take;

use super::pattern::Pattern;
use super::spelling::{self, Fit};

/// The maximum depth of scripts inside scripts: `sh -c "sh -c 'rm x'"`.
const DEEPEST: usize = 4;

/// Words that are shell syntax where a command may begin.
const RESERVED: [&str; 20] = [
    "!", "{", "}", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while",
];

/// Commands that run the command in their arguments. `time` is a reserved word in some shells.
const WRAPPERS: &str = "
    . ash bash builtin busybox chroot command dash doas entr env eval exec fd find fish flock
    ionice ksh ltrace nice nohup nsenter parallel runuser script setpriv setsid sh source ssh
    stdbuf strace su sudo systemd-run taskset time timeout toybox trap unbuffer unshare watch
    xargs zsh
";

/// Matches a command line against a pattern (`spec/running.md`, "Command lines").
pub(super) fn fit(pattern: &Pattern, text: &str) -> Fit {
    let words: Vec<&str> = pattern.as_str().split_whitespace().collect();
    let (first_words, is_open) = match words.split_last() {
        Some((&("*" | "**"), before)) => (before, true),
        _ => (words.as_slice(), false),
    };
    if simple_command(text).is_some_and(|found| matches_words(first_words, is_open, &found)) {
        Fit::Yes
    } else if spelling::fit(pattern, text) > Fit::No || may_contain(first_words, text) {
        Fit::Perhaps
    } else {
        Fit::No
    }
}

/// Returns whether each word matches its pattern. An open pattern allows further words.
fn matches_words(patterns: &[&str], is_open: bool, words: &[String]) -> bool {
    let has_count = if is_open {
        words.len() >= patterns.len()
    } else {
        words.len() == patterns.len()
    };
    has_count
        && patterns
            .iter()
            .zip(words)
            .all(|(pattern, word)| spelling::fit(&Pattern::new(*pattern), word) == Fit::Yes)
}

/// Returns whether a command in the text has these words in this order, the first as its program. Other words may be between
/// them, and a wildcard also matches `/`.
fn may_contain(patterns: &[&str], text: &str) -> bool {
    let patterns = patterns.iter().map(|pattern| pattern.replace('*', "**"));
    let patterns: Vec<Pattern> = patterns.map(Pattern::new).collect();
    let Some((program, rest)) = patterns.split_first() else {
        // The pattern is a single `*`, which matches any command.
        return true;
    };
    let fits = |pattern: &Pattern, word: &str| spelling::fit(pattern, word) > Fit::No;
    let is_program = |word: &String| fits(program, word) || fits(program, name_of(word));
    expanded_commands(&command_words(text)).iter().any(|found| {
        // The words after the first possible program include those after a later one.
        let place = if found.may_run_others {
            found.words.iter().position(is_program)
        } else {
            found
                .words
                .first()
                .filter(|word| is_program(word))
                .map(|_| 0)
        };
        place.is_some_and(|place| {
            let mut others = found.words.iter().skip(place + 1);
            rest.iter()
                .all(|pattern| others.any(|word| fits(pattern, word)))
        })
    })
}

fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns the words of a text that is exactly one simple command, without operators, expansions, substitutions,
/// redirections, assignments and comments. Returns `None` if it is not certain.
pub(super) fn simple_command(text: &str) -> Option<Vec<String>> {
    let text = text.trim_matches([' ', '\t', '\n']);
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut before = ' ';
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let quoted = rest.as_str();
                let (inside, behind) = quoted.split_once('\'')?;
                word.get_or_insert_default().push_str(plain(inside)?);
                rest = behind.chars();
            }
            '"' => {
                let quoted = rest.as_str();
                let (inside, behind) = quoted.split_once('"')?;
                if inside.contains(['$', '`', '\\']) {
                    return None;
                }
                word.get_or_insert_default().push_str(plain(inside)?);
                rest = behind.chars();
            }
            '#' | '=' if word.is_none() => return None,
            '~' if word.is_none() || matches!(before, ':' | '=') => return None,
            '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '*' | '?' | '['
            | ']' | '{' | '}' => return None,
            c if c.is_control() || c.is_whitespace() => return None,
            c => word.get_or_insert_default().push(c),
        }
        before = c;
    }
    words.extend(word);
    let program = words.first()?;
    let is_program = !program.is_empty()
        && program
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@'))
        && !RESERVED.contains(&program.as_str())
        && program != "time";
    is_program.then_some(words)
}

/// Returns a quoted text if shells and terminals treat it alike.
fn plain(text: &str) -> Option<&str> {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    (!text.contains(is_odd)).then_some(text)
}

/// Returns the commands of a text, each as its unquoted words.
pub(crate) fn command_words(text: &str) -> Vec<Vec<String>> {
    let mut lexer = Lexer::default();
    lexer.read(text);
    lexer.commands
}

/// A command that a text may contain.
pub(crate) struct Expanded {
    /// Its unquoted words, without leading assignments and reserved words.
    pub(crate) words: Vec<String>,
    /// Whether the program is a wrapper: it runs another command, which may begin at any of its words.
    pub(crate) may_run_others: bool,
}

/// Returns these commands and those in the scripts that they run.
pub(crate) fn expanded_commands(commands: &[Vec<String>]) -> Vec<Expanded> {
    let mut found = Vec::new();
    add_expanded(commands, 0, &mut found);
    found
}

fn add_expanded(commands: &[Vec<String>], depth: usize, found: &mut Vec<Expanded>) {
    for words in commands {
        let words = without_prefix(words);
        let Some((program, rest)) = words.split_first() else {
            continue;
        };
        let may_run_others = WRAPPERS
            .split_whitespace()
            .any(|wrapper| wrapper == name_of(program));
        found.push(Expanded {
            words: words.to_vec(),
            may_run_others,
        });
        if !may_run_others || depth == DEEPEST {
            continue;
        }
        for word in rest {
            if word.contains(|c: char| c.is_whitespace() || ";&|(`".contains(c)) {
                add_expanded(&command_words(word), depth + 1, found);
            }
        }
    }
}

pub(crate) fn without_prefix(words: &[String]) -> &[String] {
    let is_program = |word: &String| !is_assignment(word) && !RESERVED.contains(&word.as_str());
    let first = words.iter().position(is_program).unwrap_or(words.len());
    words.get(first..).unwrap_or_default()
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '[' | ']'))
}

#[derive(Default)]
struct Lexer {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// The open substitutions: the closing character of each, and whether it is between double quotes.
    open: Vec<(char, bool)>,
    /// Whether the next word is the file of a redirection.
    is_target: bool,
}

impl Lexer {
    fn read(&mut self, text: &str) {
        let mut is_quoted = false;
        let mut braces = 0_usize;
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\\' => match rest.next() {
                    Some('\n') | None => {}
                    Some(next) if is_quoted && !"$`\"\\".contains(next) => {
                        self.push(c);
                        self.push(next);
                    }
                    Some(next) => self.push(next),
                },
                '"' => {
                    is_quoted = !is_quoted;
                    self.word.get_or_insert_default();
                }
                '`' => {
                    let opened = self.open.pop_if(|(close, _)| *close == '`');
                    if opened.is_none() {
                        self.open.push(('`', is_quoted));
                    }
                    is_quoted = opened.is_some_and(|(_, before)| before);
                    self.end_command();
                }
                '$' if rest.next_if_eq(&'(').is_some() => {
                    self.open.push((')', take(&mut is_quoted)));
                    self.end_command();
                }
                '$' => match expansion(&mut rest) {
                    Expansion::Blank => self.end_word(),
                    Expansion::Quote => {}
                    Expansion::Other => self.push(c),
                },
                c if is_quoted => self.push(c),
                '\'' => {
                    self.word.get_or_insert_default();
                    let quoted = rest.by_ref().take_while(|c| *c != '\'');
                    let quoted: String = quoted.collect();
                    quoted.chars().for_each(|c| self.push(c));
                }
                '(' => {
                    self.open.push((')', false));
                    self.end_command();
                }
                ')' => {
                    let opened = self.open.pop_if(|(close, _)| *close == ')');
                    is_quoted = opened.is_some_and(|(_, before)| before);
                    self.end_command();
                }
                '#' if self.word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
                '\n' | ';' | '&' | '|' => self.end_command(),
                '<' | '>' => {
                    // A number before it is the redirected file descriptor.
                    self.word
                        .take_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
                    self.end_word();
                    rest.next_if(|c| matches!(c, '&' | '|'));
                    self.is_target = true;
                }
                '{' if rest.peek().is_some_and(|c| !c.is_whitespace()) => {
                    braces += 1;
                    self.end_word();
                }
                ',' | '}' if braces > 0 => {
                    braces -= usize::from(c == '}');
                    self.end_word();
                }
                c if c.is_whitespace() || c.is_control() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_command();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !take(&mut self.is_target)
        {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_target = false;
        if !self.words.is_empty() {
            self.commands.push(take(&mut self.words));
        }
    }
}

/// The kind of text after a `$`.
enum Expansion {
    /// `$IFS`: blanks.
    Blank,
    /// A quote with its own syntax: `$'…'`.
    Quote,
    Other,
}

fn expansion(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Expansion {
    if matches!(rest.peek(), Some('\'' | '"')) {
        return Expansion::Quote;
    }
    let mut ahead = rest.clone();
    let is_braced = ahead.next_if_eq(&'{').is_some();
    let name: String = std::iter::from_fn(|| ahead.next_if(char::is_ascii_alphanumeric)).collect();
    if name != "IFS" {
        return Expansion::Other;
    }
    if is_braced {
        // Includes operators: `${IFS%?}`.
        while ahead.next().is_some_and(|c| c != '}') {}
    }
    *rest = ahead;
    Expansion::Blank
}
