// Published bundlers, edge runtimes, Jest and package linters with the packed package. Their output runs in Node, workerd and Chromium.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";

import resolve from "@rollup/plugin-node-resolve";
import { rollup } from "rollup";
import * as vite from "vite";
import webpack from "webpack";

import { reportOf } from "../tests/chromium.mjs";
import { COMMONJS, FOUND, install, page, run } from "../tests/installed.mjs";

const { CHROMIUM } = process.env;
const skip = CHROMIUM === undefined ? "Chromium is not installed" : false;
const folder = install(join(import.meta.dirname, "apps"));
const app = join(folder, "app.mjs");
const programs = join(import.meta.dirname, "node_modules/.bin");
const packages = join(import.meta.dirname, "../../node_modules");

/** Runs a program of a package, and fails with its output. */
function use(name, options, cwd = folder) {
  const { status, stdout, stderr } = spawnSync(join(programs, name), options, { cwd, encoding: "utf8", env: ENVIRONMENT });
  assert.equal(status, 0, stdout + stderr);
  return stdout;
}

const ENVIRONMENT = { ...process.env, CI: "1", NEXT_TELEMETRY_DISABLED: "1", WRANGLER_SEND_METRICS: "false", PARCEL_DISABLE_TELEMETRY: "1" };

async function inChromium(output, address) {
  assert.equal(await reportOf(CHROMIUM, join(folder, output), address ?? "/index.html"), FOUND);
}

async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Runs a server of a package while `check` uses its address. */
async function serve(name, options, cwd, check) {
  const port = await freePort();
  const server = spawn(join(programs, name), [...options, "--port", `${port}`], { cwd, env: ENVIRONMENT, detached: true });
  let log = "";
  for (const stream of [server.stdout, server.stderr]) stream.on("data", (text) => (log += text));
  const address = `http://localhost:${port}`;
  try {
    for (const deadline = Date.now() + 120_000; ; ) {
      const answer = await fetch(address).catch(() => undefined);
      if (answer !== undefined) break;
      assert.ok(Date.now() < deadline && server.exitCode === null, `no answer: ${log}`);
      await new Promise((wait) => setTimeout(wait, 300));
    }
    await check(address);
  } finally {
    process.kill(-server.pid);
  }
}

const text = async (address) => (await fetch(address)).text();

test("publint and are-the-types-wrong find nothing", () => {
  const installed = join(folder, "node_modules/plaincall");
  assert.match(use("publint", ["run", "--strict", installed]), /All good!/);
  use("attw", [join(import.meta.dirname, "../plaincall-0.1.0.tgz"), "--exclude-entrypoints", "parse.wasm", "gateway.wasm"]);
});

async function bundleWithWebpack(output, options) {
  const { output: more, ...rest } = options;
  const path = join(folder, output);
  const compiler = webpack({ mode: "production", context: folder, entry: app, performance: false, output: { path, ...more }, ...rest });
  const stats = await new Promise((done, fail) => compiler.run((error, stats) => (error === null ? done(stats) : fail(error))));
  await new Promise((closed) => compiler.close(closed));
  assert.equal(stats.toString({ all: false, errors: true, warnings: true }), "");
}

test("webpack, for Node as a module and as CommonJS", async () => {
  const module = { filename: "app.mjs", module: true, chunkFormat: "module" };
  await bundleWithWebpack("webpack-module", { target: "node", output: module, experiments: { outputModule: true } });
  await bundleWithWebpack("webpack-commonjs", { target: "node", output: { filename: "app.cjs" } });
  for (const path of ["webpack-module/app.mjs", "webpack-commonjs/app.cjs"]) assert.equal(run("node", join(folder, path)), FOUND);
});

test("webpack, for pages", { skip }, async () => {
  await bundleWithWebpack("webpack-web", { target: "web", output: { filename: "app.js" } });
  writeFileSync(join(folder, "webpack-web/index.html"), page("/app.js"));
  await inChromium("webpack-web");
});

const viteOptions = (output, build = {}, more = {}) => ({
  root: folder,
  configFile: false,
  logLevel: "error",
  build: { outDir: join(folder, output), chunkSizeWarningLimit: 10_000, ...build },
  ...more,
});

test("vite, for pages", { skip }, async () => {
  await vite.build(viteOptions("vite"));
  await inChromium("vite");
});

for (const part of ["external", "noExternal"]) {
  test(`vite, for Node, ${part}`, async () => {
    await vite.build(viteOptions(`vite-${part}`, { ssr: app }, { ssr: { [part]: ["plaincall"] } }));
    assert.equal(run("node", join(folder, `vite-${part}/app.mjs`)), FOUND);
  });
}

test("vite, its development server", { skip }, async () => {
  const server = await vite.createServer(viteOptions("unused"));
  await server.listen();
  try {
    await inChromium("", `${server.resolvedUrls.local[0]}index.html`);
  } finally {
    await server.close();
  }
});

test("rollup, for Node and for pages", { skip }, async () => {
  const bundle = await rollup({ input: app, plugins: [resolve()] });
  await bundle.write({ file: join(folder, "rollup/app.mjs"), format: "es" });
  await bundle.write({ file: join(folder, "rollup/app.js"), format: "iife" });
  await bundle.close();
  assert.equal(run("node", join(folder, "rollup/app.mjs")), FOUND);
  writeFileSync(join(folder, "rollup/index.html"), page("/app.js"));
  await inChromium("rollup");
});

test("Parcel, for pages", { skip }, async () => {
  writeFileSync(join(folder, "parcel.html"), page("./app.mjs"));
  use("parcel", ["build", "parcel.html", "--dist-dir", "parcel", "--no-cache"]);
  await inChromium("parcel", "/parcel.html");
});

const RUNTIMES = [
  ["Deno", "@deno/linux-x64-glibc/deno", ["run", "--no-prompt"], ["app.mjs"]],
  ["Bun", "@oven/bun-linux-x64/bin/bun", [], ["app.mjs", "app.cjs"]],
];
for (const [name, path, options, files] of RUNTIMES) {
  test(`${name}, without permissions`, () => {
    for (const file of files) assert.equal(run(join(packages, path), ...options, join(folder, file)), FOUND);
  });
}

test("bun build --compile", () => {
  const output = join(folder, "bun-program");
  run(join(packages, RUNTIMES[1][1]), "build", "--compile", app, "--outfile", output);
  assert.equal(run(output), FOUND);
});

test("Jest in a default project, with `require` and with `import`", () => {
  const project = install(join(import.meta.dirname, "jest"));
  writeFileSync(join(project, "package.json"), '{ "private": true }\n');
  const check = `test("it works", () => expect(find()).toBe('${FOUND}'));\n`;
  writeFileSync(join(project, "require.test.js"), COMMONJS + check);
  writeFileSync(join(project, "import.test.mjs"), `import { find } from "./find.mjs";\n${check}`);
  use("jest", ["require"], project);
  // Jest runs modules only with this option of Node.
  run("node", "--experimental-vm-modules", join(import.meta.dirname, "node_modules/jest/bin/jest.js"), "--rootDir", project, "import");
});

test("wrangler, in workerd", async () => {
  const worker = join(folder, "wrangler");
  mkdirSync(worker, { recursive: true });
  writeFileSync(join(worker, "worker.mjs"), 'import { find } from "../find.mjs";\nexport default { fetch: () => new Response(find()) };\n');
  writeFileSync(join(worker, "wrangler.toml"), 'name = "app"\nmain = "worker.mjs"\ncompatibility_date = "2026-01-01"\n');
  await serve("wrangler", ["dev", "--ip", "127.0.0.1"], worker, async (address) => assert.equal(await text(address), FOUND));
});

const NEXT = {
  "app/layout.jsx": "export default ({ children }) => <html><body>{children}</body></html>;\n",
  "app/page.jsx": `"use client";
import { useEffect } from "react";
import { find } from "../find.mjs";
export default function Page() {
  useEffect(() => void fetch(location.search.slice(1), { method: "POST", mode: "no-cors", body: find() }), []);
  return <p>{find()}</p>;
}\n`,
  "app/server/route.js": 'import { find } from "../../find.mjs";\nexport const dynamic = "force-dynamic";\nexport const GET = () => new Response(find());\n',
  "app/edge/route.js": 'import { find } from "../../find.mjs";\nexport const runtime = "edge";\nexport const GET = () => new Response(find());\n',
  "package.json": '{ "private": true }\n',
};

for (const bundler of ["turbopack", "webpack"]) {
  test(`Next with ${bundler}: server, client and edge`, { skip }, async () => {
    const next = install(join(import.meta.dirname, `next-${bundler}`));
    for (const [path, content] of Object.entries(NEXT)) {
      mkdirSync(dirname(join(next, path)), { recursive: true });
      writeFileSync(join(next, path), content);
    }
    const root = JSON.stringify(import.meta.dirname);
    writeFileSync(join(next, "next.config.mjs"), `export default { turbopack: { root: ${root} }, outputFileTracingRoot: ${root} };\n`);
    use("next", ["build", `--${bundler}`], next);
    await serve("next", ["start"], next, async (address) => {
      assert.equal(await text(`${address}/server`), FOUND);
      assert.equal(await text(`${address}/edge`), FOUND);
      await inChromium("", `${address}/`);
    });
  });
}
