// Puts the inspector into one file: node build.mjs MODULE FOLDER-OF-SHARED-PARTS SPEC OUT
//
// The page may run one script and use one style sheet, which its policy names by their hashes.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";
import { buildSync } from "esbuild";

const [module, shared, spec, out] = process.argv.slice(2);
const read = (path) => readFileSync(path, "utf8");
const SCRIPTS = ["elements", "calls", "filters", "head", "transcript", "details", "views", "timeline", "graph"];

const { outputFiles: [main] } = buildSync({ entryPoints: ["src/main.ts"], bundle: true, format: "iife", target: "es2022", charset: "utf8", write: false });
const script = [...SCRIPTS.map((name) => read(`${shared}/${name}.js`)), main.text].join("\n");
const style = [read(`${shared}/colors.css`), read(`${shared}/style.css`), read("style.css")].join("\n");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `style-src ${hash(style)}`,
  `script-src ${hash(script)} 'wasm-unsafe-eval'`,
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const example = JSON.stringify({
  ...Object.fromEntries(["valid", "invalid", "truncated"].map((name) => [name, read(`example/${name}.txt`)])),
  tools: read("example/tools.json"),
});

/** Links to the sections that diagnostics name, as the website has them. */
const rules = ["common", "block", "emoji"].flatMap((name) =>
  [...read(`${spec}/${name}.md`).matchAll(/^#+ (([\d.]*\d)\.? .*)$/gm)].map(([, heading, number]) => {
    const anchor = heading.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-");
    return `<a href="spec/${name}.html#${anchor}">spec/${name}.md ${number}</a>`;
  }));

const parts = {
  "@POLICY@": policy,
  "@STYLE@": style,
  "@SECTIONS@": read(`${shared}/sections.html`),
  "@RULES@": rules.join("\n"),
  "@EXAMPLE@": example.replaceAll("<", "\\u003c"),
  "@MODULE@": deflateRawSync(readFileSync(module), { level: 9 }).toString("base64"),
  "@SCRIPT@": script,
};
for (const part of [script, style]) if (/<\/(script|style)/i.test(part)) throw new Error("a part of the page ends its element");
const page = read("page.html").replace(/@[A-Z]+@/g, (name) => parts[name] ?? name);
writeFileSync(out, page);
console.log(`== ${out}: ${page.length} bytes`);
