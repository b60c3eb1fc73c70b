//! A definition as one text (`spec/untrusted.md` 1).

use crate::ToolSpec;
use crate::spec::example::gather;

impl ToolSpec {
    /// Returns the name, description, schema and examples as one text, in the order in which a model reads them, since a call may
    /// be spread over them.
    pub fn text(&self) -> String {
        let mut words = vec![self.name.as_str(), &self.description];
        gather(self.schema().document(), &mut words);
        for example in &self.examples {
            example.gather(&mut words);
        }
        words.join("\n")
    }
}
