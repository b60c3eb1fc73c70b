// The examples of the specification and the transcripts, with what the command finds in them.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The root of the repository, and the command. */
const { ROOT, PLAINCALL } = process.env;
const TOPICS = ["block", "common", "emoji", "limits"];

/** Returns the dialect of an example for this package. */
function dialectOf(options) {
  const names = {
    anywhere: "markersAnywhere",
    self_closing: "selfClosing",
    leading_reasoning: "leadingReasoning",
    in_reasoning: "inReasoning",
  };
  return Object.fromEntries(Object.entries(options).map(([name, value]) => [names[name] ?? name, value]));
}

/** Returns the options of the command for the dialect of an example, or undefined if it has none. */
function commandOptions(dialect) {
  const options = [];
  for (const [name, value] of Object.entries(dialect)) {
    if (name === "syntax") options.push("--syntax", value);
    else if (["start", "end", "arg"].includes(name)) options.push(`--${name}-prefix=${value}`);
    else if (name === "key") options.push(`--key=${value}`);
    else if (["escaped", "strict", "self_closing", "in_reasoning"].includes(name)) options.push(`--${name.replace("_", "-")}`);
    else if (name === "anywhere") options.push("--markers=anywhere");
    else if (name === "reasoning") options.push("--reasoning", ...value);
    else return undefined;
  }
  return options;
}

function run(options, input) {
  return execFileSync(PLAINCALL, ["parse", ...options], { input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] });
}

function vector(id, text, dialect) {
  const options = commandOptions(dialect);
  if (options === undefined) return { id, text, dialect: dialectOf(dialect) };
  const lines = run([...options, "--events"], text).split("\n").filter(Boolean);
  return {
    id,
    text,
    dialect: dialectOf(dialect),
    events: lines.map((line) => JSON.parse(line)),
    document: JSON.parse(run([...options, "--format=json"], text)),
  };
}

function transcripts(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.name.endsWith(".txt"))
    .map((file) => join(file.parentPath ?? file.path, file.name))
    .sort();
}

/** Returns a text, a dialect, and what the command finds, for each example and transcript. */
export function vectors() {
  const examples = TOPICS.flatMap((topic) => JSON.parse(readFileSync(join(ROOT, `conformance/${topic}.json`), "utf8")).cases)
    .filter((example) => example.operation === "read")
    .map((example) => vector(example.id, example.input, example.dialect));
  const files = transcripts(join(ROOT, "examples/transcripts")).flatMap((file) => {
    const text = readFileSync(file, "utf8");
    return [{ syntax: "auto" }, { syntax: "block", escaped: true }, { syntax: "emoji" }].map((dialect) =>
      vector(`${file} ${dialect.syntax}`, text, dialect),
    );
  });
  return [...examples, ...files];
}
