//! The model of a worker, from a configuration.

use std::path::Path;
use std::sync::Arc;

use plaincall::BoxError;
use plaincall_agent::http::HttpSettings;
use plaincall_agent::model::{ConfiguredClient, Key, Model as Client, Replay};
use plaincall_config::settings::{FilePath, KeySource, Limits, Model, Settings, read_settings};

use super::read;

/// A model with its table.
pub(super) struct Configured {
    pub(super) table: Model,
    pub(super) limits: Limits,
    /// The text for the system prompt.
    pub(super) system: Option<String>,
    /// Absent if the table has no server: then it only states how replies are read.
    pub(super) client: Option<Arc<dyn Client>>,
}

/// The keys at the top level that change the conversations of `plaincall ask`, but that a worker does not support.
const UNSUPPORTED: [&str; 5] = ["tools", "builtin", "mcp", "agents", "rules"];

/// Returns the model with this name, else the one that the configuration names.
pub(super) fn model(
    config: Option<&Path>,
    name: Option<&str>,
    ignores_unsupported: bool,
) -> Result<Option<Configured>, BoxError> {
    let settings = config.map(settings).transpose()?.unwrap_or_default();
    let check = |unsupported: Vec<String>| match &*unsupported.join(", ") {
        "" => Ok(()),
        keys if ignores_unsupported => {
            eprintln!("note: no effect on durable conversations: {keys}");
            Ok(())
        }
        keys => Err(format!(
            "durable conversations do not support {keys}; use the option `--tools` for tools and their rules, and `--ignore-unsupported` if the keys are for other programs"
        )),
    };
    check(unsupported(&settings))?;
    let Some(name) = name.or(settings.model.as_deref()) else {
        return Ok(None);
    };
    let table = Model::named(name).or_else(|| settings.table_of(name));
    let table = table.ok_or_else(|| {
        format!(
            "unknown model `{name}`; use the name of a table `[models.NAME]` of `--config`, `ollama:ID`, `openai:ID`, `anthropic:ID` or `replay:FILE`"
        )
    })?;
    // Those that were measured only help.
    check(unsupported_of_model(name, &table))?;
    let id = table.model.clone().unwrap_or_else(|| name.to_owned());
    let mut table = table.or_measured(&id);
    let client = client(&mut table, &id).map_err(|error| format!("the model `{name}`: {error}"))?;
    let system = match &settings.system_file {
        Some(FilePath(file)) => Some(read(file)?.1),
        None => settings.system,
    };
    Ok(Some(Configured {
        table,
        limits: settings.limits,
        system,
        client,
    }))
}

fn unsupported(settings: &Settings) -> Vec<String> {
    let [set, default] = [settings, &Settings::default()].map(|all| serde_json::to_value(all).ok());
    let is_set = |key: &&str| {
        let [set, default] = [&set, &default].map(|all| all.as_ref().and_then(|all| all.get(key)));
        set != default
    };
    let mut keys: Vec<&str> = UNSUPPORTED.iter().copied().filter(is_set).collect();
    for (key, is_set) in [
        (
            "limits.on_no_tool_call",
            settings.limits.on_no_tool_call.is_some(),
        ),
        // A person may take a week for an approval.
        ("limits.time", settings.limits.time.is_some()),
    ] {
        keys.extend(is_set.then_some(key));
    }
    keys.iter().map(|key| format!("`{key}`")).collect()
}

fn unsupported_of_model(name: &str, table: &Model) -> Vec<String> {
    let is_keyed = table.keyed == Some(true);
    let key = is_keyed.then(|| format!("`models.{name}.keyed`"));
    key.into_iter().collect()
}

fn settings(file: &Path) -> Result<Settings, BoxError> {
    let (path, text) = read(file)?;
    let layer = read_settings(&file.display().to_string(), &text, None)?;
    let settings = layer.read::<Settings>();
    let mut settings = settings.map_err(|problems| format!("{}: {problems:?}", path.display()))?;
    let folder = path.parent().unwrap_or(&path);
    let home = std::env::home_dir();
    settings.resolve(|_| folder.to_owned(), home.as_deref());
    Ok(settings)
}

fn client(table: &mut Model, id: &str) -> Result<Option<Arc<dyn Client>>, BoxError> {
    if let Some(FilePath(file)) = &table.replay {
        let (path, text) = read(file)?;
        let replay = Replay::read(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(Some(Arc::new(replay)));
    }
    if table.url.is_none() {
        return Ok(None);
    }
    let variable = |name: &str| std::env::var(name).ok();
    table.expand_headers(&variable).map_err(|problems| {
        let problems = problems.into_iter();
        let problems: Vec<_> = problems
            .map(|(header, message)| format!("`headers.{header}`: {message}"))
            .collect();
        problems.join("; ")
    })?;
    let key = match table.key() {
        None => None,
        Some(KeySource::File(file)) => Some(read(&file)?.1.trim().to_owned()),
        Some(KeySource::Variable(name)) => {
            let unset = || format!("its key is missing; set the variable {name}");
            Some(variable(&name).ok_or_else(unset)?)
        }
        Some(KeySource::Usual(_, name)) => {
            let unset = || {
                format!(
                    "its key is missing; set the variable {name}, or `key_env` or `key_file` in its table"
                )
            };
            Some(variable(name).ok_or_else(unset)?)
        }
    };
    let key = key.map(Key::new);
    let client = ConfiguredClient::new(table, id, key, &HttpSettings::default())?;
    Ok(Some(client.into_model()))
}
