//! Options that earlier versions had, and what replaces them.

/// A command, options that it had, and what to use instead. `KEY` is the name of the option as a key.
const REPLACED: &[(&str, &str, &str)] = &[
    (
        "serve",
        "--max-body --max-requests --max-bodies --key-requests --key-rate --retries --retry-wait \
         --connection-idle-timeout --body-timeout --connect-timeout --first-byte-timeout --idle-timeout --keep-alive \
         --drain-delay --drain-timeout --cors",
        "set `KEY` in the table `[serve]` of the configuration",
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
        "--mode --syntax --start-prefix --end-prefix --arg-prefix --self-closing --keyed --constrain --reasoning \
         --in-reasoning --arguments --unclosed --repair-rounds --developer-role",
        "set `KEY` in a table `[models.NAME]` of the configuration; `[models.\"*\"]` is for all models",
    ),
    (
        "serve",
        "--no-reasoning",
        "set `reasoning = false` in a table `[models.NAME]` of the configuration; `[models.\"*\"]` is for all models",
    ),
    (
        "serve",
        "--models",
        "use `--config FILE`, whose tables `[models.NAME]` are served",
    ),
    (
        "serve",
        "--upstream-key",
        "set the variable `PLAINCALL_UPSTREAM_KEY`, or `key_file` beside `url` in the table `[models.\"*\"]` of the configuration",
    ),
];

/// Returns the command and the error for an option that it had. `usage` contains the name of the command.
pub(super) fn replacement(usage: &str, option: &str) -> Option<(&'static str, String)> {
    let is_command = |command: &str| usage.split_whitespace().any(|word| word == command);
    let is_it = |(command, options, _): &&(&str, &str, &str)| {
        is_command(command) && options.split_whitespace().any(|known| known == option)
    };
    let (command, _, instead) = REPLACED.iter().find(is_it)?;
    let key = option.trim_start_matches('-').replace('-', "_");
    let instead = instead.replace("KEY", &key);
    Some((command, format!("`{option}` was removed: {instead}")))
}

#[cfg(test)]
mod tests {
    use super::{REPLACED, replacement};

    #[test]
    fn replacements_exist() {
        let schema = plaincall_config::settings::schema();
        let command_line = crate::commands::command();
        for (command, options, instead) in REPLACED {
            let known = command_line.find_subcommand(command).unwrap();
            for option in options.split_whitespace() {
                let name = option.trim_start_matches('-');
                let mut now = known.get_arguments();
                assert!(now.all(|known| known.get_long() != Some(name)), "{option}");
                let usage = format!("Usage: plaincall {command} [OPTIONS]");
                let (_, text) = replacement(&usage, option).unwrap();
                assert_eq!(replacement("Usage: plaincall none", option), None);
                // After the option, the first word in backquotes is a key, an option or a variable.
                let word = text.split('`').nth(3).unwrap();
                let key = word.split(' ').next().unwrap();
                let place = match instead {
                    it if it.contains("`[serve]`") => "/properties/serve",
                    it if it.contains("`[models.NAME]`") => {
                        "/properties/models/additionalProperties"
                    }
                    _ => continue,
                };
                let option = key.strip_prefix("--");
                let is_known = match option {
                    Some(name) => known.get_arguments().any(|it| it.get_long() == Some(name)),
                    None => schema
                        .pointer(&format!("{place}/properties/{key}"))
                        .is_some(),
                };
                assert!(is_known, "{text}");
            }
        }
    }
}
