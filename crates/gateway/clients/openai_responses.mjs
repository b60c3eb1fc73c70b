// The Node client of OpenAI with the Responses API.

import OpenAI from 'openai';
import { answer, assert, cities, right, unchecked, wrong } from './task.mjs';

const tools = [
  {
    type: 'function',
    name: 'get_weather',
    strict: false,
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
];

for (const stream of [false, true]) {
  const ask = async (baseURL, input) => {
    const responses = new OpenAI({ baseURL, apiKey: 'none' }).responses;
    const request = { model: 'm', input, tools, store: false };
    return stream ? responses.stream(request).finalResponse() : responses.create(request);
  };
  const input = [{ role: 'user', content: 'What is the weather?' }];
  let response = await ask(right, input);
  assert.equal(response.output_text, 'I look it up.\n');
  const calls = response.output.filter((item) => item.type === 'function_call');
  assert.deepEqual(calls.map((call) => JSON.parse(call.arguments).city), cities);
  input.push(...response.output);
  for (const call of calls) {
    input.push({ type: 'function_call_output', call_id: call.call_id, output: 'mild' });
  }
  response = await ask(right, input);
  assert.equal(response.status, 'completed');
  assert.equal(response.output_text, answer);

  response = await ask(wrong, input.slice(0, 1));
  assert.equal(response.output_text, 'I cannot.');
  assert.deepEqual(response.output.map((item) => item.type), ['message']);
}
const responses = new OpenAI({ baseURL: unchecked, apiKey: 'none' }).responses;
const response = await responses
  .stream({ model: 'm', input: 'What is the weather?', tools })
  .finalResponse();
const call = response.output.find((item) => item.type === 'function_call');
assert.throws(() => JSON.parse(call.arguments), SyntaxError);
