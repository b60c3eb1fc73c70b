// Programs with few and with many types of their own compile with the declarations of this package.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";

import { examplesOf, PAGES } from "./examples.mjs";

const require = createRequire(import.meta.url);
const folder = join(import.meta.dirname, "consumers");
const COMPILERS = ["typescript", "typescript5"];
/** With `skipLibCheck: false`, declarations are checked too. */
const OPTIONS = { noEmit: true, strict: true, skipLibCheck: false, exactOptionalPropertyTypes: true, target: "es2022", types: [] };
const NODE = { module: "nodenext" };
const BUNDLER = { module: "esnext", moduleResolution: "bundler" };

/** Compiles programs with each compiler. */
function check(name, file, options, compilers = COMPILERS) {
  for (const compiler of compilers) {
    test(`${name}, ${compiler}`, () => {
      const project = join(folder, `${name.replaceAll(" ", "-")}-${compiler}.json`);
      writeFileSync(project, JSON.stringify({ compilerOptions: { ...OPTIONS, ...options }, files: [file].flat() }));
      const program = join(dirname(require.resolve(`${compiler}/package.json`)), "bin/tsc");
      const compile = spawnSync("node", [program, "--project", project], { encoding: "utf8" });
      rmSync(project);
      assert.equal(compile.stdout + compile.stderr, "");
    });
  }
}

check("without the types of a browser", "plain.ts", { ...NODE, lib: ["es2022"] });
check("as CommonJS", "common.cts", { ...NODE, lib: ["es2022"] });
check("for a bundler", "plain.ts", { ...BUNDLER, lib: ["es2022"] });
check("with one entry", "transport.ts", { ...BUNDLER, lib: ["es2022", "dom"] });
check("with the types of a browser", "dom.ts", { ...BUNDLER, lib: ["esnext", "dom", "dom.iterable", "dom.asynciterable"] });
check("with the types of Node", "dom.ts", { ...NODE, lib: ["esnext"], types: ["node"] }, ["typescript"]);
// The declarations of the clients themselves do not all compile.
check("calls and results by name", "named.ts", { ...NODE, lib: ["esnext", "dom"], skipLibCheck: true });
check("with published clients", "clients.ts", { ...NODE, lib: ["esnext", "dom"], types: ["node"], skipLibCheck: true }, ["typescript"]);

const examples = PAGES.flatMap(examplesOf).map((code, index) => {
  const file = join(folder, `example-${index}.mts`);
  writeFileSync(file, code);
  return file;
});
after(() => examples.forEach((file) => rmSync(file)));
check("the examples of the pages", examples, { ...NODE, lib: ["esnext", "dom"], types: ["node"], skipLibCheck: true }, ["typescript"]);
