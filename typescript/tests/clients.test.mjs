// Published clients, unchanged: two parallel calls and an answer, an invalid call that is repaired or rejected, whole and streamed.
// With NEWEST, it runs the clients in `newest/`, which need a newer Node.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import * as agents from "@openai/agents";
import * as ai from "ai";
import OpenAI from "openai";
import { plaincallFetch } from "plaincall/openai";
import { z } from "zod";

import { INVALID, Model, QUESTION, TWO, WEATHER } from "./scripted.mjs";

const ANSWER = "It is mild.";
const baseURL = "http://localhost:8000/v1";
const input = z.object({ city: z.string(), days: z.number().int() });
const asked = [{ city: "Paris", days: 2 }, { city: "Oslo", days: 1 }];

/** Clients ask again after an error. */
class Failing extends Model {
  constructor() {
    super(...Array(9).fill(INVALID));
  }
}

/** Runs a client that does the task, with replies that are valid, and with one that is repaired. */
function check(name, run) {
  for (const [kind, replies] of Object.entries({ valid: [TWO, ANSWER], repaired: [INVALID, TWO, ANSWER] })) {
    test(`${name}, ${kind}`, async () => {
      const model = new Model(...replies);
      const calls = [];
      const execute = (given) => {
        calls.push(given);
        return `mild in ${given.city}`;
      };
      assert.equal(await run(plaincallFetch({ fetch: model.fetch }), execute), ANSWER);
      assert.deepEqual(calls, asked);
      assert.equal(model.replies.length, 0);
      assert.match(JSON.stringify(model.requests.at(-1).messages), /Result 2 of 2[^]*mild in Oslo/);
    });
  }
  test(`${name}, an invalid call`, async () => {
    const model = new Failing();
    const execute = () => assert.fail("an invalid call runs");
    const ask = async () => run(plaincallFetch({ fetch: model.fetch, repairRounds: 0 }), execute);
    assert.notEqual(await ask().catch((error) => error), ANSWER);
    assert.ok(model.requests.length > 0);
  });
}

const generations = [["ai", ai, createOpenAICompatible]];
if (process.env.NEWEST === undefined) {
  generations.push(["ai 5", await import("ai5"), (await import("ai5-openai-compatible")).createOpenAICompatible]);
}
for (const [name, sdk, create] of generations) {
  const { generateText, streamText, tool } = sdk;
  const stepCountIs = sdk.stepCountIs ?? sdk.isStepCount;
  const options = (fetch, execute) => ({
    model: create({ name: "plaincall", baseURL, fetch })("m"),
    tools: { get_weather: tool({ description: WEATHER.description, inputSchema: input, execute }) },
    prompt: QUESTION,
    stopWhen: stepCountIs(3),
    maxRetries: 0,
  });
  check(`${name}, whole`, async (...given) => (await generateText(options(...given))).text);
  check(`${name}, streamed`, async (...given) => {
    const { steps } = streamText(options(...given));
    return (await steps).at(-1).text;
  });
}

const tools = [{ type: "function", function: WEATHER }];

/** The messages that answer calls. */
function answered(message, execute) {
  const results = message.tool_calls.map(({ id, function: { arguments: given } }) => ({
    role: "tool",
    tool_call_id: id,
    content: execute(JSON.parse(given)),
  }));
  return [{ role: "user", content: QUESTION }, message, ...results];
}

check("openai, whole", async (fetch, execute) => {
  const { completions } = new OpenAI({ baseURL, apiKey: "k", fetch }).chat;
  const first = await completions.create({ model: "m", messages: [{ role: "user", content: QUESTION }], tools });
  const messages = answered(first.choices[0].message, execute);
  return (await completions.create({ model: "m", messages, tools })).choices[0].message.content;
});

check("openai, streamed", async (fetch, execute) => {
  const { completions } = new OpenAI({ baseURL, apiKey: "k", fetch }).chat;
  const ask = (messages) => completions.stream({ model: "m", messages, tools }).finalMessage();
  const first = await ask([{ role: "user", content: QUESTION }]);
  return (await ask(answered(first, execute))).content;
});

for (const api of ["chat_completions", "responses"]) {
  for (const stream of [false, true]) {
    check(`@openai/agents, ${api}, ${stream ? "streamed" : "whole"}`, async (fetch, execute) => {
      agents.setTracingDisabled(true);
      agents.setOpenAIAPI(api);
      const client = new OpenAI({ baseURL, apiKey: "k", fetch });
      const provider = new agents.OpenAIProvider({ openAIClient: client, useResponses: api === "responses" });
      const { name, description } = WEATHER;
      const weather = agents.tool({ name, description, parameters: input, execute });
      const agent = new agents.Agent({ name: "a", model: "m", tools: [weather] });
      const result = await new agents.Runner({ modelProvider: provider }).run(agent, QUESTION, { stream });
      if (stream) await result.completed;
      return result.finalOutput;
    });
  }
}

/** Joins the chunks of a message. With `streaming`, `invoke` would download a tokenizer. */
async function streamedBy(model, messages) {
  let message;
  for await (const chunk of await model.stream(messages)) message = message?.concat(chunk) ?? chunk;
  return message;
}

for (const [name, ask] of Object.entries({ whole: (model, messages) => model.invoke(messages), streamed: streamedBy })) {
  check(`@langchain/openai, ${name}`, async (fetch, execute) => {
    const model = new ChatOpenAI({ model: "m", apiKey: "k", maxRetries: 0, configuration: { baseURL, fetch } }).bindTools(tools);
    const question = new HumanMessage(QUESTION);
    const first = await ask(model, [question]);
    const results = first.tool_calls.map(({ id, args }) => new ToolMessage({ tool_call_id: id, content: execute(args) }));
    return (await ask(model, [question, first, ...results])).content;
  });
}
