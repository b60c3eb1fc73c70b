// The Node client of OpenAI, with its helper that runs tools.

import OpenAI from 'openai';
import { answer, assert, cities, right, unchecked, wrong } from './task.mjs';

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

for (const stream of [false, true]) {
  const asked = [];
  const ask = (baseURL) =>
    new OpenAI({ baseURL, apiKey: 'none' }).chat.completions.runTools({
      model: 'm',
      stream,
      messages: [{ role: 'user', content: 'What is the weather?' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            parse: JSON.parse,
            parameters,
            function: ({ city }) => {
              asked.push(city);
              return 'mild';
            },
          },
        },
      ],
    });
  assert.equal(await ask(right).finalContent(), answer);
  assert.deepEqual(asked, cities);
  for (const url of [wrong, unchecked]) {
    asked.length = 0;
    assert.equal(await ask(url).finalContent(), 'I cannot.');
    assert.deepEqual(asked, []);
  }
}
