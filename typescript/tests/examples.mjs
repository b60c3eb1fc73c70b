// The examples of the pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const PAGES = ["docs/typescript.md", "typescript/README.md"];

export function examplesOf(page) {
  const text = readFileSync(join(process.env.ROOT, page), "utf8");
  const examples = [...text.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code]) => code);
  assert.ok(examples.length > 0);
  // Those who copy an example pass the finish reason of their client.
  assert.doesNotMatch(examples.join(""), /stop: "/);
  return examples;
}
