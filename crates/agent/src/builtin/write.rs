//! `write_file`: a whole file.

use plaincall::{Context, Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{Stop, blocking};
use crate::builtin::place::Place;
use crate::builtin::replace::{Before, replace};
use crate::builtin::ruled::Ruled;
use crate::builtin::spelling::{count, named};

/// Writes a whole file; one that is there is replaced. Directories above it are made.
#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// The path of the file.
    #[schemars(example = &"src/main.rs")]
    path: String,
    /// The whole text of the file.
    content: String,
}

/// What a file held before is lost, so it counts as a tool that writes, although twice is the same as once.
pub(super) fn tool(place: Place) -> Tool {
    let name = BuiltinTool::WriteFile.name();
    let directory = place.root.path.clone();
    Tool::new(name, move |file: WriteFile, context: Context| {
        let place = place.clone();
        async move {
            let changing = place.root.changing.clone().lock_owned().await;
            let ruled = context.clone();
            let work = move |stop: &Stop| {
                let _changing = changing;
                let written = place.written(&file.path)?;
                let tool = BuiltinTool::WriteFile;
                Ruled::new(&ruled, &place, tool, &file.path).check(&place, &written)?;
                file.write(&place, stop)
            };
            blocking(&context, work).await
        }
    })
    .effect(Effect::Write)
    .positional(["path"])
    .body("content")
    .path_below("path", &directory)
    .works_in(directory)
}

impl WriteFile {
    fn write(&self, place: &Place, stop: &Stop) -> Result<String, String> {
        let written = place.written(&self.path)?;
        let before = replace(place, &written, self.content.as_bytes(), None, stop)?;
        let name = named(&self.path);
        let bytes = count(self.content.len() as u64, "byte");
        let end = if self.content.is_empty() || self.content.ends_with('\n') {
            ""
        } else {
            "; its last line has no line end"
        };
        Ok(match before {
            Before::Nothing => format!("created {name}: {bytes}{end}\n"),
            Before::File(before) => format!("replaced {name}: {bytes}, before {before}{end}\n"),
        })
    }
}
