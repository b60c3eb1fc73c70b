//! The options of the measurement.

use std::net::SocketAddr;
use std::path::PathBuf;

const USAGE: &str = "\
bench-gateway [PART…] [OPTION…]

PARTs, all if none is named:
  rate      requests a second and time of a request, not streamed
  streams   what is added to streamed answers
  many      2,000 streams at once
  prefix    how much of a prompt is the same as in the request before, for each recorded client
  agents    processor time of requests of coding agents
  apis      processor time of streams in each API

OPTIONs:
  --gateway FILE        the `plaincall` that is measured; default: next to this program
  --model ADDRESS       a model's server that is served already, by `serve-model ADDRESS`
  --beside NAME=ADDRESS another gateway before that server
  --header LINE         a header line for all requests
  --seconds N           how long a turn takes
  --turns N             how often each is asked in turn
  --check               fail where a promise is not kept
";

/// The selected measurements and their settings.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) parts: Vec<String>,
    pub(crate) gateway: PathBuf,
    pub(crate) model: Option<SocketAddr>,
    pub(crate) beside: Vec<(String, SocketAddr)>,
    pub(crate) headers: String,
    pub(crate) seconds: f64,
    pub(crate) turns: usize,
    pub(crate) is_checked: bool,
}

impl Options {
    pub(crate) fn read(words: &[&str]) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut options = Self {
            parts: Vec::new(),
            gateway: own.with_file_name("plaincall"),
            model: None,
            beside: Vec::new(),
            headers: String::new(),
            seconds: 1.0,
            turns: 5,
            is_checked: false,
        };
        let wrong = |word: &str| format!("`{word}` is not understood\n\n{USAGE}");
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().ok_or_else(|| wrong(word));
            match *word {
                "rate" | "streams" | "many" | "prefix" | "agents" | "apis" => {
                    options.parts.push((*word).to_owned());
                }
                "--gateway" => options.gateway = value()?.into(),
                "--model" => {
                    let address = value()?;
                    options.model = Some(address.parse().map_err(|_| wrong(address))?);
                }
                "--beside" => {
                    let text = value()?;
                    let (name, address) = text.split_once('=').ok_or_else(|| wrong(text))?;
                    let address = address.parse().map_err(|_| wrong(text))?;
                    options.beside.push((name.to_owned(), address));
                }
                "--header" => {
                    options.headers.push_str(value()?);
                    options.headers.push_str("\r\n");
                }
                "--seconds" => {
                    let number = value()?;
                    options.seconds = number.parse().map_err(|_| wrong(number))?;
                }
                "--turns" => {
                    let number = value()?;
                    options.turns = number.parse().map_err(|_| wrong(number))?;
                }
                "--check" => options.is_checked = true,
                _ => return Err(wrong(word)),
            }
        }
        Ok(options)
    }

    /// Returns whether a part is selected.
    pub(crate) fn has(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|one| one == part)
    }
}
