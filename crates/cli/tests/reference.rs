//! The reference in `docs/` describes the command.

mod command_line;
mod measured;
mod shells;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use snapbox::{Data, assert_data_eq};

/// The highest number of commands without subcommands.
const MOST_COMMANDS: usize = 22;

/// The highest number of options, and of places where an option can be used.
const MOST_OPTIONS: (usize, usize) = (73, 150);

/// With `SNAPSHOTS=overwrite` it writes the page instead of comparing it.
fn check(page: &str, text: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let path = Path::new(folder).join(page);
    assert_data_eq!(text, Data::read_from(&path, None).raw());
}

#[test]
fn reference_is_up_to_date() {
    check("command-line.md", &command_line::page());
}

/// The example of the page is valid by the schema, and the schema is valid.
#[test]
fn the_example_of_the_configuration_fits_its_schema() {
    let page = plaincall_config::settings::reference();
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let schema = jsonschema::validator_for(&plaincall_config::settings::schema()).unwrap();
    let check = |text: &str, is_right: bool| {
        let value: serde_json::Value = toml::from_str(text).unwrap();
        assert_eq!(schema.is_valid(&value), is_right, "{text}");
    };
    check(example, true);
    check("[models.a]\nurl = 'http://a'\nreasoning = false", true);
    check("[models.a]\nurl = 'http://a'\nreasoning = ['<a>']", false);
    check("[limits]\ntime = '10m'\nturns = 1", true);
    check("[limits]\nturns = 0", false);
    check("[limits]\ntime = 'soon'", false);
    check("modl = 'a'", false);
}

#[test]
fn configuration_is_up_to_date() {
    check("configuration.md", &plaincall_config::settings::reference());
}

/// The types of both packages have the keys of a table `[models.NAME]`, and no others.
#[test]
fn the_packages_have_every_key_of_a_model() {
    let schema = plaincall_config::settings::schema();
    let keys = &schema["properties"]["models"]["additionalProperties"]["properties"];
    let keys: BTreeSet<String> = keys.as_object().unwrap().keys().cloned().collect();
    for (file, begin, end, mark) in [
        (
            "python/plaincall/_gateway.py",
            "class ModelSettings(",
            "\n\n\n",
            ": ",
        ),
        (
            "typescript/src/openai.ts",
            "interface FetchSettings {",
            "\n}\n",
            "?: ",
        ),
    ] {
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        let (_, part) = text.split_once(begin).unwrap();
        let (part, _) = part.split_once(end).unwrap();
        let names = part.lines().filter_map(|line| line.trim().split_once(mark));
        let names = names
            .map(|(name, _)| name)
            .filter(|name| name.chars().all(|c| c.is_ascii_alphabetic() || c == '_'));
        let snake = |name: &str| {
            name.chars().fold(String::new(), |name, c| match c {
                'A'..='Z' => name + "_" + &c.to_ascii_lowercase().to_string(),
                c => name + &c.to_string(),
            })
        };
        assert_eq!(names.map(snake).collect::<BTreeSet<_>>(), keys, "{file}");
    }
}

/// The options of all commands, apart from those of every command, and how often each is in the help.
#[test]
fn there_are_few_options() {
    fn count<'c>(command: &'c clap::Command, names: &mut Vec<&'c str>) {
        let own = command.get_arguments();
        let own = own.filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
        names.extend(own.filter_map(clap::Arg::get_long));
        let below = command.get_subcommands();
        below.for_each(|command| count(command, names));
    }
    fn leaves(command: &clap::Command) -> usize {
        let below = command
            .get_subcommands()
            .filter(|it| it.get_name() != "help");
        below.map(leaves).sum::<usize>().max(1)
    }
    let root = plaincall_cli::command();
    assert!(leaves(&root) <= MOST_COMMANDS, "{} commands", leaves(&root));
    let mut names = Vec::new();
    count(&root, &mut names);
    let is_built_in = |name: &&str| ["help", "version"].contains(name);
    names.retain(|name| !is_built_in(name));
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    let (distinct, places) = (distinct.len(), names.len());
    assert!(distinct <= MOST_OPTIONS.0, "{distinct} options");
    assert!(places <= MOST_OPTIONS.1, "options in {places} places");
}

#[test]
fn the_help_of_serve_is_short() {
    let mut root = plaincall_cli::command();
    let serve = root.find_subcommand_mut("serve").unwrap();
    let help = serve.render_long_help().to_string();
    let words = help.split_whitespace().count();
    assert!(words <= 800, "{words} words");
}

#[test]
fn measured_models_are_up_to_date() {
    check("measured-models.md", &measured::page(&measured::results()));
    check("../crates/config/src/models.toml", &measured::models());
}

/// The compiled defaults are those of the file.
#[test]
fn measured_models_are_read() {
    let read: Vec<&str> = plaincall_config::settings::measured_models()
        .map(|(name, _)| name)
        .collect();
    let file: toml::Table = toml::from_str(&measured::models()).unwrap();
    assert_eq!(read, file.keys().map(String::as_str).collect::<Vec<_>>());
    for (name, model) in plaincall_config::settings::measured_models() {
        assert_eq!(model.teaching_problem(), None, "{name}");
    }
}
