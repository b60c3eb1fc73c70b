// The packed package in a folder of its own, and programs that use it.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const USE = `const text = "!!!GADGET_START:add\\n!!!ARG:a\\n1\\n!!!GADGET_END\\n";
const box = new Toolbox([{ name: "add", input_schema: { type: "object", properties: { a: { type: "integer" } } } }]);
const find = () => JSON.stringify([parse(text).calls[0].name, box.parse(text).calls[0].arguments.a]);
`;

/** What each program finds. */
export const FOUND = '["add",1]';
/** A module that exports the function `find`. */
export const MODULE = `import { Toolbox } from "plaincall";\nimport { parse } from "plaincall/parse";\n${USE}export { find };\n`;
/** A program that prints what it finds, or reports it from a page. */
export const APP = `import { find } from "./find.mjs";
if (globalThis.document) fetch(location.search.slice(1), { method: "POST", mode: "no-cors", body: find() });
else console.log(find());
`;
/** The same for Node, without a bundler. */
export const COMMONJS = `const { Toolbox } = require("plaincall");\nconst { parse } = require("plaincall/parse");\n${USE}console.log(find());\n`;
/** A worker that answers each message. */
export const WORKER = `import { find } from "./find.mjs";\nself.onmessage = ({ data, source }) => (source ?? self).postMessage([data, find()].join(" "));\n`;

export const page = (script) => `<!doctype html><title>app</title><script type="module" src="${script}"></script>`;

/** Unpacks the package as a registry has it, beside the programs \`find.mjs\`, \`app.mjs\`, \`app.cjs\` and \`worker.mjs\`. */
export function install(folder = mkdtempSync(join(tmpdir(), "plaincall-bundlers-"))) {
  const installed = join(folder, "node_modules/plaincall");
  rmSync(installed, { recursive: true, force: true });
  mkdirSync(installed, { recursive: true });
  const archive = join(import.meta.dirname, "../plaincall-0.1.0.tgz");
  execFileSync("tar", ["--extract", "--file", archive, "--strip-components=1", "--directory", installed]);
  const programs = { "find.mjs": MODULE, "app.mjs": APP, "app.cjs": COMMONJS, "worker.mjs": WORKER, "index.html": page("/app.mjs") };
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(folder, name), text);
  return folder;
}

/** Runs a program, and returns what it prints. */
export function run(program, ...options) {
  return execFileSync(program, options, { encoding: "utf8" }).trim();
}
