//! The cost of the gateway, compared with a bare proxy of axum and reqwest, other gateways, and no proxy.
//!
//! `cargo xtask bench gateway` builds the programs and runs this one; `README.md` describes the measurement. The
//! model server, each proxy and the clients are separate processes on one machine. One run measures all proxies in
//! turn with the same bodies, so other work on the machine affects all of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failed measurement has no result"
)]

mod apis;
mod bare;
mod bodies;
mod drain;
mod http;
mod measure;
mod model;
mod options;
mod prefix;
mod process;
mod rate;
mod soak;
mod streams;
mod way;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::options::Options;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["serve-model", address] => {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { model::serve(listener(address).await).await });
            Ok(())
        }
        ["serve-bare", address, model] => {
            let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async { bare::serve(listener(address).await, model).await });
            Ok(())
        }
        ["soak", program, seconds] => {
            let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
            let time = Duration::from_secs(seconds.parse().expect("seconds"));
            runtime.block_on(soak::soak(program, time))
        }
        ["drain", program, nginx, example] => {
            let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(drain::drain(program, nginx, Path::new(example)))
        }
        words => Options::read(words).and_then(|options| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(measure::measure(&options))
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

async fn listener(address: &str) -> TcpListener {
    let address: SocketAddr = address.parse().expect("an address");
    TcpListener::bind(address).await.unwrap()
}
