// The examples of the documents run.

import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { examplesOf, PAGES } from "./examples.mjs";
import { CALL, Model } from "./scripted.mjs";

for (const page of PAGES) {
  test(page, async () => {
    globalThis.fetch = new Model(CALL, "It is mild.").fetch;
    console.assert = assert.ok;
    for (const [index, code] of examplesOf(page).entries()) {
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
