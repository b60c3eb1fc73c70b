//! The examples of `docs/serving.md` and `examples/gateway`: each is a configuration with which the gateway serves its models.

use std::fs;

use plaincall_config::settings::{Settings, read_settings};

use super::{EXAMPLE, Serving, configuration, plaincall, repeating, replies};
use crate::run::documents::{document, fences};

const KEY: &str = "key-of-a-client-1";

/// Serves every model of a configuration.
fn check(place: &str, text: &str, url: &str) {
    let layer = read_settings(place, text, None).unwrap();
    let settings: Settings = layer.read().unwrap();
    let mut text = text.to_owned();
    for (pattern, by) in [("/run/secrets/", ""), ("0.0.0.0:8080", "127.0.0.1:0")] {
        text = text.replace(pattern, by);
    }
    let mut command = plaincall();
    for model in settings.models.values() {
        if let Some(server) = &model.url {
            text = text.replace(&server.0, url);
        }
        command.envs(
            model
                .key_env
                .iter()
                .map(|name| (name, "key-of-the-variable")),
        );
        for variable in model
            .headers
            .values()
            .filter_map(|value| value.strip_prefix("${"))
        {
            command.env(variable.trim_end_matches('}'), "a value");
        }
    }
    let (folder, file) = configuration(&text);
    for name in ["keys", "secret", "server.key", "gateway"] {
        fs::write(folder.path().join(name), KEY).unwrap();
    }
    command.args(["--config", &file]);
    if settings.serve.listen.is_none() {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    if !settings.models.values().any(|model| model.url.is_some()) {
        command.args(["--upstream", &replies()]);
    }
    let serving = Serving::of(&mut command);
    let mut names = settings.models.keys();
    assert!(names.len() > 0, "{place} has no model");
    assert!(
        names.all(|name| serving.status(KEY, &name.replace('*', "x")).0 == "HTTP/1.1 200 OK"),
        "{place}"
    );
}

#[test]
fn the_examples_are_served() {
    let url = repeating();
    let document = document("serving.md");
    let examples = fences(&document, "toml");
    assert!(examples.len() >= 5, "{}", examples.len());
    for (line, _, text) in &examples {
        check(&format!("serving.md:{line}"), text, &url);
    }
    let file = format!("{EXAMPLE}/gateway.toml");
    check(&file, &fs::read_to_string(&file).unwrap(), &url);
}
