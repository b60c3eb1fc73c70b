//! The command line.

use crate::table::size_title;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Measures the streaming parser and prints one table.

cargo run --release -p plaincall-bench -- [OPTIONS]

  --quick         smaller payloads and fewer samples: a few seconds
  --check         print whether each promise is kept, and exit with
                  status 1 if one is not
  --payload NAME  only this payload: words, prose, value, tiny, heavy, emoji;
                  or only the values of growing length: lengths
  --chunk SIZE    only this chunk size: whole, 65536, 4096, 64, 4
  --help          this text

Exit status: 0 all is well, 1 something was lost or too slow, 2 wrong usage.
";

/// The requested measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) quick: bool,
    pub(crate) check: bool,
    pub(crate) help: bool,
    pub(crate) payload: Option<String>,
    /// The size as shown in the table.
    pub(crate) chunk: Option<String>,
}

impl Options {
    /// Returns whether the payload or section with this name is selected.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.payload.as_deref().is_none_or(|wanted| wanted == name)
    }

    /// Returns whether chunks of this size are selected.
    pub(crate) fn wants_size(&self, size: Option<usize>) -> bool {
        let wanted = self.chunk.as_deref();
        wanted.is_none_or(|wanted| wanted == size_title(size))
    }

    /// Parses the arguments. An error is a sentence about the argument.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--check" => options.check = true,
                "--help" | "-h" => options.help = true,
                "--payload" => {
                    options.payload = Some(one_of(&argument, arguments.next(), &PAYLOADS)?);
                }
                "--chunk" => options.chunk = Some(one_of(&argument, arguments.next(), &CHUNKS)?),
                _ => {
                    return Err(format!(
                        "there is no option {argument:?}; --help lists them"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// The name of the section with values of growing length.
pub(crate) const LENGTHS: &str = "lengths";

const PAYLOADS: [&str; 7] = ["words", "prose", "value", "tiny", "heavy", "emoji", LENGTHS];
const CHUNKS: [&str; 5] = ["whole", "65536", "4096", "64", "4"];

fn one_of(option: &str, value: Option<String>, allowed: &[&str]) -> Result<String, String> {
    let list = allowed.join(", ");
    match value {
        Some(value) if allowed.contains(&value.as_str()) => Ok(value),
        Some(value) => Err(format!("{option} takes one of {list}, not {value:?}")),
        None => Err(format!("{option} needs a value: one of {list}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNKS, LENGTHS, Options, PAYLOADS};
    use crate::chunks::SIZES;
    use crate::payload;
    use crate::replies;
    use crate::table::size_title;

    fn check(line: &str, expected: &Result<Options, &str>) {
        let found = Options::parse(line.split_whitespace().map(str::to_owned));
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(&found, expected),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, _) => panic!("{line}: {found:?}"),
        }
    }

    #[test]
    fn options_are_read() {
        check("", &Ok(Options::default()));
        let both = Options {
            quick: true,
            check: true,
            ..Options::default()
        };
        check("--check --quick", &Ok(both));
        let one = Options {
            payload: Some("tiny".to_owned()),
            chunk: Some("4".to_owned()),
            ..Options::default()
        };
        check("--payload tiny --chunk 4", &Ok(one));
        check("--payload all", &Err("not \"all\""));
        check("--chunk", &Err("needs a value"));
        check("fast", &Err("no option \"fast\""));
    }

    #[test]
    fn every_choice_exists() {
        let sizes = SIZES.into_iter().chain(replies::SIZES);
        for name in sizes.map(size_title) {
            assert!(CHUNKS.contains(&name.as_str()), "{name}");
        }
        let names: Vec<&str> = payload::all(true)
            .iter()
            .map(|payload| payload.name)
            .chain([LENGTHS])
            .collect();
        assert_eq!(names, PAYLOADS);
    }
}
