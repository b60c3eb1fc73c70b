// Writes the types of the elements of pages by their ids: node elements.mjs OUT PAGE…

import { readFileSync, writeFileSync } from "node:fs";

const [out, ...pages] = process.argv.slice(2);
const members = new Map();
for (const page of pages) {
  for (const [, tag, id] of readFileSync(page, "utf8").matchAll(/<([a-z0-9]+)\b[^>]*? id="([^"]+)"/g)) members.set(id, tag);
}
const lines = [...members].map(([id, tag]) => `  ${JSON.stringify(id)}: HTMLElementTagNameMap["${tag}"];`);
writeFileSync(out, `interface Elements {\n${lines.join("\n")}\n}\n`);
