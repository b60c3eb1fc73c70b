//! Addresses of the public internet.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use crate::builtin::spelling::named;

pub(super) fn refused(host: &str) -> String {
    format!(
        "{} is on this machine or in a private network, which is not allowed",
        named(host)
    )
}

/// Whether pages may be fetched from an address: it is public, and not one of this machine.
pub(super) fn may_be_asked(address: IpAddr) -> bool {
    let embedded = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedded(address).map(IpAddr::V4),
    };
    is_public(address) && !is_own(address) && !embedded.is_some_and(is_own)
}

/// Whether an interface of this machine has the address. Only such an address can be bound to a socket; nothing is sent. If
/// this cannot be determined, returns `true`.
fn is_own(address: IpAddr) -> bool {
    // Documentation addresses, which no machine has. If they can be bound, the system allows any address.
    let [known_v4, known_v6] = [
        IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    ];
    let known = if address.is_ipv4() {
        known_v4
    } else {
        known_v6
    };
    let is_given = |address: IpAddr| match UdpSocket::bind((address, 0)) {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::AddrNotAvailable,
    };
    // In that case, compare with the source address that the system chooses.
    is_given(address) && (!is_given(known) || leads_back(address))
}

/// Whether the system would use the address as the source of packets to it.
fn leads_back(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let sender = UdpSocket::bind((any, 0)).and_then(|socket| {
        // `connect` on UDP only chooses the route.
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    match sender {
        Ok(sender) => sender.ip() == address,
        Err(error) => error.kind() != ErrorKind::NetworkUnreachable,
    }
}

/// Whether an address is public: not of this machine, not of a private network, and not reserved.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_reserved = match address.octets() {
        // Shared address space, private networks.
        [100, second, ..] => second & 0xc0 == 64,
        [172, second, ..] => second & 0xf0 == 16,
        // This network, private networks, loopback, link-local, benchmarking, protocols, documentation,
        // 6to4 relays.
        [0 | 10 | 127, ..]
        | [198, 18 | 19, ..]
        | [169, 254, ..]
        | [192, 168, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => true,
        // Multicast, and everything above.
        [first, ..] => first >= 224,
    };
    !is_reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(embedded) = embedded(address) {
        return is_public_v4(embedded);
    }
    match address.segments() {
        // Protocols (including tunnels), documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // The rest is unassigned.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// The IPv4 address that an IPv6 address embeds.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let ([0, 0, 0, 0, 0, 0xffff, high, low]
    | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
    | [0x2002, high, low, ..]) = address.segments()
    else {
        return None;
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

/// The ports that browsers block: their services could misinterpret an HTTP request.
const BAD_PORTS: [u16; 83] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
    512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
    995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Whether requests to a port are blocked.
pub(super) fn is_bad_port(port: u16) -> bool {
    port == 0 || BAD_PORTS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{BAD_PORTS, is_bad_port, is_own, is_public, may_be_asked};

    /// In a network of its own, whose only interface has public addresses.
    #[test]
    fn public_addresses_of_this_machine() {
        const INSIDE: &str = "PLAINCALL_TEST_HAS_PUBLIC_ADDRESSES";
        #[allow(clippy::disallowed_methods, reason = "a test")]
        if std::env::var_os(INSIDE).is_none() {
            assert!(is_own("127.0.0.1".parse().unwrap()));
            assert!(!is_own("8.8.8.8".parse().unwrap()));
            assert!(may_be_asked("8.8.8.8".parse().unwrap()));
            let script = "ip link set lo up && ip addr add 20.30.40.50/32 dev lo && ip addr add 20.30.40.51/32 dev lo \
                && ip addr add 2600:1f18::7/128 dev lo nodad && exec \"$@\"";
            // The same where sockets may have addresses that no interface has.
            let any = "(echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind; echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind) 2>&-;";
            let any = format!("{any} {script}");
            let test = "builtin::fetch::address::tests::public_addresses_of_this_machine";
            let this = std::env::current_exe().unwrap();
            for script in [script, &any] {
                let inside = Command::new("unshare")
                    .args(["--map-root-user", "--net", "sh", "-c", script, "sh"])
                    .arg(&this)
                    .args(["--exact", test, "--nocapture"])
                    .env(INSIDE, "1")
                    .output();
                match inside {
                    Ok(output)
                        if !String::from_utf8_lossy(&output.stdout).contains("running 1 test") =>
                    {
                        eprintln!("not tried, there can be no other network here: {output:?}");
                    }
                    Ok(output) => assert!(output.status.success(), "{output:?}"),
                    Err(error) => eprintln!("not tried, there is no unshare: {error}"),
                }
            }
            return;
        }
        for (address, expected) in [
            ("20.30.40.50", false),
            ("20.30.40.51", false),
            ("20.30.40.52", true),
            ("2600:1f18::7", false),
            ("2600:1f18::8", true),
            ("::ffff:20.30.40.50", false),
            ("64:ff9b::141e:2832", false),
            ("2002:141e:2833::1", false),
            ("64:ff9b::141e:2834", true),
        ] {
            assert_eq!(
                may_be_asked(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

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
