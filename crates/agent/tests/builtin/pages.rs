//! `fetch_url`, against a server on this machine.

use std::time::Duration;

use plaincall_agent::builtin::Builtin;
use plaincall_testkit::model_server::{Framing, Head, ModelServer, Script, Then};

use crate::builtin::scene::Scene;

fn page(content_type: &str, body: impl Into<Vec<u8>>) -> Script {
    Script::new(
        Head::new(200).header("content-type", content_type),
        vec![body.into()],
    )
}

fn redirect(status: u16, to: impl Into<String>) -> Script {
    Script::new(Head::new(status).header("location", to), vec![])
}

fn private(set: Builtin) -> Builtin {
    set.fetch_from_private_networks()
        .fetch_timeout(Duration::from_secs(20))
}

fn url(server: &ModelServer) -> String {
    format!("http://{}", server.address)
}

/// Returns the result for one page, or for several in turn.
async fn fetched(scripts: Vec<Script>) -> String {
    let server = ModelServer::start(scripts).await;
    let scene = Scene::with(private);
    let found = scene
        .call(
            "fetch_url",
            &[("url", &format!("{}/a/b?c=d", url(&server)))],
        )
        .await;
    assert_eq!(server.left(), 0, "{found}");
    found.replace(&url(&server), "URL")
}

#[tokio::test]
async fn pages_as_text() {
    for (content_type, body, expected) in [
        (
            "text/html; charset=utf-8",
            &b"<title>T</title><h1>H</h1><p>a &amp; <a href=../x>b</a>"[..],
            "[`URL/a/b?c=d`, text/html, 55 bytes]\nT\n\n# H\n\na & [b](URL/x)\n",
        ),
        (
            "text/plain",
            b"a <b>\n",
            "[`URL/a/b?c=d`, text/plain, 6 bytes]\na <b>\n",
        ),
        (
            "Application/JSON",
            b"{}",
            "[`URL/a/b?c=d`, application/json, 2 bytes]\n{}\n",
        ),
        (
            "application/feed+xml",
            b"<a/>",
            "[`URL/a/b?c=d`, application/feed+xml, 4 bytes]\n<a/>\n",
        ),
        (
            "text/html; charset=\"ISO-8859-1\"",
            b"gr\xfcn",
            "[`URL/a/b?c=d`, text/html, 4 bytes]\ngr\u{fc}n\n",
        ),
        (
            "text/plain",
            b"gr\xfcn",
            "[`URL/a/b?c=d`, text/plain, 4 bytes]\ngr\u{fffd}n\n",
        ),
        ("text/plain", b"", "[`URL/a/b?c=d`, text/plain, 0 bytes]\n"),
        (
            "image/png",
            b"\x89PNG",
            "error: `URL/a/b?c=d` is `image/png`, not text",
        ),
        (
            "text/html",
            b"\x1f\x8b\x08\x00\x00",
            "error: `URL/a/b?c=d` is not text: it is an archive",
        ),
        (
            "application/octet-stream",
            b"a",
            "error: `URL/a/b?c=d` is `application/octet-stream`, not text",
        ),
    ] {
        assert_eq!(
            fetched(vec![page(content_type, body)]).await,
            expected,
            "{content_type}"
        );
    }
    let encoded = |encoding: &str| {
        let head = Head::new(200).header("content-type", "text/plain");
        Script::new(
            head.header("content-encoding", encoding),
            vec![b"a\n".to_vec()],
        )
    };
    assert_eq!(
        fetched(vec![encoded("br")]).await,
        "error: `URL/a/b?c=d` has the unsupported encoding `br`"
    );
    assert_eq!(
        fetched(vec![encoded("Identity")]).await,
        "[`URL/a/b?c=d`, text/plain, 2 bytes]\na\n"
    );
    let unnamed = Script::new(Head::new(200), vec![b"a\0b".to_vec()]);
    assert_eq!(
        fetched(vec![unnamed]).await,
        "error: `URL/a/b?c=d` is not text: it contains NUL bytes"
    );
    // The text of a page can be longer than the page.
    let swollen = page("text/html", "<p>text text text".repeat(100_000));
    let found = fetched(vec![swollen]).await;
    assert!(
        found.starts_with("[`URL/a/b?c=d`, text/html, 1700000 bytes, truncated]\ntext"),
        "{}",
        &found[..100]
    );
    // At most as much of a page is read as a result can contain.
    let long = fetched(vec![page("text/plain", "x".repeat((4 << 20) + 1))]).await;
    assert!(
        long.starts_with("[`URL/a/b?c=d`, text/plain, 4194304 bytes, truncated]\nxxx"),
        "{}",
        &long[..100]
    );
    assert!(
        long.contains("[output truncated: first"),
        "the run cuts what is left"
    );
}

/// The result for a page at this address: its note and its text.
async fn read_at(path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> (String, String) {
    let server = ModelServer::start(vec![page(content_type, body)]).await;
    let scene = Scene::with(private);
    let address = format!("{}{path}", url(&server));
    let found = scene.call("fetch_url", &[("url", &address)]).await;
    let (note, text) = found.split_once("]\n").unwrap();
    (note.to_owned(), text.replace(&url(&server), "URL"))
}

#[tokio::test]
async fn html_as_text() {
    for (html, expected) in [
        ("", ""),
        ("just text", "just text\n"),
        ("<p>one<p>two", "one\n\ntwo\n"),
        ("<div>one</div><div>two</div>", "one\ntwo\n"),
        ("a<br>b<br/>c", "a\nb\nc\n"),
        (" a \n b\t<b>c</b>d ", "a b cd\n"),
        ("<h2> Title </h2>text", "## Title\n\ntext\n"),
        ("<ul><li>a<li>b</ul>c", "- a\n- b\n\nc\n"),
        (
            "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
            "a | b\n1 | 2\n",
        ),
        ("<pre>a\n  b &lt;\n</pre>c", "a\n  b <\n\nc\n"),
        ("x<script>if (a < b) '</p>'</script>y", "xy\n"),
        ("x<SCRIPT>never closed", "x\n"),
        ("x<style>p{}</STYLE >y", "xy\n"),
        ("x<!-- a > b -->y<!doctype html>z", "xyz\n"),
        ("x<!-- never closed", "x\n"),
        ("1 < 2 && 3 > 2", "1 < 2 && 3 > 2\n"),
        ("a &lt;b&gt; &amp;amp;", "a <b> &amp;\n"),
        (
            "<a href='../c?x=1&amp;y=2'>see</a> it",
            "[see](URL/c?x=1&y=2) it\n",
        ),
        ("<a href=x>a <a href=y>b", "[a](URL/a/x) [b](URL/a/y)\n"),
        ("<a href='#top'>up</a> <a name=x>here</a>", "up here\n"),
        ("<a href='javascript:alert(1)'>a</a>", "a\n"),
        ("<a href=x><img src=y></a>z", "z\n"),
        (
            "<a title='>' data-a=\"<b>\" href=\"x\">a</a>",
            "[a](URL/a/x)\n",
        ),
        (
            "<img alt='A &quot;map&quot;' src=x>",
            "[image: A \"map\"]\n",
        ),
        ("<img alt='' src=x>a", "a\n"),
        ("<p title=\"don't\">a</p>b", "a\n\nb\n"),
        ("<p don't>a</p>b", "a\n\nb\n"),
        ("<title>T</title><body><p>a", "T\n\na\n"),
        ("<svg><text>x</text></svg>a", "a\n"),
        ("a<p", "a\n"),
        ("a<", "a<\n"),
        ("a</", "a</\n"),
        ("<a = / == =x ' \" href>b</a>", "b\n"),
        (
            "a &amp; b &lt;c&gt; &#65;&#x42;&Auml;&rarr;",
            "a & b <c> ABÄ→\n",
        ),
        ("&#0;&#xD800;&amp;lt;", "\u{fffd}\u{fffd}&lt;\n"),
        (
            "&unknown; & &; &#; &#x; &ä;",
            "&unknown; & &; &#; &#x; &ä;\n",
        ),
        ("a&nbsp;b so&shy;ft", "a b soft\n"),
    ] {
        assert_eq!(
            read_at("/a/b", "text/html", html).await.1,
            expected,
            "{html}"
        );
    }
}

/// Pages with texts longer than themselves: each link gets the whole address of the page.
#[tokio::test]
async fn pages_that_swell() {
    let path = format!("/{}/", "a".repeat(8_000));
    for (part, is_cut, lacks_addresses) in [
        ("<a href=x>y</a>", false, true),
        ("<a href=x></a>", false, true),
        ("text and text ", true, false),
    ] {
        let html = part.repeat((3 << 19) / part.len());
        let (note, text) = read_at(&path, "text/html", html).await;
        assert!(text.len() < 2 << 20, "{part}: {}", text.len());
        assert_eq!(note.contains(", truncated"), is_cut, "{part}");
        let lacks = note.contains(", last links without URLs");
        assert_eq!(lacks, lacks_addresses, "{part}");
    }
}

/// Unclosed elements, repeated many times, in texts where scanning the rest again would take minutes.
#[tokio::test]
async fn pages_that_mean_harm() {
    for part in [
        "<",
        "</",
        "<a",
        "<a href=",
        "<a href=x>",
        "<!--",
        "<script>",
        "<p>",
        "<pre>",
        "&",
        "&amp;",
        "<a href=\"",
        "' ",
        "<td>",
        "</a>",
        "<svg></",
        "\n",
        " ",
        "= ",
        "<a x=1 ",
        "<![CDATA[",
    ] {
        read_at("/", "text/html", part.repeat((1 << 17) / part.len())).await;
    }
    let breaks = format!("<pre>{}", "<br>\n".repeat(200_000));
    read_at("/", "text/html", breaks).await;
}

#[tokio::test]
async fn sets_of_characters() {
    for (content_type, bytes, expected) in [
        ("text/html", "ä".as_bytes(), "ä\n"),
        ("text/html; charset=utf-8", b"\xef\xbb\xbfa", "a\n"),
        ("text/html; charset=iso-8859-1", b"\xe4\x80", "ä€\n"),
        (
            "text/html; charset=Shift_JIS",
            b"\x93\xfa\x96\x7b",
            "日本\n",
        ),
        ("text/html; charset=utf-8", b"\xe4", "\u{fffd}\n"),
        ("text/html", b"<meta charset=\"ISO-8859-1\">\xe4", "ä\n"),
        (
            "text/html",
            b"<meta content='text/html; charset=koi8-r'>\xc1",
            "а\n",
        ),
        ("text/html", b"<meta charset=utf-16>a", "a\n"),
        ("text/html; charset=unknown", b"\xe4", "\u{fffd}\n"),
    ] {
        assert_eq!(
            read_at("/", content_type, bytes).await.1,
            expected,
            "{content_type}"
        );
    }
}

#[tokio::test]
async fn pages_that_do_not_come() {
    let not_found = Script::new(
        Head::new(404).header("content-type", "text/html"),
        vec![b"<p>Not <b>here".to_vec()],
    );
    assert_eq!(
        fetched(vec![not_found]).await,
        "error: `URL/a/b?c=d` returned status 404 (Not Found) | Not here\n"
    );
    let broken = page("text/plain", "abc")
        .framing(Framing::Length)
        .only(0, Then::Break);
    let found = fetched(vec![broken]).await;
    assert!(
        found.starts_with("error: the server of `URL/a/b?c=d` ended its response early")
            && found.ends_with("; try again later, or try another page"),
        "{found}"
    );

    // An empty one.
    let server = ModelServer::start(vec![Script::nothing(Then::Stall)]).await;
    let scene = Scene::with(|set| private(set).fetch_timeout(Duration::from_millis(200)));
    let found = scene.call("fetch_url", &[("url", &url(&server))]).await;
    assert!(found.contains("has not started to respond"), "{found}");
    // A missing one.
    let gone = url(&server);
    drop(server);
    let found = scene.call("fetch_url", &[("url", &gone)]).await;
    assert!(
        found.contains("cannot be reached") || found.contains("closed the connection"),
        "{found}"
    );
}

#[tokio::test]
async fn redirects() {
    // Rules of the program are about addresses, so another address on the same server is another call.
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(
            fetched(vec![redirect(status, "/x")]).await,
            "error: `URL/a/b?c=d` redirects to `URL/x`; fetch that URL to follow it"
        );
    }
    let long = format!("/{}", "x".repeat(2_000));
    let found = fetched(vec![redirect(302, &*long)]).await;
    assert!(
        found.contains(&format!("`URL{long}`; fetch that URL")),
        "{found}"
    );
    for (to, expected) in [
        (
            "https://elsewhere.example/x",
            "error: `URL/a/b?c=d` redirects to another server: `https://elsewhere.example/x`; fetch that URL to follow it",
        ),
        ("b?c=d", "error: `URL/a/b?c=d` redirects to itself"),
        (
            "../z",
            "error: `URL/a/b?c=d` redirects to `URL/z`; fetch that URL to follow it",
        ),
        (
            "//elsewhere.example",
            "error: `URL/a/b?c=d` redirects to another server: `http://elsewhere.example/`; fetch that URL to follow it",
        ),
        (
            "file:///etc/passwd",
            "error: `file:///etc/passwd` cannot be fetched: only http:// and https:// URLs are supported",
        ),
        (
            "http://u:p@elsewhere.example/",
            "error: `http://u:p@elsewhere.example/` cannot be fetched: the URL contains a user name or a password; remove it",
        ),
        (
            "http://[",
            "error: `URL/a/b?c=d` redirects to `http://[`, which is not a valid URL",
        ),
    ] {
        assert_eq!(fetched(vec![redirect(302, to)]).await, expected);
    }
    // Without an address it is a page.
    let plain = Script::new(
        Head::new(302).header("content-type", "text/plain"),
        vec![b"x".to_vec()],
    );
    assert!(
        fetched(vec![plain])
            .await
            .contains("returned status 302 (Found)")
    );
}

/// Addresses of this machine and of private networks, in every spelling, and names that resolve to them.
#[tokio::test]
async fn addresses_that_are_nobodys_business() {
    let server = ModelServer::start(vec![]).await;
    let port = server.address.port();
    let scene = Scene::new();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "LOCALHOST",
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "[fd00::1]",
        "[fe80::1]",
        "１２７.0.0.1",
    ] {
        let found = scene
            .call("fetch_url", &[("url", &format!("http://{host}:{port}/"))])
            .await;
        assert!(
            found.starts_with("error: ")
                && found.contains("is on this machine or in a private network"),
            "{host}: {found}"
        );
    }
    assert_eq!(server.seen().requests.len(), 0);
    for (url, expected) in [
        (
            "file:///etc/passwd",
            "error: `file:///etc/passwd` cannot be fetched: only http:// and https:// URLs are supported",
        ),
        (
            "ftp://example.org/",
            "error: `ftp://example.org/` cannot be fetched: only http:// and https:// URLs are supported",
        ),
        (
            "example.org",
            "error: `example.org` is not a valid URL (relative URL without a base); example: https://example.org/page",
        ),
        (
            "http://example.org:6379/",
            "error: `http://example.org:6379/` cannot be fetched: port 6379 is not allowed",
        ),
        (
            &*format!("http://{}", "a".repeat(8 << 10)),
            &*format!(
                "error: `http://{}…` cannot be fetched: the URL is longer than 8 KiB",
                "a".repeat(193)
            ),
        ),
        (
            "http://",
            "error: `http://` is not a valid URL (empty host); example: https://example.org/page",
        ),
        (
            "http://a:b@127.0.0.1/",
            "error: `http://a:b@127.0.0.1/` cannot be fetched: the URL contains a user name or a password; remove it",
        ),
        (
            "",
            "error: \"\" is not a valid URL (relative URL without a base); example: https://example.org/page",
        ),
    ] {
        scene.check("fetch_url", &[("url", url)], expected).await;
    }
    // Listed hosts exclude all others, and do not allow private addresses either.
    let scene = Scene::with(|set| set.fetch_hosts(["localhost", "docs.example"]));
    scene.check("fetch_url", &[("url", "http://elsewhere.example/")], "error: `http://elsewhere.example/` cannot be fetched: allowed hosts are localhost, docs.example").await;
    scene
        .check_parts(
            "fetch_url",
            &[("url", &format!("http://localhost:{port}/"))],
            &["is on this machine or in a private network"],
        )
        .await;
    assert_eq!(server.seen().requests.len(), 0);
}

/// The question, which is withdrawn when the call ends.
#[tokio::test]
async fn requests_to_the_server() {
    let server = ModelServer::start(vec![page("text/plain", "a")]).await;
    let scene = Scene::with(private);
    scene
        .call(
            "fetch_url",
            &[("url", &format!(" {}/x#part\n", url(&server)))],
        )
        .await;
    let head = server.seen().requests[0].head.clone();
    assert!(head.starts_with("get /x http/1.1\r\n"), "{head}");
    for part in [
        "user-agent: plaincall/",
        "accept: text/html",
        "accept-encoding: identity",
    ] {
        assert!(head.to_lowercase().contains(part), "{head}");
    }
    for part in ["cookie", "authorization", "referer"] {
        assert!(!head.to_lowercase().contains(part), "{head}");
    }
}
