// The AI SDK, whole and streamed.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { answer, assert, cities, right, unchecked, wrong } from './task.mjs';

const asked = [];
const tools = {
  get_weather: tool({
    description: 'Tells the weather.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      asked.push(city);
      return 'mild';
    },
  }),
};

async function whole(options) {
  return (await generateText(options)).text;
}

async function streamed(options) {
  return await streamText(options).text;
}

for (const ask of [whole, streamed]) {
  const options = (baseURL) => ({
    model: createOpenAICompatible({ name: 'plaincall', baseURL })('m'),
    tools,
    prompt: 'What is the weather?',
    stopWhen: stepCountIs(3),
  });
  asked.length = 0;
  assert.equal(await ask(options(right)), answer);
  assert.deepEqual(asked, cities);
  for (const url of [wrong, unchecked]) {
    asked.length = 0;
    assert.equal(await ask(options(url)), 'I cannot.');
    assert.deepEqual(asked, []);
  }
}
