// usage: llama_cpp_verdicts.mjs FOLDER
// Compares llama.cpp's verdicts on the texts of FOLDER/texts.jsonl with llguidance's.

import fs from "node:fs";
import { getLlama } from "node-llama-cpp";

const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: "error" });
const lines = fs.readFileSync(`${process.argv[2]}/texts.jsonl`, "utf8").trimEnd().split("\n");
const tally = { accepted: 0, rejected: 0 };
for (const [number, line] of lines.entries()) {
  const { gbnf, texts } = JSON.parse(line);
  const grammar = await llama.createGrammar({ grammar: gbnf });
  for (const { text, accepted } of texts) {
    // llama.cpp's own matcher, which needs no model.
    const verdict = grammar._testText(text);
    tally[verdict ? "accepted" : "rejected"] += 1;
    if (verdict !== accepted) {
      console.error(`line ${number + 1}: llama.cpp says ${verdict}, llguidance ${accepted}:\n${JSON.stringify(text)}\n${gbnf}`);
      process.exit(1);
    }
  }
}
console.log(tally);
await llama.dispose();
