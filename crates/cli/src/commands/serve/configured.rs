//! The configuration of the gateway.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use plaincall_config::settings::{Api, KeySource, Model, Serve, measured_models};
use plaincall_config::{Location, child, for_name, matches};
use plaincall_gateway::server::check_origin;
use plaincall_gateway::{GatewayConfig, ModelSettings, Replay, Secret, Upstream};

use crate::commands::serve::{CLIENT_KEYS, ServeOptions, UPSTREAM_KEY, limits};
use crate::environment::Environment;
use crate::keys::{self, Source};
use crate::options::FileOptions;
use crate::settings::Configuration;
use crate::status::Failure;
use crate::tools_file;

/// The settings of the gateway and its models, from the configuration and the options.
pub(super) struct Configured {
    pub(super) serve: Serve,
    models: Vec<(String, Model)>,
    /// The names of models that cannot be served.
    pub(super) skipped: Vec<String>,
    /// The environment variables that all models of the configuration name, and their values.
    pub(super) variables: BTreeMap<String, String>,
}

impl Configured {
    /// Reads the configuration. Prints its errors.
    pub(super) fn read(options: &ServeOptions, environment: &Environment) -> Result<Self, Failure> {
        let files = FileOptions {
            config: options.config.clone(),
            no_project: true,
        };
        let configuration = Configuration::load(&files, options.layer(), false, environment)?;
        let settings = configuration.settings.clone();
        let mut configured = Self {
            serve: settings.serve,
            models: settings.models.into_iter().collect(),
            skipped: Vec::new(),
            variables: BTreeMap::new(),
        };
        configured.name_variables(environment);
        let mut problems = configured.select_models();
        if options.upstream.is_some() {
            configured.models.retain(|(_, model)| !model.has_server());
        }
        if let Some(dialect) = &options.dialect {
            for (_, model) in &mut configured.models {
                *model = dialect.apply_to(model)?;
            }
            if !configured.models.iter().any(|(name, _)| name == "*") {
                let others = dialect.apply_to(&Model::default())?;
                configured.models.push(("*".to_owned(), others));
            }
        }
        problems.extend(configured.expand(environment));
        let origins = (0..).zip(&configured.serve.cors);
        problems.extend(origins.filter_map(|(index, origin)| {
            let message = check_origin(origin).err()?;
            Some((Location::value(format!("/serve/cors/{index}")), message))
        }));
        configuration.report(&problems, false)?;
        Ok(configured)
    }

    /// Keeps the models to serve. Returns the problems of their names.
    fn select_models(&mut self) -> Vec<(Location, String)> {
        let mut problems = Vec::new();
        if let Some(patterns) = &self.serve.models {
            let all: Vec<&str> = self.models.iter().map(|(name, _)| name.as_str()).collect();
            for (index, pattern) in patterns.iter().enumerate() {
                if !all.iter().any(|name| matches(pattern, name)) {
                    let known: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
                    let fix = match known.as_slice() {
                        [] => format!("add a table `[models.\"{pattern}\"]`"),
                        known => format!("the models are {}", known.join(", ")),
                    };
                    let message = format!("`{pattern}` matches no table `[models.NAME]`; {fix}");
                    problems.push((Location::value(format!("/serve/models/{index}")), message));
                }
            }
            let is_served = |name: &str| patterns.iter().any(|pattern| matches(pattern, name));
            self.models.retain(|(name, _)| is_served(name));
        }
        let is_skipped = |(_, model): &mut (String, Model)| model.kind == Some(Api::Anthropic);
        let skipped = self.models.extract_if(.., is_skipped).map(|(name, _)| name);
        self.skipped = skipped.collect();
        problems
    }

    /// Replaces the models that the server does not have with one of its own: a coding agent names those of its makers by default.
    pub(super) fn replace_unknown_models(&mut self, own: &str, known: &[String]) {
        let all = &mut self.models;
        let of = |all: &[_], name: &str| for_name(all, name).cloned().unwrap_or_default();
        for name in known {
            if !all.iter().any(|(other, _)| other == name) {
                all.push((name.clone(), of(all, name)));
            }
        }
        let mut others: Model = of(all, "*");
        others.model.get_or_insert_with(|| own.to_owned());
        all.retain(|(name, _)| name != "*");
        all.push(("*".to_owned(), others));
    }

    /// Collects the variables of all tables. Those of a table that is not served are secrets too.
    fn name_variables(&mut self, environment: &Environment) {
        let variables = RefCell::new(BTreeMap::new());
        let variable = |name: &str| {
            let value = value_of(environment, name)?;
            let mut variables = variables.borrow_mut();
            variables.insert(name.to_owned(), value.clone());
            Some(value)
        };
        for (_, model) in &self.models {
            // Unset ones are reported for the models that are served.
            let _ = model.clone().expand_headers(&variable);
            let source = model.key();
            source
                .as_ref()
                .and_then(KeySource::variable)
                .and_then(variable);
        }
        self.variables = variables.into_inner();
    }

    /// Replaces the variables in headers with their values. Returns the problems with variables.
    fn expand(&mut self, environment: &Environment) -> Vec<(Location, String)> {
        let mut problems = Vec::new();
        let variable = |name: &str| value_of(environment, name);
        for (name, model) in &mut self.models {
            let pointer = child("/models", name);
            let headers = child(&pointer, "headers");
            let unset = model.expand_headers(&variable).err().unwrap_or_default();
            let unset = unset.into_iter();
            problems.extend(
                unset.map(|(header, message)| (Location::value(child(&headers, &header)), message)),
            );
            let is_unset = |name: &&String| variable(name).is_none_or(|it| it.trim().is_empty());
            if let Some(unset) = model.key_env.as_ref().filter(is_unset) {
                let message = format!(
                    "the environment variable `{unset}` is not set; set it, or list the other models in `models` of `[serve]`"
                );
                problems.push((Location::key(child(&pointer, "key_env")), message));
            }
        }
        problems
    }

    /// Returns whether a model has a server. An error if `[serve]` selects models, and none has one.
    pub(super) fn has_servers(&self) -> Result<bool, Failure> {
        let has_any = self.models.iter().any(|(_, model)| model.has_server());
        if !has_any && self.serve.models.is_some() {
            let message = "`models` of `[serve]` selects no table with a server that can be used; add a model, or use `--upstream`";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(has_any)
    }

    /// Returns the settings that SIGHUP replaces: model servers, models, and keys with their limits.
    pub(super) fn reloadable(
        &self,
        upstream: Option<&str>,
        secret: Secret,
        environment: &Environment,
    ) -> Result<GatewayConfig, Failure> {
        let source = |file, name| Source::of(file, name, environment);
        let upstream = match upstream.map(|upstream| (upstream, upstream.strip_prefix("replay:"))) {
            Some((_, Some(file))) => replay(Path::new(file))?,
            Some((upstream, None)) => {
                let key = source(None, UPSTREAM_KEY)?;
                let key = key.map(|source| source.value("key")).transpose()?;
                Upstream::http(upstream, key)
            }
            None => Upstream::None,
        };
        let keys_file = self.serve.keys_file.as_ref().map(|file| file.0.as_path());
        let key_limits = limits::of_keys(&self.serve);
        let keys = source(keys_file, CLIENT_KEYS)?;
        let keys = keys.map(|source| source.keys(key_limits)).transpose()?;
        let keys = keys.unwrap_or_default();
        let mut config = GatewayConfig::new(upstream, secret);
        for (name, model) in &self.models {
            let upstream = self.upstream_of(model, environment)?;
            let upstream = upstream.map(|upstream| (name.clone(), upstream));
            config.upstreams.extend(upstream);
        }
        // A measured model has the settings of the table for its name, unless that table is for another model.
        let mut measured = Vec::new();
        let other = Model::default();
        for (name, _) in measured_models() {
            let model = for_name(&self.models, name).unwrap_or(&other);
            if model.model.is_none() && !self.models.iter().any(|(known, _)| known == name) {
                measured.push((name.to_owned(), model.clone()));
            }
        }
        let models = self.models.iter().cloned().chain(measured);
        let models = models.map(|(name, model)| {
            let id = model.model.clone().unwrap_or_else(|| name.clone());
            (name, ModelSettings::from(&model.or_measured(&id)))
        });
        config.models = models.collect();
        config.keys = keys.iter().map(|(key, _)| key.clone()).collect();
        config.key_limits = key_limits;
        config.limits_by_key = keys;
        Ok(config)
    }

    /// Returns the model server of a table, if it has one. Values of variables are redacted in answers.
    fn upstream_of(
        &self,
        model: &Model,
        environment: &Environment,
    ) -> Result<Option<Upstream>, Failure> {
        let url = match (&model.url, &model.replay) {
            (None, Some(file)) => return replay(&file.0).map(Some),
            (None, None) => return Ok(None),
            (Some(url), _) => url,
        };
        let key = keys::of_model(model, environment)?;
        let is_used = |secret: &&String| {
            let mut headers = model.headers.values();
            headers.any(|value| value.contains(secret.as_str()))
        };
        let secrets = self.variables.values().filter(is_used).cloned();
        let upstream = Upstream::http(url.0.clone(), key).with_headers(model.headers.clone());
        Ok(Some(upstream.with_secrets(secrets)))
    }
}

fn value_of(environment: &Environment, name: &str) -> Option<String> {
    environment.get_set(name)?.to_str().map(str::to_owned)
}

/// Returns the recorded replies of a file as a model server.
fn replay(file: &Path) -> Result<Upstream, Failure> {
    let (file, text) = tools_file::read(file)?;
    let replay = Replay::read(&text);
    let replay = replay.map_err(|error| Failure::Runtime(format!("{file}: {error}")))?;
    Ok(Upstream::local(replay))
}
