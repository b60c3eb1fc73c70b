// Compares a reader of a toolbox, which returns arguments with their types as the others do, and the parser alone: the same calls, each in
// the parser's own format, in chunks of 4 bytes and more.

import { hermesProtocol, morphXmlProtocol } from "@ai-sdk-tool/parser";
import { GadgetCallParser } from "llmist";
import { Parser, Toolbox } from "plaincall";

const SIZES = [4, 64, 4096];
const ROUNDS = 60;
/** Engines compile while a program runs: each parser has as much time to become fast. */
const LEAST_MS = 1500;
const MOST_MS = 5000;
const CODE = "export function add(a: number, b: number): number {\n  return a + b;\n}\n";
const PROSE = "I look at the file first, then I change the line that the error names in this file. ";
const CALLS = Array.from({ length: 100 }, (_, index) => `// ${index}\n${CODE.repeat(3)}`.trimEnd());
const tools = [
  { type: "function", name: "write", inputSchema: { type: "object", properties: { content: { type: "string" } }, required: ["content"] } },
];

const block = (content) => `!!!GADGET_START:write\n!!!ARG:content\n${content}\n!!!GADGET_END\n`;
const hermes = (content) => `<tool_call>\n${JSON.stringify({ name: "write", arguments: { content } })}\n</tool_call>\n`;
const xml = (content) => `<write>\n<content>${content}</content>\n</write>\n`;

const box = new Toolbox([{ name: "write", input_schema: tools[0].inputSchema }], { dialect: { syntax: "block" } });

function reader(chunks) {
  const reader = box.reader();
  const calls = [];
  const take = (items) => {
    for (const item of items) if (item.type === "call") calls.push(item.arguments?.content);
  };
  for (const chunk of chunks) take(reader.feed(chunk));
  take(reader.finish({ stop: "stop" }));
  reader[Symbol.dispose]();
  return calls;
}

function parser(chunks) {
  const parser = new Parser({ syntax: "block" });
  const calls = [];
  const take = (events) => {
    for (const event of events) {
      if (event.type === "value_start") calls.push("");
      else if (event.type === "value_delta") calls[calls.length - 1] += event.text;
    }
  };
  for (const chunk of chunks) take(parser.feed(chunk));
  take(parser.finish());
  return calls;
}

function llmist(chunks) {
  const parser = new GadgetCallParser();
  const calls = [];
  const take = (event) => event.type === "gadget_call" && calls.push(event.call.parameters?.content);
  for (const chunk of chunks) for (const event of parser.feed(chunk)) take(event);
  for (const event of parser.finalize()) take(event);
  return calls;
}

/** A parser of `@ai-sdk-tool/parser`, as its middleware uses it. */
const sdk = (protocol) => async (chunks) => {
  const parts = new ReadableStream({
    start(controller) {
      controller.enqueue({ type: "text-start", id: "1" });
      for (const delta of chunks) controller.enqueue({ type: "text-delta", id: "1", delta });
      controller.enqueue({ type: "text-end", id: "1" });
      controller.enqueue({ type: "finish", finishReason: "stop", usage: {} });
      controller.close();
    },
  });
  const calls = [];
  for await (const part of parts.pipeThrough(protocol().createStreamParser({ tools }))) {
    if (part.type === "tool-call") calls.push(JSON.parse(part.input).content);
  }
  return calls;
};

const PARSERS = {
  "plaincall, `Toolbox.reader`": [block, reader],
  "plaincall, `Parser`": [block, parser],
  llmist: [block, llmist],
  "@ai-sdk-tool/parser, hermes": [hermes, sdk(hermesProtocol)],
  "@ai-sdk-tool/parser, XML": [xml, sdk(morphXmlProtocol)],
};

function cut(text, size) {
  return text.match(new RegExp(`[^]{1,${size}}`, "g"));
}

/** Milliseconds of processor time. */
async function time(run) {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const OTHER = "Grüße an alle: die Lösung ist schön, sagt ein Prüfer.\n天気は晴れです。明日も晴れるでしょう。\n";
const PAYLOADS = {
  "100 calls": CALLS,
  "one value of 100 KB": [CODE.repeat(1400).trimEnd()],
  "100 calls, other scripts": Array.from({ length: 100 }, (_, index) => `${index} ${OTHER.repeat(2)}`.trimEnd()),
};

console.log("| payload | chunks | parser | ms | MB/s | times | calls kept |\n| --- | --- | --- | --- | --- | --- | --- |");
for (const [payload, contents] of Object.entries(PAYLOADS)) {
  for (const size of SIZES) {
    let own;
    for (const [name, [write, read]] of Object.entries(PARSERS)) {
      const text = contents.map((content) => PROSE + "\n" + write(content)).join("");
      const chunks = cut(text, size);
      let calls = [];
      let best = Infinity;
      const begun = performance.now();
      // What takes long is read twice and not more often.
      const elapsed = () => performance.now() - begun;
      for (let round = 0; round < 2 || elapsed() < (round < ROUNDS ? MOST_MS : LEAST_MS); round++) {
        best = Math.min(best, await time(async () => (calls = await read(chunks))));
      }
      const kept = contents.filter((content) => calls.includes(content)).length;
      own ??= best;
      const [speed, times] = [(text.length / best / 1000).toFixed(2), (best / own).toFixed(1)];
      console.log(`| ${payload} | ${size} | ${name} | ${best.toFixed(1)} | ${speed} | ${times} | ${kept} of ${contents.length} |`);
    }
  }
}
