//! Requests of coding agents and SDKs, recorded once, for tests and measurements.
//!
//! `recordings/` has a file for each client: the path, the first request, and for each later request the number of bytes that it has
//! in common with the one before, at the beginning and at the end, with the text between. All texts of the clients are replaced:
//! `«LENGTH SEED»` becomes a text of our own of that length.

/// The requests of one conversation, in order.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The name of the client.
    pub client: &'static str,
    /// The path of the requests.
    pub path: &'static str,
    /// The bodies of the requests.
    pub requests: Vec<String>,
}

const FILES: [(&str, &str); 7] = [
    ("opencode", include_str!("../recordings/opencode.txt")),
    ("qwen-code", include_str!("../recordings/qwen-code.txt")),
    ("Codex CLI", include_str!("../recordings/codex.txt")),
    ("OpenAI SDK, chat", include_str!("../recordings/openai.txt")),
    (
        "OpenAI SDK, Responses",
        include_str!("../recordings/openai-responses.txt"),
    ),
    ("Anthropic SDK", include_str!("../recordings/anthropic.txt")),
    // Written by hand in the form of such requests: 24 tools of 64 kB, a first text that changes with each request, deferred
    // tools, results in another order, and instructions in mid-conversation.
    (
        "agent on Messages",
        include_str!("../recordings/messages-agent.txt"),
    ),
];

/// The words of the texts.
const WORDS: [&str; 16] = [
    "a", "tool", "reads", "the", "file", "and", "returns", "its", "lines", "unless", "another",
    "path", "is", "given", "in", "order",
];
/// The length of a line of the texts, in bytes.
const LINE: usize = 90;

/// Returns the recordings of all clients.
pub fn recordings() -> Vec<Recording> {
    FILES.map(|(client, text)| read(client, text)).into()
}

fn read(client: &'static str, text: &'static str) -> Recording {
    let mut lines = text.lines();
    let path = lines.next().expect("a path");
    let mut body = lines.next().expect("a request").to_owned();
    let mut requests = vec![filled(&body)];
    for line in lines {
        let (begin, end, middle): (usize, usize, String) = serde_json::from_str(line).expect(line);
        let end = body.split_off(body.len() - end);
        body.truncate(begin);
        body += &(middle + &end);
        requests.push(filled(&body));
    }
    Recording {
        client,
        path,
        requests,
    }
}

/// Replaces the placeholders in a body. A text gets the same words wherever it is.
fn filled(body: &str) -> String {
    let mut out = String::new();
    for part in body.split('«') {
        match part.split_once('»') {
            Some((placeholder, rest)) => {
                let (length, seed) = placeholder.split_once(' ').expect("a length and a seed");
                let seed = usize::from_str_radix(seed, 16).expect("a seed");
                out += &words(length.parse().expect("a length"), seed);
                out += rest;
            }
            None => out += part,
        }
    }
    out
}

/// Returns words as they are in a JSON string, of exactly this length.
fn words(length: usize, seed: usize) -> String {
    let mut out = String::new();
    let mut line = 0;
    let mut next = seed;
    while out.len() < length {
        // A linear congruential generator.
        next = next.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        out += WORDS[(next >> 16) % WORDS.len()];
        if out.len() - line > LINE {
            out += "\\n";
            line = out.len();
        } else {
            out += " ";
        }
    }
    out.truncate(length);
    if out.ends_with('\\') {
        out.pop();
        out += ".";
    }
    out
}
