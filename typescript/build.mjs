// Builds the package in this folder: `node build.mjs TSC PARSE_WASM GATEWAY_WASM`.
//
// TypeScript is compiled twice, to ES modules and to CommonJS. An entry is one of them, and where its WebAssembly module comes from: a file
// (Node), the text of a module (bundlers, workers, Deno and Bun), or an import that the runtime compiles (edge runtimes).

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";

const [tsc, ...modules] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const ENTRIES = { index: "gateway", openai: "gateway", parse: "parse" };
const COMMONJS = ["--module", "commonjs", "--moduleResolution", "bundler", "--verbatimModuleSyntax", "false", "--outDir", "dist/cjs"];

/** The code before the exports of an entry, by the folder of its file. */
const SOURCES = {
  node: (name) => ({
    imports: 'import { readFileSync } from "node:fs";',
    module: `new WebAssembly.Module(readFileSync(new URL("../${name}.wasm", import.meta.url)))`,
  }),
  inline: (name) => ({
    imports: `import { compile } from "../esm/inline.js";\nimport { base64 } from "./${name}.wasm.js";`,
    module: "compile(base64)",
  }),
  edge: (name) => ({ imports: `import module from "../${name}.wasm?module";`, module: "module" }),
};

function write(path, ...lines) {
  writeFileSync(path, `${lines.join("\n")}\n`);
}

rmSync("dist", { recursive: true, force: true });
for (const options of [["--outDir", "dist/esm"], COMMONJS]) execFileSync("node", [tsc, ...options], { stdio: "inherit" });
for (const folder of [...Object.keys(SOURCES), "cjs/node"]) mkdirSync(`dist/${folder}`);
write("dist/cjs/package.json", '{ "type": "commonjs" }');
for (const path of modules) {
  copyFileSync(path, `dist/${basename(path)}`);
  write(`dist/inline/${basename(path)}.js`, `export const base64 = "${readFileSync(path).toString("base64")}";`);
}
for (const [entry, name] of Object.entries(ENTRIES)) {
  const isAll = name === "gateway";
  for (const [folder, source] of Object.entries(SOURCES)) {
    const { imports, module } = source(name);
    const load = `setModule(() => ${module}, ${isAll}, "${version}");`;
    write(`dist/${folder}/${entry}.js`, imports, 'import { setModule } from "../esm/core.js";', load, `export * from "../esm/${entry}.js";`);
  }
  write(
    `dist/cjs/node/${entry}.js`,
    '"use strict";',
    'const { readFileSync } = require("node:fs");',
    'const { join } = require("node:path");',
    `require("../core.js").setModule(() => new WebAssembly.Module(readFileSync(join(__dirname, "../../${name}.wasm"))), ${isAll}, "${version}");`,
    `module.exports = require("../${entry}.js");`,
  );
  if (entry === "index") continue;
  // For tools that do not read `exports`.
  mkdirSync(entry, { recursive: true });
  const fields = { main: `../dist/cjs/node/${entry}.js`, module: `../dist/inline/${entry}.js`, types: `../dist/cjs/${entry}.d.ts` };
  write(`${entry}/package.json`, JSON.stringify(fields, null, 2));
}
