// The definitions of published clients, schemas of interfaces, and options that are explicitly undefined.

import type { Tool as AnthropicTool, ToolUseBlock } from "@anthropic-ai/sdk/resources/messages";
import type { ChatCompletionMessageFunctionToolCall, ChatCompletionTool } from "openai/resources/chat/completions";
import type { FunctionTool, ResponseFunctionToolCall } from "openai/resources/responses/responses";
import { Toolbox, grammar, prompt, render, tool, type Tool } from "plaincall";
import { plaincallFetch } from "plaincall/openai";
import { z } from "zod";

interface ObjectSchema {
  type: "object";
  properties: { [name: string]: { type: string } };
}
const schema: ObjectSchema = { type: "object", properties: { a: { type: "string" } } };
const chat: ChatCompletionTool[] = [{ type: "function", function: { name: "a", parameters: { type: "object" } } }];
const responses: FunctionTool[] = [{ type: "function", name: "b", parameters: null, strict: null, description: null }];
const anthropic: AnthropicTool[] = [{ name: "c", input_schema: { type: "object" } }];
const typed: Tool<{ a: string }, string> = tool({
  name: "d",
  input: z.object({ a: z.string() }),
  description: undefined,
  effect: undefined,
  execute: ({ a }) => a.toUpperCase(),
});
const loose = tool({ name: "e", input: schema, execute: (given) => String(given["a"]) });
const without = tool({ name: "f", input: schema, execute: undefined });
const dialect = { syntax: "block", key: undefined, escaped: undefined } as const;
const toolbox = new Toolbox([...chat, ...responses, ...anthropic, typed, loose, without], { dialect, effects: undefined });
declare const called: (ChatCompletionMessageFunctionToolCall | ResponseFunctionToolCall | ToolUseBlock)[];
toolbox.history("a", called);
toolbox.results([{ id: "x", name: undefined, output: "a", error: undefined }]);
export const all = [
  prompt(toolbox, { descriptionLength: undefined }),
  grammar(chat, "vllm", { only: undefined }),
  render({ name: "a", arguments: {}, id: undefined }, { tools: responses, dialect: undefined }),
  plaincallFetch({ fetch: undefined, syntax: undefined, constrain: undefined, onChangedTool: undefined }),
  // @ts-expect-error: a call without arguments.
  () => toolbox.history("a", [{ id: "x", name: "a" }]),
  // @ts-expect-error: a list is not a schema.
  () => tool({ name: "g", input: ["a"] }),
  // @ts-expect-error: `c` is not an argument.
  () => tool({ name: "h", input: z.object({ a: z.string() }), execute: ({ c }) => c }),
];
