// The examples of the documents run.

import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { CALL, Model } from "./scripted.mjs";

for (const page of ["docs/typescript.md", "typescript/README.md"]) {
  test(page, async () => {
    const text = readFileSync(join(process.env.ROOT, page), "utf8");
    const examples = [...text.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code]) => code);
    assert.ok(examples.length > 0);
    globalThis.fetch = new Model(CALL, "It is mild.").fetch;
    console.assert = assert.ok;
    for (const [index, code] of examples.entries()) {
      const file = join(import.meta.dirname, `example-${process.pid}-${index}.mjs`);
      writeFileSync(file, code);
      try {
        await import(file);
      } finally {
        rmSync(file);
      }
    }
  });
}
