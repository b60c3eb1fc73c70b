//! The client that `plaincall serve -- COMMAND` runs, and the variables that point clients to the gateway.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::process::Command;

use crate::commands::serve::{CLIENT_KEYS, SECRET, UPSTREAM_KEY};
use crate::environment::Environment;
use crate::platform::{exit_status, forward};
use crate::status::{Failure, Outcome, Status, not_started, print_error};
use crate::terminal::interrupts::Interrupts;

/// The exit statuses of shells for a command that does not exist, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// The key for clients that require one, if the gateway does not.
const ANY_KEY: &str = "plaincall";
const KEY_VARIABLE: &str = "OPENAI_API_KEY";
const TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";
/// Clients would send this key instead of the token.
const OTHER_KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";

/// The variables that point clients of the APIs to the gateway.
#[derive(Debug)]
pub(super) struct ClientVariables {
    /// The URL without `/v1`.
    origin: String,
    key: ClientKey,
    /// The names of variables with secrets of the gateway.
    secrets: Vec<String>,
}

/// The key that clients need.
#[derive(Debug)]
pub(super) enum ClientKey {
    /// One of the keys of the gateway.
    Own(String),
    /// The client's own key for OpenAI, which the gateway passes to the model server.
    Passed(OsString),
    /// Any.
    Any,
}

impl ClientKey {
    /// Returns the key for clients of a gateway with these keys. `passes_keys` is whether the gateway passes the keys
    /// of clients to a model server that the user selected. The variables in `secrets` are for other servers.
    pub(super) fn new(
        keys: &[String],
        passes_keys: bool,
        secrets: &[String],
        environment: &Environment,
    ) -> Self {
        let passes_keys = passes_keys && !secrets.iter().any(|name| name == KEY_VARIABLE);
        let passed = environment.get(KEY_VARIABLE).filter(|_| passes_keys);
        match (keys.first(), passed) {
            (Some(key), _) => Self::Own(key.clone()),
            (None, Some(key)) => Self::Passed(key.to_owned()),
            (None, None) => Self::Any,
        }
    }
}

impl ClientVariables {
    /// Creates the variables for a gateway at this address. The command does not get the variables in `secrets`.
    pub(super) fn new(address: SocketAddr, key: ClientKey, secrets: Vec<String>) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let origin = format!("http://{}", SocketAddr::new(ip, address.port()));
        Self {
            origin,
            key,
            secrets,
        }
    }

    /// Returns the variables as commands for a shell. A real key is not shown.
    pub(super) fn exports(&self) -> String {
        let origin = &self.origin;
        let key = match &self.key {
            ClientKey::Own(_) => "ONE_OF_YOUR_KEYS",
            ClientKey::Passed(_) => "YOUR_KEY",
            ClientKey::Any => ANY_KEY,
        };
        format!(
            "  export OPENAI_BASE_URL={origin}/v1\n  export {KEY_VARIABLE}={key}\n  export ANTHROPIC_BASE_URL={origin}\n  export {TOKEN_VARIABLE}={key}"
        )
    }

    /// Sets the variables for a command. `OPENAI_API_BASE` is the older name of the address.
    fn set(&self, command: &mut Command) {
        // The secrets of the gateway are not for its clients. One may have the name of a variable that is set below.
        let own = [CLIENT_KEYS, UPSTREAM_KEY, SECRET, OTHER_KEY_VARIABLE].into_iter();
        for variable in own.chain(self.secrets.iter().map(String::as_str)) {
            command.env_remove(variable);
        }
        let openai = format!("{}/v1", self.origin);
        let key = match &self.key {
            ClientKey::Own(key) => OsStr::new(key),
            ClientKey::Passed(key) => key,
            ClientKey::Any => OsStr::new(ANY_KEY),
        };
        command.envs(["OPENAI_BASE_URL", "OPENAI_API_BASE"].map(|name| (name, &openai)));
        command.envs(["ANTHROPIC_BASE_URL", "OLLAMA_HOST"].map(|name| (name, &self.origin)));
        command.envs([KEY_VARIABLE, TOKEN_VARIABLE, "OLLAMA_API_KEY"].map(|name| (name, key)));
    }
}

/// Runs the command, forwards signals to it, and returns its exit status.
pub(super) async fn run(
    command: &[OsString],
    variables: &ClientVariables,
    interrupts: &mut Interrupts,
) -> Outcome {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::Usage("missing COMMAND".to_owned()));
    };
    let mut started = Command::new(program);
    started.args(arguments).kill_on_drop(true);
    variables.set(&mut started);
    let mut child = match started.spawn() {
        Ok(child) => child,
        Err(error) => {
            let reason = not_started(&error);
            print_error(&format!("cannot start {}: {reason}", program.display()));
            let is_missing = error.kind() == ErrorKind::NotFound;
            return Ok(Status::Ended(if is_missing { NOT_FOUND } else { NOT_RUN }));
        }
    };
    loop {
        tokio::select! {
            ended = child.wait() => return match ended {
                Ok(status) => Ok(Status::Ended(exit_status(status))),
                Err(error) => Err(Failure::Runtime(format!(
                    "cannot wait for {}: {error}",
                    program.display()
                ))),
            },
            interrupt = interrupts.next() => forward(interrupt, &child),
        }
    }
}
