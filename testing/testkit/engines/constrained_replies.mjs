// Asks a model with random weights for calls, through the gateway, with and without a grammar.
//
//     node constrained_replies.mjs PLAINCALL REQUESTS
//
// The model server is llama.cpp itself, through node-llama-cpp, with the part of its HTTP API that the gateway uses. Every reply
// with a grammar must be a valid call. Without one, the model writes noise.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { getLlama, LlamaCompletion } from "node-llama-cpp";
import { writeRandomModel } from "./random_model.mjs";

const [plaincall, count] = process.argv.slice(2);
const REQUESTS = Number(count);
/** More than any call of the tools has. */
const MAX_TOKENS = 600;

const TOOLS = [
  {
    name: "set_temperature",
    parameters: {
      type: "object",
      properties: {
        room: { enum: ["kitchen", "hall", "attic"] },
        degrees: { type: "integer" },
        zones: { type: "array", items: { type: "boolean" }, maxItems: 3 },
      },
      required: ["room", "degrees"],
    },
  },
  {
    name: "plan_route",
    parameters: {
      type: "object",
      properties: {
        start: {
          type: "object",
          properties: { x: { type: "integer" }, y: { type: "number", minimum: 0 } },
          required: ["x"],
        },
        avoid_tolls: { type: ["boolean", "null"] },
      },
      required: ["start"],
    },
  },
];

/** Returns whether the arguments of a call are what the schema of its tool allows. */
function isValid(call) {
  const { room, degrees, zones, start, avoid_tolls: avoid } = JSON.parse(call.function.arguments);
  switch (call.function.name) {
    case "set_temperature":
      return (
        ["kitchen", "hall", "attic"].includes(room) &&
        Number.isInteger(degrees) &&
        (zones ?? []).every((zone) => typeof zone === "boolean") && (zones ?? []).length <= 3
      );
    case "plan_route":
      return Number.isInteger(start.x) && (start.y ?? 0) >= 0 && [true, false, null, undefined].includes(avoid);
    default:
      return false;
  }
}

/** Starts llama.cpp as a model server, and returns its address. */
async function startModelServer() {
  const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", skipDownload: true, maxThreads: 1 });
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "plaincall-"));
  const modelPath = path.join(folder, "random.gguf");
  writeRandomModel(modelPath, 1);
  const model = await llama.loadModel({ modelPath });
  fs.rmSync(folder, { recursive: true });
  const context = await model.createContext({ contextSize: 4096, threads: 1 });
  const completion = new LlamaCompletion({ contextSequence: context.getSequence() });
  const grammars = new Map();
  let seed = 0;
  async function reply(request) {
    if (request.grammar !== undefined && !grammars.has(request.grammar)) {
      grammars.set(request.grammar, await llama.createGrammar({ grammar: request.grammar }));
    }
    // The weights are random, so only the last message is worth its time.
    const prompt = request.messages.at(-1).content.slice(-200);
    const settings = { maxTokens: MAX_TOKENS, temperature: 1, seed: ++seed, grammar: grammars.get(request.grammar) };
    const { response, metadata } = await completion.generateCompletionWithMeta(prompt, settings);
    const reason = metadata.stopReason === "maxTokens" ? "length" : "stop";
    return { object: "chat.completion", choices: [{ index: 0, message: { role: "assistant", content: response }, finish_reason: reason }] };
  }
  // One sequence serves one request at a time.
  let queue = Promise.resolve();
  const server = http.createServer(async (request, response) => {
    const send = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.url === "/v1/models") {
      return send(200, { object: "list", data: [{ id: "random", object: "model", owned_by: "llamacpp" }] });
    }
    let body = "";
    for await (const chunk of request) body += chunk;
    queue = queue.then(async () => {
      try {
        send(200, await reply(JSON.parse(body)));
      } catch (error) {
        send(400, { error: { message: String(error) } });
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}/v1`, stop: () => { server.close(); return llama.dispose(); } };
}

/** Starts the gateway, and returns its address. */
async function startGateway(upstream, constrain) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "plaincall-"));
  const settings = path.join(folder, "config.toml");
  fs.writeFileSync(settings, `[models."*"]\nconstrain = "${constrain}"\nreasoning = false\nrepair_rounds = 0\n`);
  const options = ["serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--config", settings];
  const gateway = spawn(plaincall, options, { stdio: ["ignore", "ignore", "pipe"] });
  for await (const line of createInterface({ input: gateway.stderr })) {
    const found = line.match(/http:\/\/127\.0\.0\.1:\d+/g)?.find((url) => !upstream.startsWith(url));
    if (found) return { url: found, stop: () => { gateway.kill(); fs.rmSync(folder, { recursive: true }); } };
  }
  throw new Error("the gateway did not start");
}

/** Returns how many of the replies are valid calls. */
async function validReplies(upstream, constrain, requests) {
  const gateway = await startGateway(upstream, constrain);
  let valid = 0;
  try {
    for (let number = 0; number < requests; number += 1) {
      const body = {
        model: "random",
        tool_choice: "required",
        parallel_tool_calls: false,
        messages: [{ role: "user", content: `Request ${number}: use a tool.` }],
        tools: TOOLS.map((tool) => ({ type: "function", function: tool })),
      };
      const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body) });
      const answer = await response.json();
      const calls = answer.choices?.[0].message.tool_calls ?? [];
      if (calls.length === 1 && isValid(calls[0])) valid += 1;
      else if (constrain === "auto") console.error(JSON.stringify(answer));
    }
  } finally {
    gateway.stop();
  }
  return valid;
}

const server = await startModelServer();
try {
  const constrained = await validReplies(server.url, "auto", REQUESTS);
  const free = await validReplies(server.url, "never", REQUESTS);
  console.log(`constrained replies: ${constrained} of ${REQUESTS} are valid calls; without a grammar: ${free} of ${REQUESTS}`);
  assert.equal(constrained, REQUESTS);
  assert.equal(free, 0);
} finally {
  await server.stop();
}
