// Checks the vectors of a file in a browser: `node browser.mjs CHROMIUM FILE`.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const [chromium, vectors] = process.argv.slice(2);
const ROOT = join(import.meta.dirname, "..");
const DEADLINE = 180_000;
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };
const PAGE = `<!doctype html><title>vectors</title><script type="module">
const report = (text) => fetch("/report", { method: "POST", body: text });
try {
  const names = { plaincall: "/dist/index.js", "plaincall/parse": "/dist/parse.js" };
  const { checkVectors } = await import("/tests/vectors.mjs");
  const vectors = await (await fetch("/vectors.json")).json();
  const lines = [];
  for (const [name, path] of Object.entries(names)) lines.push(name + ": " + (await checkVectors(await import(path), vectors)));
  await report(lines.join("\\n"));
} catch (error) {
  await report("failed: " + error.stack);
}
</script>`;

let finish;
const finished = new Promise((resolve) => {
  finish = resolve;
});
const server = createServer((request, response) => {
  const send = (type, body) => response.writeHead(200, { "content-type": type }).end(body);
  if (request.url === "/") return send("text/html", PAGE);
  if (request.url === "/vectors.json") return send(TYPES[".json"], readFileSync(vectors));
  if (request.url === "/report") {
    let text = "";
    request.on("data", (chunk) => (text += chunk)).on("end", () => {
      send("text/plain", "");
      finish(text);
    });
    return;
  }
  const path = normalize(request.url);
  if (!/^\/(dist|tests)\//.test(path)) return response.writeHead(404).end();
  send(TYPES[extname(path)], readFileSync(join(ROOT, path)));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const profile = mkdtempSync(join(tmpdir(), "plaincall-browser-"));
const options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`];
const browser = spawn(chromium, [...options, `http://127.0.0.1:${server.address().port}/`], { stdio: "ignore" });
const ended = new Promise((resolve) => browser.on("exit", resolve));
const deadline = setTimeout(() => finish("failed: the browser took too long"), DEADLINE);
const result = await Promise.race([finished, ended.then((code) => `failed: the browser ended with ${code}`)]);
clearTimeout(deadline);
browser.kill();
await ended;
server.close();
server.closeAllConnections();
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
console.log(result);
process.exit(result.startsWith("failed") ? 1 : 0);
