//! Selection of the model server without `--upstream`.

use std::time::Duration;

use plaincall_agent::http::{HttpClient, HttpSettings};

use crate::environment::Environment;
use crate::model_servers::{LOCAL_SERVERS, LocalServer, find_local_servers};
use crate::status::{Failure, print_note};
use crate::terminal::human::count;

/// How long a server may take to list its models.
const TIMEOUT: Duration = Duration::from_millis(1500);
/// The maximum number of models in a note.
const SHOWN_MODELS: usize = 8;

/// Returns the first local model server that has models, and reports all servers that it found.
pub(super) async fn find_upstream(environment: &Environment) -> Result<LocalServer, Failure> {
    let client = HttpClient::new(&HttpSettings::default())
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    let found = find_local_servers(&client, environment, TIMEOUT).await;
    let selected = found.iter().find(|server| !server.models.is_empty());
    let Some(selected) = selected.or(found.first()) else {
        let usual = LOCAL_SERVERS.map(|(name, port)| format!("{name} ({port})"));
        return Err(Failure::Runtime(format!(
            "no model server answers on the usual local ports: {}; start one, or pass its address with `--upstream URL`",
            usual.join(", ")
        )));
    };
    for server in &found {
        print_note(&description(server));
    }
    if found.len() > 1 {
        print_note(&format!(
            "using {}; to use another, pass its address with `--upstream URL`",
            selected.name
        ));
    }
    Ok(selected.clone())
}

fn description(server: &LocalServer) -> String {
    let LocalServer { name, url, models } = server;
    let mut shown: Vec<&str> = models.iter().map(String::as_str).collect();
    shown.truncate(SHOWN_MODELS);
    if models.len() > SHOWN_MODELS {
        shown.push("...");
    }
    let models = match models.len() {
        0 => "no models".to_owned(),
        number => format!("{}: {}", count(number, "model"), shown.join(", ")),
    };
    format!("found {name} at {url} with {models}")
}
