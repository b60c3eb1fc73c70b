// The packed package without a bundler and with esbuild: every format needs no file beside its output. `bundlers/` has the other bundlers.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import * as esbuild from "esbuild";

import { reportOf } from "./chromium.mjs";
import { COMMONJS, FOUND, install, MODULE, page, run } from "./installed.mjs";

const { CHROMIUM } = process.env;
const skip = CHROMIUM === undefined ? "Chromium is not installed" : false;
const folder = install();
after(() => rmSync(folder, { recursive: true, force: true }));

for (const program of ["app.mjs", "app.cjs"]) {
  test(`Node, ${program}`, () => assert.equal(run("node", join(folder, program)), FOUND));
}

for (const [name, program] of [["import.ts", `${MODULE}console.log(find());\n`], ["require.ts", COMMONJS]]) {
  test(`tsx in a default project, ${name}`, () => {
    writeFileSync(join(folder, name), program);
    assert.equal(run(join(import.meta.dirname, "../../node_modules/.bin/tsx"), join(folder, name)), FOUND);
  });
}

async function bundle(entry, output, options) {
  const outfile = join(folder, output);
  await esbuild.build({ entryPoints: [join(folder, entry)], bundle: true, outfile, logLevel: "silent", ...options });
  return outfile;
}

for (const format of ["esm", "cjs", "iife"]) {
  for (const platform of ["node", "browser"]) {
    test(`esbuild, ${format} for ${platform}`, { skip: platform === "browser" && skip }, async () => {
      const name = format === "esm" ? "app.mjs" : "app.cjs";
      const output = await bundle("app.mjs", `${format}-${platform}/${name}`, { format, platform });
      if (platform === "node") return assert.equal(run("node", output), FOUND);
      copyFileSync(output, join(folder, `${format}-${platform}/app.js`));
      writeFileSync(join(folder, `${format}-${platform}/index.html`), page("/app.js"));
      assert.equal(await reportOf(CHROMIUM, join(folder, `${format}-${platform}`), "/index.html"), FOUND);
    });
  }
}

test("esbuild, with the package as it is installed", async () => {
  const output = await bundle("app.mjs", "external.mjs", { platform: "node", format: "esm", packages: "external" });
  assert.equal(run("node", output), FOUND);
});

// The first message comes while the worker still loads.
const PAGE = `<!doctype html><title>workers</title><script type="module">
const answers = [];
const report = (answer) => answers.push(answer) === 3 && fetch("/report", { method: "POST", body: answers.sort().join("|") });
for (const [name, type] of [["module.mjs", "module"], ["classic.js", "classic"]]) {
  const worker = new Worker("/" + name, { type });
  worker.onmessage = ({ data }) => report(data);
  worker.postMessage(type);
}
await navigator.serviceWorker.register("/classic.js");
const { active } = await navigator.serviceWorker.ready;
navigator.serviceWorker.onmessage = ({ data }) => report(data);
active.postMessage("service");
</script>`;

test("workers and a service worker", { skip }, async () => {
  mkdirSync(join(folder, "workers"));
  await bundle("worker.mjs", "workers/module.mjs", { format: "esm" });
  await bundle("worker.mjs", "workers/classic.js", { format: "iife" });
  writeFileSync(join(folder, "workers/index.html"), PAGE);
  const expected = ["classic", "module", "service"].map((kind) => `${kind} ${FOUND}`).join("|");
  assert.equal(await reportOf(CHROMIUM, join(folder, "workers"), "/index.html"), expected);
});

test("a compiled module", () => {
  const program = `import { readFileSync } from "node:fs";
import { init, parse, PlaincallError } from "plaincall/parse";
const read = (name) => new WebAssembly.Module(readFileSync(new URL(import.meta.resolve("plaincall/" + name))));
const reason = (use) => { try { use(); } catch (error) { return error instanceof PlaincallError ? error.message : String(error); } };
const found = [reason(() => parse("a")), reason(() => init(new Uint8Array()))];
const other = (...sections) => new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, ...sections]));
found.push(reason(() => init(other())));
found.push(reason(() => init(other(0, 15, 9, ...new TextEncoder().encode("plaincall9.9.9")))));
init(read("parse.wasm"));
found.push(parse("a").text);
const { init: initAll, Toolbox } = await import("plaincall");
found.push(reason(() => initAll(read("parse.wasm"))));
initAll(read("gateway.wasm"));
found.push(new Toolbox([]).parse("b").text);
console.log(JSON.stringify(found));
`;
  // Without the module, as after a bundler that knows no conditions.
  const copy = join(folder, "node_modules/plaincall/dist/node");
  const moved = readFileSync(join(copy, "parse.js"), "utf8").replace("../parse.wasm", "../missing/parse.wasm");
  writeFileSync(join(copy, "parse.js"), moved);
  writeFileSync(join(folder, "init.mjs"), program);
  const [missing, ...others] = JSON.parse(run("node", join(folder, "init.mjs")));
  assert.match(missing, /ENOENT.*keep the package external, copy its `dist\/parse.wasm`.*or pass a compiled module to `init`$/);
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  assert.deepEqual(others, [
    "expected a compiled WebAssembly.Module, found Uint8Array",
    "it is not a module of this package; compile `plaincall/gateway.wasm`",
    `the module has version 9.9.9, and the package ${version}; compile the module of this package`,
    "a",
    "it is the module of `plaincall/parse`; compile `plaincall/gateway.wasm`",
    "b",
  ]);
});
