//! Options for the syntax that a model is taught, and whether it is enforced.

use clap::Args;
use plaincall_config::settings::{Constrain, Model, Syntax};

use crate::status::Failure;

/// The syntax that a model is taught.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Model")]
pub(crate) struct TeachingOptions {
    /// The syntax that the model is taught. Default: the `syntax` of the model's settings, else `block`.
    #[arg(long, value_name = "SYNTAX")]
    pub(crate) syntax: Option<Syntax>,

    /// The start marker of the block syntax.
    #[arg(long, value_name = "MARKER", allow_hyphen_values = true)]
    pub(crate) start_prefix: Option<String>,

    /// The end marker of the block syntax.
    #[arg(long, value_name = "MARKER", allow_hyphen_values = true)]
    pub(crate) end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    #[arg(long, value_name = "MARKER", allow_hyphen_values = true)]
    pub(crate) arg_prefix: Option<String>,

    /// Accept ` /]` as the end of an emoji call without a body.
    #[arg(long)]
    pub(crate) self_closing: bool,

    /// Add a random key to the markers of each conversation, so that untrusted text cannot contain a valid call.
    #[arg(long)]
    pub(crate) keyed: bool,

    /// Whether the model server constrains replies with a grammar, so that the model cannot write an invalid call: `auto` if the
    /// server is llama.cpp, vLLM or SGLang; with `always`, a request whose reply cannot be constrained is an error, and so with the
    /// name of an engine, which is then not detected. Default: `constrain` of the model's settings, else `never`.
    #[arg(long, value_name = "WHEN")]
    pub(crate) constrain: Option<Constrain>,
}

impl TeachingOptions {
    /// Applies the options to a model's settings.
    pub(crate) fn apply_to(&self, model: &Model) -> Result<Model, Failure> {
        let options = Model {
            syntax: self.syntax,
            start_prefix: self.start_prefix.clone(),
            end_prefix: self.end_prefix.clone(),
            arg_prefix: self.arg_prefix.clone(),
            self_closing: self.self_closing.then_some(true),
            keyed: self.keyed.then_some(true),
            constrain: self.constrain,
            ..Model::default()
        };
        let taught = options.over(model);
        match taught.teaching_problem() {
            None => Ok(taught),
            Some((key, message)) => {
                let option = format!("`--{}`", key.replace('_', "-"));
                let message = message.replace(&format!("`{key}`"), &option);
                Err(Failure::Usage(message))
            }
        }
    }
}
