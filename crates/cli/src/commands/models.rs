//! `plaincall models`: list the configured models, and what their servers offer.

use std::time::Duration;

use clap::Args;
use plaincall_agent::http::HttpClient;
use plaincall_config::Node;
use plaincall_config::settings::{FilePath, Model};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::environment::Environment;
use crate::model_servers::{ModelsRequest, OLLAMA, find_local_servers};
use crate::options::FileOptions;
use crate::output::Output;
use crate::runtime::block_on;
use crate::sanitize::sanitize;
use crate::settings::{Chosen, Configuration, http};
use crate::status::{Failure, Outcome, Status, print_note};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// List the configured models, the model of each named agent, and the models that each server offers.
///
/// The servers are those of the configuration, and those on the usual local ports: Ollama (at `OLLAMA_HOST` or port
/// 11434), llama.cpp (8080), LM Studio (1234) and vLLM (8000). Servers are queried in parallel, and have 3 seconds to answer. A server that does not
/// answer is listed with the reason.
///
/// Exit status: 0 on success, even if a server does not answer; 2 for invalid configuration or wrong usage.
#[derive(Args, Debug)]
pub(crate) struct ModelsOptions {
    /// Print one JSON object: `default`, `models` (the configured ones), `agents` and `servers`.
    #[arg(long, short)]
    json: bool,

    #[command(flatten)]
    files: FileOptions,
}

/// The output of the command.
#[derive(Debug, Serialize)]
struct Listing {
    /// The model that `ask` and `chat` use.
    default: Option<String>,
    models: Vec<ConfiguredModel>,
    agents: Vec<AgentModel>,
    servers: Vec<Server>,
}

/// A model of the configuration.
#[derive(Debug, Serialize)]
struct ConfiguredModel {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The file with recorded replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
    /// The id on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Whether the server offers it, if the server answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_offered: Option<bool>,
}

/// The model of a named agent.
#[derive(Debug, Serialize)]
struct AgentModel {
    name: String,
    /// Its own model, or the default one.
    model: Option<String>,
}

/// A model server.
#[derive(Debug, Serialize)]
struct Server {
    /// The name of a server that was found on a usual local port.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    url: String,
    is_configured: bool,
    models: Vec<String>,
    /// Why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A request to a configured server, or the reason that it cannot be sent.
struct ServerRequest {
    request: ModelsRequest,
    problem: Option<String>,
}

pub(crate) fn models(options: &ModelsOptions, output: &mut Output) -> Outcome {
    let environment = Environment::read();
    let configuration = Configuration::load(&options.files, Node::default(), false, &environment)?;
    if let Some(warning) = configuration.warning() {
        print_note(&warning);
    }
    let listing = block_on(listing(&configuration, &environment))?;
    if options.json {
        output.json_line(&listing)?;
    } else {
        listing.print(output)?;
    }
    output.flush()?;
    Ok(Status::Success)
}

async fn listing(
    configuration: &Configuration,
    environment: &Environment,
) -> Result<Listing, Failure> {
    let default = configuration.settings.model.clone();
    let mut entries: Vec<(String, Model)> = configuration
        .settings
        .models
        .iter()
        .map(|(name, entry)| (name.clone(), entry.clone()))
        .collect();
    // Names such as `ollama:qwen3` need no table.
    let agents = configuration.settings.agents.values();
    for name in agents.map(|agent| &agent.model).chain([&default]).flatten() {
        let is_known = entries.iter().any(|(known, _)| known == name);
        if let Some(entry) = configuration.named(name).filter(|_| !is_known) {
            entries.push((name.clone(), entry));
        }
    }
    let client = HttpClient::new(&http(environment))
        .map_err(|error| Failure::Configuration(error.to_string()))?;
    let requests = requests(&entries, environment);
    let asked = ask_servers(requests, &client, PATIENCE);
    let (mut servers, local) =
        tokio::join!(asked, find_local_servers(&client, environment, PATIENCE));
    for found in local {
        let known = servers
            .iter_mut()
            .find(|server| is_same_server(&server.url, &found.url));
        match known {
            Some(known) => known.name = Some(found.name),
            None => servers.push(Server {
                name: Some(found.name),
                url: found.url,
                is_configured: false,
                models: found.models,
                error: None,
            }),
        }
    }
    let models = entries
        .into_iter()
        .map(|(name, entry)| configured(name, &entry, &servers))
        .collect();
    let agents = configuration.settings.agents.iter();
    let agents = agents
        .map(|(name, agent)| AgentModel {
            name: name.clone(),
            model: agent.model.clone().or_else(|| default.clone()),
        })
        .collect();
    Ok(Listing {
        default,
        models,
        agents,
        servers,
    })
}

/// Returns one request per configured server. Models with the same server and key share it.
fn requests(entries: &[(String, Model)], environment: &Environment) -> Vec<ServerRequest> {
    let mut requests: Vec<ServerRequest> = Vec::new();
    for (name, entry) in entries {
        let Some(url) = &entry.url else {
            continue;
        };
        let chosen = Chosen {
            name: name.clone(),
            entry: entry.clone(),
            is_from_options: false,
        };
        let (key, problem) = match chosen.key(environment) {
            Ok(key) => (key, None),
            Err(failure) => (None, Some(failure.message().to_owned())),
        };
        let request = ModelsRequest {
            url: url.0.clone(),
            api: entry.kind.unwrap_or_default(),
            key,
        };
        let is_known = |known: &ServerRequest| known.request == request && known.problem == problem;
        if !requests.iter().any(is_known) {
            requests.push(ServerRequest { request, problem });
        }
    }
    requests
}

async fn ask_servers(
    requests: Vec<ServerRequest>,
    client: &HttpClient,
    timeout: Duration,
) -> Vec<Server> {
    let mut tasks = JoinSet::new();
    for (index, ServerRequest { request, problem }) in requests.into_iter().enumerate() {
        let client = client.clone();
        tasks.spawn(async move {
            let offer = match problem {
                Some(problem) => Err(problem),
                None => request.send(&client, timeout).await,
            };
            let (models, error) = match offer {
                Ok(offer) => (offer.models, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            let server = Server {
                name: None,
                url: shown_url(&request.url),
                is_configured: true,
                models,
                error,
            };
            (index, server)
        });
    }
    let mut servers = tasks.join_all().await;
    servers.sort_by_key(|(index, _)| *index);
    servers.into_iter().map(|(_, server)| server).collect()
}

fn configured(name: String, entry: &Model, servers: &[Server]) -> ConfiguredModel {
    let replay = entry.replay.as_ref();
    let replay = replay.map(|FilePath(file)| file.display().to_string());
    let url = entry.url.as_ref().map(|url| shown_url(&url.0));
    let url = url.filter(|_| replay.is_none());
    let model = entry.model.clone().unwrap_or_else(|| name.clone());
    let answered = |server: &&Server| server.is_configured && server.error.is_none();
    let server = servers
        .iter()
        .filter(answered)
        // A table for several models.
        .filter(|_| !model.contains('*'))
        .find(|server| url.as_ref() == Some(&server.url));
    let is_offered = server.map(|server| {
        // Ollama adds the tag.
        let latest = format!("{model}:latest");
        let mut offered = server.models.iter();
        offered.any(|offered| *offered == model || *offered == latest)
    });
    ConfiguredModel {
        name,
        model: url.is_some().then_some(model),
        url,
        replay,
        is_offered,
    }
}

/// Returns the URL without its query, which may contain a key.
fn shown_url(url: &str) -> String {
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    shown.trim_end_matches('/').to_owned()
}

fn is_same_server(one: &str, other: &str) -> bool {
    let normalized = |url: &str| url.replace("//127.0.0.1:", "//localhost:");
    normalized(one) == normalized(other)
}

impl Listing {
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        if self.models.is_empty() {
            print_note("no models are configured; `plaincall config` shows where");
        } else {
            output.text(format_args!("Configured models:\n"))?;
        }
        let width = self.models.iter().map(|model| model.name.chars().count());
        let width = width.max().unwrap_or(0);
        for model in &self.models {
            let is_default = self.default.as_ref() == Some(&model.name);
            let mark = if is_default { '*' } else { ' ' };
            let name = sanitize(&model.name);
            let source = match (&model.url, &model.replay) {
                (_, Some(file)) => format!("replays {file}"),
                (Some(url), None) => {
                    format!("{} at {url}", model.model.as_deref().unwrap_or_default())
                }
                (None, None) => "no url".to_owned(),
            };
            let warning = match model.is_offered {
                Some(false) => " (the server does not offer it)",
                _ => "",
            };
            let line = sanitize(&source);
            output.text(format_args!("{mark} {name:width$}  {line}{warning}\n"))?;
        }
        self.print_agents(output)?;
        if self.servers.is_empty() {
            print_note(
                "no model server answers on the usual local ports; start one, such as Ollama",
            );
            return Ok(());
        }
        let is_first = self.models.is_empty() && self.agents.is_empty();
        let space = if is_first { "" } else { "\n" };
        output.text(format_args!("{space}Servers:\n"))?;
        for server in &self.servers {
            let url = sanitize(&server.url);
            let name = server.name.as_ref().map(|name| format!("{name} at "));
            let name = name.unwrap_or_default();
            let state = match (&server.error, server.models.len()) {
                (Some(error), _) => format!(": {}", sanitize(error)),
                (None, 0) => ": no models".to_owned(),
                (None, _) => String::new(),
            };
            let usage = match &server.name {
                _ if server.is_configured || server.models.is_empty() => String::new(),
                Some(name) if name == OLLAMA => ", with `--model ollama:NAME`".to_owned(),
                _ => format!(", with `--url {url} --model NAME`"),
            };
            output.text(format_args!("  {name}{url}{usage}{state}\n"))?;
            for model in &server.models {
                output.text(format_args!("    {}\n", sanitize(model)))?;
            }
        }
        Ok(())
    }

    fn print_agents(&self, output: &mut Output) -> Result<(), Failure> {
        if self.agents.is_empty() {
            return Ok(());
        }
        let space = if self.models.is_empty() { "" } else { "\n" };
        output.text(format_args!("{space}Agents:\n"))?;
        let width = self.agents.iter().map(|agent| agent.name.chars().count());
        let width = width.max().unwrap_or(0);
        for agent in &self.agents {
            let name = sanitize(&agent.name);
            let model = agent.model.as_deref();
            let is_known = |name| self.models.iter().any(|model| model.name == name);
            let warning = match model {
                Some(name) if !is_known(name) => " (unknown model)",
                _ => "",
            };
            let model = sanitize(model.unwrap_or("no model"));
            output.text(format_args!("  {name:width$}  {model}{warning}\n"))?;
        }
        Ok(())
    }
}
