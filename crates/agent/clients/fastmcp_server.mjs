// A server of FastMCP: `stdio`, or `http` or `stateless` with a port.

import { FastMCP } from 'fastmcp';
import { z } from 'zod';

const server = new FastMCP({ name: 'test', version: '1.0.0' });
const tool = (name, parameters, execute, more = {}) =>
  server.addTool({ name, description: name, parameters: z.object(parameters), execute, ...more });
const outputSchema = z.object({ name: z.string(), people: z.number() });
const number = z.number().int();

tool('greet', { name: z.string() }, async ({ name }) => `Hello "${name}"\nand ü\n`);
tool('add', { a: number, b: number.default(1) }, async ({ a, b }) => String(a + b));
tool('place', { name: z.string().nullish() }, async ({ name }) => ({ name: name ?? 'Ulm', people: 7 }), { outputSchema });
tool('nothing', {}, async () => {});

const [kind, port] = process.argv.slice(2);
const httpStream = { host: '127.0.0.1', port: Number(port), stateless: kind === 'stateless' };
await server.start(kind === 'stdio' ? { transportType: 'stdio' } : { transportType: 'httpStream', httpStream });
