// The Node client of Anthropic, whole messages and its helper for streams.

import Anthropic from '@anthropic-ai/sdk';
import { answer, assert, cities, right, wrong } from './task.mjs';

const tools = [
  {
    name: 'get_weather',
    input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
];

for (const stream of [false, true]) {
  const ask = async (url, messages) => {
    const client = new Anthropic({ baseURL: url.replace(/\/v1$/, ''), apiKey: 'none' }).messages;
    const request = { model: 'm', max_tokens: 1000, messages, tools };
    return stream ? client.stream(request).finalMessage() : client.create(request);
  };
  const messages = [{ role: 'user', content: 'What is the weather?' }];
  let message = await ask(right, messages);
  assert.equal(message.stop_reason, 'tool_use');
  assert.equal(message.content[0].text, 'I look it up.\n');
  const calls = message.content.filter((block) => block.type === 'tool_use');
  assert.deepEqual(calls.map((call) => call.input.city), cities);
  messages.push({ role: 'assistant', content: message.content });
  const results = calls.map((call) => ({
    type: 'tool_result',
    tool_use_id: call.id,
    content: [{ type: 'text', text: 'mild' }],
  }));
  messages.push({ role: 'user', content: results });
  message = await ask(right, messages);
  assert.equal(message.stop_reason, 'end_turn');
  assert.equal(message.content.at(-1).text, answer);

  message = await ask(wrong, messages.slice(0, 1));
  assert.equal(message.stop_reason, 'end_turn');
  assert.deepEqual(message.content.map((block) => block.text), ['I cannot.']);
}
