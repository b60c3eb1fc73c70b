//! Options and commands that earlier versions had, and what replaces them.

/// Commands, options and subcommands that they had, and what to use instead. `{name}` is the name of the
/// option, `{key}` the name as a key, and `{limit}` the key of a limit.
const REPLACED: &[(&str, &str, &str)] = &[
    (
        "check extract render grammar run inspect ask chat",
        "--syntax",
        "use `--dialect`, for example `--dialect emoji`",
    ),
    (
        "check extract render grammar run inspect ask chat",
        "--start-prefix --end-prefix --arg-prefix",
        "use `--dialect`, for example `--dialect \"start=<<<CALL: end=<<<END arg=<<<ARG:\"`",
    ),
    (
        "check extract render grammar run inspect",
        "--strict --escaped --in-reasoning",
        "use `--dialect {name}`",
    ),
    (
        "check extract render grammar run inspect ask chat",
        "--self-closing",
        "use `--dialect \"emoji self-closing\"`",
    ),
    (
        "check extract render grammar inspect",
        "--schema",
        "use `--tools`",
    ),
    (
        "check extract run inspect parse",
        "--no-reasoning",
        "use `--dialect no-reasoning`",
    ),
    ("ask chat", "--keyed", "use `--dialect keyed`"),
    (
        "check extract render grammar run inspect",
        "--markers",
        "use `--dialect anywhere`",
    ),
    (
        "check extract render grammar run inspect",
        "--key",
        "use `--dialect key=KEY`",
    ),
    (
        "check extract render grammar run inspect",
        "--reasoning",
        "use `--dialect reasoning=OPEN,CLOSE`",
    ),
    (
        "serve",
        "--max-body --max-requests --max-bodies --key-requests --key-rate --retries --retry-wait \
         --connection-idle-timeout --body-timeout --connect-timeout --first-byte-timeout --idle-timeout --keep-alive \
         --drain-delay --drain-timeout --cors",
        "set `{key}` in the table `[serve]` of the configuration",
    ),
    (
        "serve",
        "--max-connections",
        "the limit is twice `max_requests` in the table `[serve]` of the configuration",
    ),
    (
        "serve",
        "--secret",
        "set `secret_file` in the table `[serve]` of the configuration, or the variable `PLAINCALL_SECRET`",
    ),
    (
        "serve",
        "--mode --constrain --arguments --unclosed --repair-rounds --developer-role",
        "set `{key}` in a table `[models.NAME]` of the configuration; `[models.\"*\"]` is for models without a better match",
    ),
    (
        "serve",
        "--syntax --start-prefix --end-prefix --arg-prefix --self-closing --keyed --reasoning --in-reasoning",
        "use `--dialect` with `--upstream`, or set `{key}` in a table `[models.NAME]` of the configuration",
    ),
    (
        "serve",
        "--no-reasoning",
        "set `reasoning = false` in a table `[models.NAME]` of the configuration; `[models.\"*\"]` is for models without a better match",
    ),
    (
        "serve",
        "--models",
        "use `--config FILE`, whose tables `[models.NAME]` are served",
    ),
    (
        "probe",
        "--temperature --max-tokens --self-closing --kind",
        "set `{key}` in a table `[models.NAME]` of the configuration",
    ),
    (
        "probe",
        "--seed",
        "set `extra` with a `seed` in a table `[models.NAME]` of the configuration",
    ),
    (
        "probe",
        "--html",
        "use `--record FILE`, which has each transcript",
    ),
    (
        "probe",
        "--note",
        "use `--json`, and add the key `note` to the file",
    ),
    (
        "ask chat",
        "--max-calls --max-tokens --max-repairs --max-turns",
        "set `{limit}` in the table `[limits]` of the configuration, or the variable `PLAINCALL_LIMITS_{LIMIT}`",
    ),
    (
        "ask chat",
        "--concurrency",
        "set `concurrent` in the table `[limits]` of the configuration, or the variable `PLAINCALL_LIMITS_CONCURRENT`",
    ),
    (
        "ask chat",
        "--system",
        "set the variable `PLAINCALL_SYSTEM`, or `system` or `system_file` in the configuration",
    ),
    (
        "ask chat",
        "--kind",
        "set `kind` beside `url` in a table `[models.NAME]` of the configuration",
    ),
    (
        "ask chat",
        "--constrain",
        "set `constrain` in a table `[models.NAME]` of the configuration",
    ),
    ("parse", "--json -j", "use `--format json`"),
    (
        "render",
        "--no-dependencies",
        "use `--one-call`, or delete the paragraph about ids from the prompt",
    ),
    (
        "serve",
        "--keys",
        "set `keys_file` in the table `[serve]` of the configuration, or the variable `PLAINCALL_KEYS`",
    ),
    (
        "models",
        "--timeout",
        "use `plaincall models`, which waits 3 seconds",
    ),
    (
        "serve",
        "--upstream-key",
        "set the variable `PLAINCALL_UPSTREAM_KEY` for `--upstream`, or `key_file` beside `url` in the table `[models.\"*\"]` of the configuration",
    ),
    ("sessions", "list", "use `plaincall sessions`"),
    ("sessions", "show", "use `plaincall show NAME`"),
    (
        "check",
        "--every-split",
        "use `plaincall inspect`, whose page tries every split on the tab Replay",
    ),
    (
        "extract",
        "--column",
        "use `jq -c '.text = .KEY'` before it",
    ),
    (
        "sessions",
        "remove",
        "delete the file of the session, which `plaincall sessions --json` names",
    ),
    (
        "sessions",
        "--config --no-project",
        "set the variable `PLAINCALL_CONFIG`; a project's file is not read",
    ),
    ("mcp", "serve", "use `plaincall mcp --tools FILE`"),
];

/// Commands of earlier versions, and what to use instead.
const REPLACED_COMMANDS: &[(&str, &str)] = &[(
    "conform",
    "run `python3 conformance/run.py` of the repository",
)];

/// Returns the error for a command of an earlier version.
pub(super) fn replaced_command(name: &str) -> Option<String> {
    let mut replaced = REPLACED_COMMANDS.iter();
    let (_, instead) = replaced.find(|(command, _)| *command == name)?;
    Some(format!("`{name}` was removed: {instead}"))
}

/// Returns the command and the error for an option that it had. `usage` contains the name of the command.
pub(super) fn replacement<'u>(usage: &'u str, option: &str) -> Option<(&'u str, String)> {
    let words = || usage.split_whitespace();
    let mut replaced = REPLACED.iter().filter_map(|(commands, options, instead)| {
        let has = |list: &str, it: &str| list.split_whitespace().any(|known| known == it);
        // After `Usage: plaincall`. A nested command has other options.
        let command = words().nth(2).filter(|word| has(commands, word))?;
        has(options, option).then_some((command, instead))
    });
    let (command, instead) = replaced.next()?;
    let name = option.trim_start_matches('-');
    let instead = instead.replace("{name}", name);
    let instead = instead.replace("{key}", &name.replace('-', "_"));
    let limit = name.trim_start_matches("max-");
    let instead = instead.replace("{limit}", limit);
    let instead = instead.replace("{LIMIT}", &limit.to_uppercase());
    Some((command, format!("`{option}` was removed: {instead}")))
}

#[cfg(test)]
mod tests {
    use super::{REPLACED, REPLACED_COMMANDS, replacement};

    #[test]
    fn replaced_commands_are_gone() {
        let command_line = crate::commands::command();
        for (name, _) in REPLACED_COMMANDS {
            assert!(command_line.find_subcommand(name).is_none(), "{name}");
        }
    }

    #[test]
    fn replacements_exist() {
        let schema = plaincall_config::settings::schema();
        let command_line = crate::commands::command();
        let all = REPLACED.iter().flat_map(|(commands, options, instead)| {
            let options = options.split_whitespace();
            options.flat_map(move |option| {
                let commands = commands.split_whitespace();
                commands.map(move |command| (command, option, *instead))
            })
        });
        for (command, option, instead) in all {
            let known = command_line.find_subcommand(command).unwrap();
            let has = |name: &str| {
                let mut options = known.get_arguments().filter_map(clap::Arg::get_long);
                options.any(|known| known == name.trim_start_matches('-'))
            };
            assert!(!has(option), "{command} {option}");
            let usage = format!("Usage: plaincall {command} [OPTIONS]");
            let (_, text) = replacement(&usage, option).unwrap();
            assert_eq!(replacement("Usage: plaincall none", option), None);
            let nested = format!("Usage: plaincall tools {command} [OPTIONS]");
            assert_eq!(replacement(&nested, option), None);
            // After the option, the first word in backquotes is an option, a key, a command or a variable.
            let word = text.split('`').nth(3).unwrap();
            let key = word.split(' ').next().unwrap();
            let place = match instead {
                it if it.contains("`[serve]`") => "/properties/serve",
                it if it.contains("`[limits]`") => "/properties/limits",
                _ => "/properties/models/additionalProperties",
            };
            let is_key = schema
                .pointer(&format!("{place}/properties/{key}"))
                .is_some();
            let is_command = word.strip_prefix("plaincall ").is_some_and(|rest| {
                let name = rest.split(' ').next().unwrap();
                command_line.find_subcommand(name).is_some()
            });
            let is_known =
                is_key || has(key) || is_command || key.starts_with("PLAINCALL_") || key == "jq";
            assert!(is_known, "{text}");
            assert!(!text.contains(['{', '}']), "{text}");
        }
    }
}
