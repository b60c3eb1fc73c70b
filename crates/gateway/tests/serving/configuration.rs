//! Valid and invalid configurations, and the settings for a model.

use std::time::Duration;

use plaincall_gateway::server::KeyLimits;
use plaincall_gateway::{Gateway, GatewayConfig, ModelSettings, Secret, Upstream};
use plaincall_syntax::Dialect;

type Set<'s> = &'s dyn Fn(&mut GatewayConfig);

#[test]
fn invalid_configurations_are_rejected() {
    let both = || {
        crate::settings(|settings| {
            settings.dialect = Dialect::auto();
        })
    };
    let upstream = |url: &str, key: Option<&str>| Upstream::http(url, key.map(str::to_owned));
    let table: &[(Set<'_>, &str)] = &[
        (&|_| {}, ""),
        (&|config| config.other_models = both(), "syntax"),
        (
            &|config| config.models = vec![("m".to_owned(), both())],
            "the model m: ",
        ),
        (
            &|config| config.models = vec![("m".to_owned(), ModelSettings::default()); 2],
            "duplicate settings for the model `m`",
        ),
        (
            &|config| config.upstream = upstream("ftp://a", None),
            "http://",
        ),
        (&|config| config.upstream = upstream("a b", None), "a b: "),
        (
            &|config| config.upstream = upstream("http://a", Some("a\nb")),
            "not allowed in a header",
        ),
        (
            &|config| config.upstream = upstream("http://a", Some("")),
            "is empty",
        ),
        (&|config| config.keys = vec![String::new()], "is empty"),
        (
            &|config| config.keys = vec!["a b".to_owned()],
            "not allowed in a header",
        ),
        (
            &|config| config.key_limits.per_minute = Some(1),
            "need client keys",
        ),
        (
            &|config| {
                let mut limits = KeyLimits::default();
                limits.concurrent = Some(0);
                config.limits_by_key = vec![("a".to_owned(), limits)];
            },
            "must not be 0",
        ),
        (&|config| config.limits.head = 100, "100 bytes"),
        (
            &|config| config.limits.concurrent = 0,
            "0 concurrent requests",
        ),
        (
            &|config| config.limits.concurrent = usize::MAX,
            "concurrent requests",
        ),
        (
            &|config| config.limits.connections = 0,
            "0 concurrent connections",
        ),
        (
            &|config| config.limits.bodies = config.limits.body - 1,
            "at least the limit for one body",
        ),
        (
            &|config| config.timeouts.idle = Duration::ZERO,
            "a piece of an answer",
        ),
    ];
    for (set, expected) in table {
        let mut config = GatewayConfig::new(upstream("http://a", None), Secret::new("s"));
        set(&mut config);
        let message = match Gateway::new(config) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(message.contains(expected), "{message:?} holds {expected:?}");
        assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
    }
}

/// A configuration that sets the number of rounds for each of these patterns, and 99 for all others.
fn with_patterns(patterns: &[&str]) -> GatewayConfig {
    let rounds = |repair_rounds| {
        crate::settings(|settings| {
            settings.repair_rounds = repair_rounds;
        })
    };
    let upstream = Upstream::http("http://a", None);
    let mut config = GatewayConfig::new(upstream, Secret::new("s"));
    let names = patterns.iter().map(|name| (*name).to_owned());
    config.models = names.zip((0..).map(rounds)).collect();
    config.other_models = rounds(99);
    config
}

#[test]
fn which_names_fit() {
    for (pattern, name, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "a", true),
        ("a*", "abc", true),
        ("a*", "ba", false),
        ("*", "", true),
        ("*", "x", true),
        ("*b", "aab", true),
        ("*b", "aba", false),
        ("a*c*e", "abcde", true),
        ("a*c*e", "ae", false),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*bc*", "abbcd", true),
        ("*ab*ab", "ab", false),
        ("*ab*ab", "xabab", true),
        ("**", "x", true),
        ("ü*", "über", true),
    ] {
        let config = with_patterns(&[pattern]);
        let found = config.settings_for(name).repair_rounds == 0;
        assert_eq!(found, expected, "{pattern} {name}");
    }
}

#[test]
fn which_settings_count() {
    let config = with_patterns(&["*", "qwen*", "qwen3:*", "qwen3:8b", "*:8b", "*8b:"]);
    for (model, expected) in [
        ("llama", 0),
        ("qwen2", 1),
        ("qwen3:4b", 2),
        ("qwen3:8b", 3),
        ("llama:8b", 4),
        ("qwen:8b", 1),
        ("", 0),
    ] {
        let found = config.settings_for(model).repair_rounds;
        assert_eq!(found, expected, "{model}");
    }
    let config = with_patterns(&["qwen*"]);
    assert_eq!(config.settings_for("llama").repair_rounds, 99);
}
