// Opens a page in Chromium, and returns what it reports.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const DEADLINE = 180_000;
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

/**
 * Serves a folder, opens `page`, and returns the body of the page's request to `/report`. A page of another server gets the address
 * as its query.
 */
export async function reportOf(chromium, folder, page) {
  let finish;
  const finished = new Promise((resolve) => {
    finish = resolve;
  });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (pathname === "/report") {
      let text = "";
      request.on("data", (chunk) => (text += chunk)).on("end", () => {
        response.end();
        finish(text);
      });
      return;
    }
    try {
      const content = readFileSync(join(folder, normalize(pathname)));
      response.writeHead(200, { "content-type": TYPES[extname(pathname)] ?? "text/plain" }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${server.address().port}`;
  const profile = mkdtempSync(join(tmpdir(), "plaincall-browser-"));
  const options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`];
  const url = new URL(page, address);
  url.search = `${address}/report`;
  const browser = spawn(chromium, [...options, url.href], { stdio: "ignore", detached: true });
  const ended = new Promise((resolve) => browser.on("exit", resolve));
  const deadline = setTimeout(() => finish("failed: the browser took too long"), DEADLINE);
  try {
    return await Promise.race([finished, ended.then((code) => `failed: the browser ended with ${code}`)]);
  } finally {
    clearTimeout(deadline);
    try {
      // With its other processes, which would still write its profile.
      process.kill(-browser.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
    await ended;
    server.close();
    server.closeAllConnections();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}
