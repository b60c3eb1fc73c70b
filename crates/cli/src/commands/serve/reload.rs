//! SIGHUP: reads the configuration and the keys again.

use std::sync::Arc;

use plaincall_config::settings::Serve;
use plaincall_gateway::{Gateway, Secret};

use crate::commands::serve::configured::Configured;
use crate::commands::serve::{ServeOptions, preflight};
use crate::environment::Environment;
use crate::platform::has_terminal;
use crate::status::{print_error, print_note};
use crate::terminal::interrupts::{Interrupt, Interrupts};

/// The sources of the settings.
pub(super) struct Reload {
    pub(super) options: ServeOptions,
    /// The settings with which the gateway was started.
    pub(super) serve: Serve,
    pub(super) upstream: Option<String>,
    /// The secret, which stays until a restart.
    pub(super) secret: Secret,
    pub(super) environment: Environment,
    /// Whether the process had a terminal when it started.
    pub(super) has_terminal: bool,
}

impl Reload {
    /// Reloads the settings at each SIGHUP. Returns the first other signal, or the one that reports a closed terminal.
    pub(super) async fn until_shutdown(
        self,
        gateway: &Gateway,
        interrupts: &mut Interrupts,
    ) -> Interrupt {
        let this = Arc::new(self);
        let mut is_due = false;
        loop {
            if !is_due {
                let interrupt = interrupts.next().await;
                if !interrupt.is_hangup() || (this.has_terminal && !has_terminal()) {
                    return interrupt;
                }
            }
            is_due = false;
            let (cloned, reloaded) = (Arc::clone(&this), gateway.clone());
            let mut reading = tokio::task::spawn_blocking(move || cloned.reload(&reloaded));
            let read = loop {
                interrupts.forget();
                tokio::select! {
                    read = &mut reading => break read,
                    // A file such as a pipe may never end.
                    interrupt = interrupts.next() => {
                        if !interrupt.is_hangup() {
                            return interrupt;
                        }
                        // The files may have changed after they were read.
                        is_due = true;
                    }
                }
            };
            match read {
                Ok(Ok(())) => {
                    print_note("settings reloaded");
                    tokio::spawn(preflight(gateway.clone()));
                }
                Ok(Err(error)) => print_error(&format!("{error}; the old settings stay in use")),
                Err(error) => print_error(&format!("cannot reload the settings: {error}")),
            }
        }
    }

    fn reload(&self, gateway: &Gateway) -> Result<(), String> {
        let configured = Configured::read(&self.options, &self.environment);
        let read = configured.and_then(|configured| {
            let (upstream, secret) = (self.upstream.as_deref(), self.secret.clone());
            let config = configured.reloadable(upstream, secret, &self.environment)?;
            Ok((config, configured.serve))
        });
        let (config, serve) = read.map_err(|failure| failure.message().to_owned())?;
        gateway.reload(config).map_err(|error| error.to_string())?;
        if self.serve.needs_restart(&serve) {
            print_note("some changes of `[serve]` take effect when the gateway is restarted");
        }
        Ok(())
    }
}
