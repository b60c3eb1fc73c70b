// Published bundlers find the WebAssembly modules of the packed package. Their output runs in Node, and in Chromium if there is one.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import * as esbuild from "esbuild";
import * as vite from "vite";
import webpack from "webpack";

import { reportOf } from "./chromium.mjs";

const { CHROMIUM } = process.env;
const skip = CHROMIUM === undefined ? "Chromium is not installed" : false;
const APP = `import { Toolbox } from "plaincall";
import { parse } from "plaincall/parse";
const text = "!!!GADGET_START:add\\n!!!ARG:a\\n1\\n!!!GADGET_END\\n";
const box = new Toolbox([{ name: "add", input_schema: { type: "object", properties: { a: { type: "integer" } } } }]);
const found = JSON.stringify([parse(text).calls[0].name, box.parse(text).calls[0].arguments.a]);
if (globalThis.document) await fetch(location.search.slice(1), { method: "POST", mode: "no-cors", body: found });
else console.log(found);
`;
const FOUND = '["add",1]';

const folder = mkdtempSync(join(tmpdir(), "plaincall-bundlers-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const installed = join(folder, "node_modules/plaincall");
mkdirSync(installed, { recursive: true });
execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: join(import.meta.dirname, "..") });
const [archive] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
execFileSync("tar", ["--extract", "--file", join(folder, archive), "--strip-components=1", "--directory", installed]);
const app = join(folder, "app.mjs");
writeFileSync(app, APP);
const page = (script) => `<!doctype html><title>app</title><script type="module" src="${script}"></script>`;
writeFileSync(join(folder, "index.html"), page("/app.mjs"));

function runInNode(...path) {
  assert.equal(execFileSync("node", [join(folder, ...path)], { encoding: "utf8" }).trim(), FOUND);
}

async function runInChromium(output, address = "/index.html") {
  assert.equal(await reportOf(CHROMIUM, join(folder, output), address), FOUND);
}

/** Bundles with webpack. Any warning but that of large files is an error. */
async function bundleWithWebpack(target, output) {
  const compiler = webpack({
    mode: "production",
    context: folder,
    entry: app,
    target,
    performance: false,
    output: { path: join(folder, output), filename: "app.mjs", module: true, chunkFormat: "module" },
    experiments: { outputModule: true },
  });
  const stats = await new Promise((resolve, reject) => {
    compiler.run((error, stats) => (error === null ? resolve(stats) : reject(error)));
  });
  await new Promise((resolve) => compiler.close(resolve));
  assert.equal(stats.toString({ all: false, errors: true, warnings: true }), "");
  writeFileSync(join(folder, output, "index.html"), page("app.mjs"));
}

test("webpack, for Node", async () => {
  await bundleWithWebpack("node", "webpack-node");
  runInNode("webpack-node/app.mjs");
});

test("webpack, for browsers", { skip }, async () => {
  await bundleWithWebpack("web", "webpack-web");
  await runInChromium("webpack-web");
});

const viteOptions = (output, build = {}) => ({
  root: folder,
  configFile: false,
  logLevel: "error",
  build: { outDir: join(folder, output), ...build },
});

test("vite, for browsers", { skip }, async () => {
  await vite.build(viteOptions("vite"));
  await runInChromium("vite");
});

test("vite, for Node", async () => {
  await vite.build({ ...viteOptions("vite-node", { ssr: app }), ssr: { external: ["plaincall"] } });
  runInNode("vite-node/app.mjs");
});

test("vite, its development server", { skip }, async () => {
  const server = await vite.createServer({ ...viteOptions("unused"), optimizeDeps: { exclude: ["plaincall"] } });
  await server.listen();
  try {
    await runInChromium("", `http://localhost:${server.config.server.port ?? 5173}/index.html`);
  } finally {
    await server.close();
  }
});

for (const platform of ["node", "browser"]) {
  test(`esbuild, for ${platform}, with copied modules`, { skip: platform === "browser" && skip }, async () => {
    const output = `esbuild-${platform}`;
    const outfile = join(folder, output, "app.mjs");
    await esbuild.build({ entryPoints: [app], bundle: true, platform, format: "esm", outfile, logLevel: "silent" });
    for (const name of ["parse.wasm", "gateway.wasm"]) copyFileSync(join(installed, "dist", name), join(folder, output, name));
    writeFileSync(join(folder, output, "index.html"), page("app.mjs"));
    if (platform === "node") runInNode(output, "app.mjs");
    else await runInChromium(output);
  });
}

test("esbuild, with the package as it is installed", async () => {
  const outfile = join(folder, "esbuild-external/app.mjs");
  await esbuild.build({ entryPoints: [app], bundle: true, platform: "node", format: "esm", packages: "external", outfile });
  runInNode("esbuild-external/app.mjs");
});
