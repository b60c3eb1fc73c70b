//! The options of a dialect (`spec/common.md` 12).

use plaincall_names::DialectOptions;
use plaincall_syntax::Dialect;

use crate::error::Error;

/// Returns the dialect of options of the host.
pub(crate) fn dialect(options: &DialectOptions) -> Result<Dialect, Error> {
    if options.reasoning.is_some() && options.leading_reasoning.is_some() {
        let message = "use `reasoning` or `leadingReasoning`, not both";
        return Err(Error::dialect(message));
    }
    let has_markers = options.reasoning.is_some() || options.leading_reasoning.is_some();
    if options.no_reasoning && has_markers {
        let message = "use `noReasoning` or reasoning markers, not both";
        return Err(Error::dialect(message));
    }
    options.dialect().map_err(Error::dialect)
}
