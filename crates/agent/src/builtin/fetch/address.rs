//! Which addresses anybody may ask, and names that lead to no other.
//!
//! A name is resolved once for a connection, and the connection goes to an address that was looked at: a name that leads
//! elsewhere the next moment leads nowhere else here.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use crate::builtin::spelling::named;

/// By these words a refused name is known again among the causes of an error.
pub(super) const REFUSED: &str = "is on this machine or in a private network";

/// What a model hears of such a host.
pub(super) fn refused(host: &str) -> String {
    format!(
        "{} {REFUSED}, and pages from there may not be fetched; go on without it",
        named(host)
    )
}

/// Resolves names to addresses that may be asked.
#[derive(Debug)]
pub(super) struct Resolver {
    /// Others may be asked too.
    pub(super) private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let private = self.private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            let may_be_asked = |address: &&SocketAddr| private || is_public(address.ip());
            let public: Vec<SocketAddr> = found.iter().filter(may_be_asked).copied().collect();
            if public.is_empty() && !found.is_empty() {
                return Err(Refused(name.as_str().to_owned()).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// A name that leads only to addresses that may not be asked.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&refused(&self.0))
    }
}

impl std::error::Error for Refused {}

/// Whether an address is one of the public internet: neither of this machine, nor of a private network, nor reserved.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_reserved = match address.octets() {
        // What providers share, private networks.
        [100, second, ..] => second & 0xc0 == 64,
        [172, second, ..] => second & 0xf0 == 16,
        // This network, private networks, the own machine, what is linked directly, measurements, protocols, documents,
        // a way to IPv6 that is gone.
        [0 | 10 | 127, ..]
        | [198, 18 | 19, ..]
        | [169, 254, ..]
        | [192, 168, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => true,
        // Groups of receivers, and all that is above.
        [first, ..] => first >= 224,
    };
    !is_reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // An address of version 4 in another form, and the way to it.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocols (tunnels among them), documents.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // Nothing else is given to anybody.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Ports of services that are no servers of pages, and could take a request for something else. Browsers refuse them too.
const BAD_PORTS: [u16; 83] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
    512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
    995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Whether a port is of a service that should not hear a request for a page.
pub(super) fn is_bad_port(port: u16) -> bool {
    port == 0 || BAD_PORTS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{BAD_PORTS, is_bad_port, is_public};

    #[test]
    fn ports() {
        assert!(BAD_PORTS.is_sorted());
        for (ports, expected) in [
            (&[0, 1, 22, 25, 143, 6379, 6697, 10_080][..], true),
            (&[80, 443, 2, 3000, 8000, 8080, 8443, 65_535], false),
        ] {
            for port in ports {
                assert_eq!(is_bad_port(*port), expected, "{port}");
            }
        }
    }

    #[test]
    fn public_addresses() {
        for (addresses, expected) in [
            (
                "8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.167.1.1 192.0.1.1 \
                 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 \
                 64:ff9b::808:808 2002:808:808::1 2001:4860:4860::8888",
                true,
            ),
            (
                "0.0.0.0 0.1.2.3 10.0.0.1 127.0.0.1 127.255.255.254 100.64.0.1 100.127.255.255 169.254.169.254 \
                 172.16.0.1 172.31.255.255 192.168.0.1 192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 \
                 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255",
                false,
            ),
            (
                ":: ::1 fe80::1 fc00::1 fd12:3456::1 ff02::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 \
                 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1::1 2002:a00:1::1 2001::1 2001:0:4136:e378:: 2001:db8::1 \
                 2001:10::1 3fff::1 100::1 5f00::1 4000::1 fec0::1",
                false,
            ),
        ] {
            for address in addresses.split_ascii_whitespace() {
                assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
            }
        }
    }
}
