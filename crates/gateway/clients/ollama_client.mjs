// The Node client of Ollama, whole answers and streams.

import { Ollama } from 'ollama';
import { answer, assert, cities, repaired, right, unchecked, wrong } from './task.mjs';

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Tells the weather.', parameters } }];
const client = (url) => new Ollama({ host: url.replace(/\/v1$/, '') });

for (const stream of [false, true]) {
  const ask = async (url, messages) => {
    const response = await client(url).chat({ model: 'm', messages, tools, stream });
    const message = { role: 'assistant', content: '', tool_calls: [] };
    let last;
    for await (const part of stream ? response : [response]) {
      message.content += part.message.content;
      message.tool_calls.push(...(part.message.tool_calls ?? []));
      last = part;
    }
    assert.ok(last.done && last.total_duration > 0 && Number.isInteger(last.eval_count));
    assert.equal(last.done_reason, 'stop');
    return message;
  };
  // The last gateway asks the model to repair the first reply, and repeats its calls once.
  for (const [url, turns] of [[right, 1], [repaired, 2]]) {
    const messages = [{ role: 'user', content: 'What is the weather?' }];
    for (let turn = 0; turn < turns; turn += 1) {
      const message = await ask(url, messages);
      assert.deepEqual(message.tool_calls.map((call) => call.function.arguments.city), cities);
      messages.push(message);
      for (const call of message.tool_calls) {
        messages.push({ role: 'tool', tool_name: call.function.name, content: 'mild' });
      }
    }
    const last = await ask(url, messages);
    assert.deepEqual([last.content, last.tool_calls], [answer, []]);
  }
  for (const url of [wrong, unchecked]) {
    const message = await ask(url, [{ role: 'user', content: 'What is the weather?' }]);
    assert.deepEqual([message.content, message.tool_calls], ['I cannot.', []]);
  }
}

const { models } = await client(right).list();
assert.deepEqual(models.map((model) => model.model), ['replay']);
assert.ok((await client(right).show({ model: 'replay' })).capabilities.includes('tools'));
await assert.rejects(client(right).pull({ model: 'other' }), { status_code: 404 });
