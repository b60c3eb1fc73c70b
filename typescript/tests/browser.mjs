// Checks the vectors of a file in a browser: `node browser.mjs CHROMIUM FILE`.

import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { reportOf } from "./chromium.mjs";

const [chromium, vectors] = process.argv.slice(2);
const PAGE = `<!doctype html><title>vectors</title><script type="module">
const report = (text) => fetch("/report", { method: "POST", body: text });
try {
  const names = { plaincall: "/dist/inline/index.js", "plaincall/parse": "/dist/inline/parse.js" };
  const { checkVectors } = await import("/tests/vectors.mjs");
  const vectors = await (await fetch("/vectors.json")).json();
  const lines = [];
  for (const [name, path] of Object.entries(names)) lines.push(name + ": " + (await checkVectors(await import(path), vectors)));
  await report(lines.join("\\n"));
} catch (error) {
  await report("failed: " + error.stack);
}
</script>`;

const folder = mkdtempSync(join(tmpdir(), "plaincall-page-"));
for (const name of ["dist", "tests"]) symlinkSync(join(import.meta.dirname, "..", name), join(folder, name));
copyFileSync(vectors, join(folder, "vectors.json"));
writeFileSync(join(folder, "index.html"), PAGE);
const result = await reportOf(chromium, folder, "/index.html");
rmSync(folder, { recursive: true });
console.log(result);
process.exit(result.startsWith("failed") ? 1 : 0);
