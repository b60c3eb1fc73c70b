//! Spans of the crate `tracing`, with the OpenTelemetry names for agents (`docs/observing.md`).
//!
//! Only this file depends on the feature `tracing`. Without it, these types do nothing.

#[cfg(feature = "tracing")]
pub(crate) use on::{Parent, ToolSpan};

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{Parent, ToolSpan};

#[cfg(feature = "tracing")]
mod on {
    use plaincall_plan::Outcome;
    use tracing::field::Empty;
    use tracing::instrument::Instrument as _;
    use tracing::{Span, info_span};

    use crate::context::Context;

    /// The parent span of tool spans. The driver task has no current span, so the turn passes it one.
    #[derive(Clone)]
    pub(crate) struct Parent(Span);

    impl Parent {
        pub(crate) fn none() -> Self {
            Self(Span::none())
        }

        pub(crate) fn here() -> Self {
            Self(Span::current())
        }

        /// Creates a span for a turn, below the current span.
        pub(crate) fn turn() -> Self {
            let span = info_span!("plaincall.turn");
            if span.is_disabled() {
                // Turns are not recorded, so tool spans go below the current span.
                return Self::here();
            }
            Self(span)
        }
    }

    /// The span of one run of a tool. If it is dropped without `ended`, the tool panicked or was dropped.
    pub(crate) struct ToolSpan {
        span: Span,
        has_failed: bool,
        has_ended: bool,
    }

    impl ToolSpan {
        pub(crate) fn new(parent: &Parent, context: &Context, attempt: u32) -> Self {
            let span = info_span!(
                parent: &parent.0,
                "execute_tool",
                "otel.name" = Empty,
                "otel.status_code" = Empty,
                "gen_ai.operation.name" = "execute_tool",
                "gen_ai.tool.name" = &*context.name,
                "gen_ai.tool.call.id" = &*context.id,
                // OpenTelemetry calls every tool that the client runs a function.
                "gen_ai.tool.type" = "function",
                "error.type" = Empty,
                "plaincall.call" = context.call,
                "plaincall.attempt" = attempt,
            );
            if !span.is_disabled() {
                let name = format!("execute_tool {}", context.name);
                span.record("otel.name", name);
            }
            Self {
                span,
                has_failed: false,
                has_ended: false,
            }
        }

        pub(crate) fn within<F: Future>(
            &self,
            future: F,
        ) -> impl Future<Output = F::Output> + use<F> {
            future.instrument(self.span.clone())
        }

        pub(crate) fn timed_out(&mut self) {
            self.fail("timeout");
        }

        pub(crate) fn ended(mut self, outcome: Outcome) {
            self.has_ended = true;
            match outcome {
                Outcome::Error => self.fail("tool_error"),
                Outcome::Cancelled => self.fail("cancelled"),
                _ => {}
            }
        }

        /// Records the first failure.
        fn fail(&mut self, kind: &str) {
            if !self.has_failed {
                self.has_failed = true;
                self.span.record("error.type", kind);
                self.span.record("otel.status_code", "ERROR");
            }
        }
    }

    impl Drop for ToolSpan {
        fn drop(&mut self) {
            if !self.has_ended {
                let is_panic = std::thread::panicking();
                self.fail(if is_panic { "panic" } else { "dropped" });
            }
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use plaincall_plan::Outcome;

    use crate::context::Context;

    #[derive(Clone)]
    pub(crate) struct Parent;

    impl Parent {
        pub(crate) fn none() -> Self {
            Self
        }

        pub(crate) fn here() -> Self {
            Self
        }

        pub(crate) fn turn() -> Self {
            Self
        }
    }

    pub(crate) struct ToolSpan;

    #[expect(clippy::unused_self, reason = "the same as with the feature")]
    impl ToolSpan {
        pub(crate) fn new(_: &Parent, _: &Context, _: u32) -> Self {
            Self
        }

        pub(crate) fn within<F: Future>(&self, future: F) -> F {
            future
        }

        pub(crate) fn timed_out(&mut self) {}

        pub(crate) fn ended(self, _: Outcome) {}
    }
}
