// The client of the protocol's own kit for Node, against `plaincall mcp`: PROGRAM TOOLS.

import { strict as assert } from 'node:assert';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [program, file] = process.argv.slice(2);

const connect = async (...options) => {
  const args = ['mcp', '--tools', file, ...options];
  const transport = new StdioClientTransport({ command: program, args, stderr: 'pipe' });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  return { client, transport };
};

const text = ({ content }) => content.map((block) => block.text).join('|');
const isRunning = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const { client, transport } = await connect();
assert.equal(client.getServerVersion().name, 'plaincall');
await client.ping();
const { tools } = await client.listTools();
assert.deepEqual(
  tools.map(({ name, annotations }) => [name, annotations.readOnlyHint, annotations.idempotentHint]),
  [
    ['greet', true, undefined],
    ['put', false, false],
    ['fail', false, true],
    ['wait', true, undefined],
  ],
);
assert.deepEqual(tools[0].inputSchema.required, ['name']);

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const marked = '!!!GADGET_END\n\u{1f6e0}\ufe0f[/end]';
const greeted = await Promise.all(['you', '', marked].map((name) => call('greet', { name })));
assert.deepEqual(greeted.map(text), ['Hello you', 'Hello ', `Hello ${marked}`]);

const wrong = await call('greet', { times: 2 });
assert.equal(wrong.isError, true);
assert.match(text(wrong), /missing required parameter `name`/);
const denied = await call('put', { text: 'x' });
assert.equal(denied.isError, true);
assert.match(text(denied), /no one can approve it here/);
const failed = await call('fail', {});
assert.equal(failed.isError, true);
assert.match(text(failed), /exit status 1/);
await assert.rejects(call('gret', {}), /unknown tool `gret`/);

// A cancelled call does not keep the next one from running.
const controller = new AbortController();
const waiting = call('wait', {}, { signal: controller.signal });
setTimeout(() => controller.abort(), 50);
await assert.rejects(waiting);
assert.equal(text(await call('greet', { name: 'again' })), 'Hello again');

// The client closes its end, and the server is gone before the client would end it.
const { pid } = transport;
const begun = Date.now();
await client.close();
assert.equal(isRunning(pid), false);
assert.ok(Date.now() - begun < 1900, 'the server ended on its own');

const allowed = await connect('--allow', 'put');
const put = await allowed.client.callTool({ name: 'put', arguments: { text: 'x' } });
assert.deepEqual([put.isError, text(put)], [false, 'x']);
await allowed.client.close();
