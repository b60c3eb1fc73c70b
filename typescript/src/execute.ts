/** Calls the tools of a reply in dependency order. */

import { core } from "./core.js";
import type { Call } from "./document.js";
import { PlaincallError } from "./errors.js";
import type { Result, Signal, Tool, Toolbox } from "./tools.js";

/** Decides whether a call runs: `true`, or `false` or a reason for the model why it does not. */
export type Approve = (call: Call, tool: Tool | undefined) => boolean | string | Promise<boolean | string>;

/** The options of `execute`. */
export interface ExecuteOptions {
  /** Asked before each call. Anything but `true` denies the call, and so does an error. Default: all calls run but those that are held. */
  approve?: Approve | undefined;
  /** The maximum number of calls that run at the same time. Default: no limit. */
  concurrency?: number | undefined;
  /** The maximum time of each call, in milliseconds. Default: no limit. */
  timeout?: number | undefined;
  /** Cancels all calls. */
  signal?: Signal | undefined;
}

/** The result of a call, with the value that its tool returned. */
export interface ExecutedResult extends Result {
  status: "ok" | "error" | "skipped" | "rejected";
  value?: unknown;
}

interface Action {
  kind: "ready" | "start" | "skipped" | "rejected";
  call: number;
  reason: string | null;
}

/** The longest time that a timer takes. */
const MOST_TIME = 2 ** 31 - 1;

/**
 * Calls the tools of a reply, each when the calls that it depends on have succeeded, and returns their results in order.
 *
 * Nothing is thrown for a call: an invalid call is rejected, an error of a tool becomes its error, and a call that depends on a failed
 * one is skipped. `approve` is asked before each call, and may be asked about several calls at the same time; other calls run
 * meanwhile. Calls that were probably meant to end earlier (`Call.held`) run only if `approve` is given and approves them.
 *
 * If `signal` is aborted, the signals of all tools are, no further call starts, and the promise is rejected with the reason. A call
 * that takes too long is aborted in the same way, and its result is an error. A function that ignores its signal goes on; nothing waits
 * for it.
 *
 * The output of a call is the returned text, or another value as JSON, in which `undefined` is `null`, a big integer text, a set a list
 * and a map an object. A value that cannot be written as JSON becomes its `String`. If that throws an error too, the error of the
 * result states that the tool ran.
 *
 * ```ts
 * const { calls } = toolbox.parse(reply, { stop: "natural" });
 * const results = await execute(toolbox, calls, { approve: (call, tool) => tool?.effect === "read" || ask(call) });
 * const message = toolbox.results(results, calls);
 * ```
 */
export async function execute(
  toolbox: Toolbox,
  calls: Iterable<Call>,
  { approve, concurrency, timeout, signal }: ExecuteOptions = {},
): Promise<ExecutedResult[]> {
  if (timeout !== undefined && !(timeout > 0)) throw new PlaincallError("`timeout` must be a number of milliseconds above 0");
  signal?.throwIfAborted();
  const written = [...calls];
  const plan = new Plan(toolbox, written, concurrency, approve !== undefined);
  const results: ExecutedResult[] = [];
  const stop = new AbortController();
  const abort = () => stop.abort(signal?.reason);
  signal?.addEventListener("abort", abort);
  try {
    await new Promise<void>((resolve, reject) => {
      let running = 0;
      stop.signal.addEventListener("abort", () => reject(stop.signal.reason));
      /** Runs a task, and does what is next after it. */
      const run = (task: () => Promise<Action[]>) => {
        running++;
        const next = async () => {
          const actions = await task();
          running--;
          follow(actions);
        };
        next().catch(reject);
      };
      const follow = (actions: Action[]) => {
        if (stop.signal.aborted) return;
        // Approved calls are added while the list is read.
        for (const { kind, call: index, reason } of actions) {
          const call = written[index]!;
          const tool = toolbox.tools.get(call.name);
          if (kind === "ready" && approve === undefined) {
            actions.push(...plan.next("admit", index));
          } else if (kind === "ready") {
            run(async () => {
              const denial = await denied(approve!, call, tool);
              if (stop.signal.aborted) return [];
              return denial === undefined ? plan.next("admit", index) : plan.next("deny", index, { reason: denial });
            });
          } else if (kind === "start") {
            run(async () => {
              const result = await limited(tool, call, stop.signal, timeout);
              if (stop.signal.aborted) return [];
              results[index] = result;
              return plan.next("finish", index, { succeeded: result.status === "ok" });
            });
          } else {
            results[index] = { id: call.id, name: call.name, status: kind, error: reason ?? "" };
          }
        }
        if (running === 0) resolve();
      };
      follow(plan.first);
    });
  } finally {
    signal?.removeEventListener("abort", abort);
    plan.release();
  }
  return results;
}

/** Decides which call starts next. */
class Plan {
  #object: number;
  readonly first: Action[];

  constructor(toolbox: Toolbox, calls: readonly Call[], concurrency: number | undefined, canApprove: boolean) {
    const planned = calls.map(({ id, name, dependencies, rejection, held, arguments: given }) => ({
      id,
      dependencies,
      rejection: rejection ?? (given === null ? "its arguments were not read; use the calls of a toolbox" : null),
      held: canApprove ? null : held,
      isExclusive: toolbox.tools.get(name)?.exclusive ?? false,
    }));
    const create = { concurrency: concurrency ?? null, calls: planned };
    const { object, actions } = core().perform<{ object: number; actions: Action[] }>({ plan: { create } });
    [this.#object, this.first] = [object, actions];
  }

  next(operation: "admit" | "deny" | "finish", call: number, options: object = {}): Action[] {
    const plan = { [operation]: { object: this.#object, call, ...options } };
    return core().perform<{ actions: Action[] }>({ plan }).actions;
  }

  release(): void {
    core().release(this.#object);
  }
}

/** Returns why a call is denied, or undefined if it is approved. */
async function denied(approve: Approve, call: Call, tool: Tool | undefined): Promise<string | undefined> {
  try {
    const decision = await approve(call, tool);
    if (decision === true) return undefined;
    return typeof decision === "string" ? decision : "this call was not approved";
  } catch (error) {
    return `the approval of this call failed: ${nameOf(error)}`;
  }
}

/** Calls a tool. It is aborted when all calls are, and after the time limit. */
async function limited(
  tool: Tool | undefined,
  call: Call,
  signal: AbortSignal,
  timeout: number | undefined,
): Promise<ExecutedResult> {
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  signal.addEventListener("abort", abort);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<ExecutedResult>((resolve) => {
    if (timeout === undefined || timeout > MOST_TIME) return;
    timer = setTimeout(() => {
      const error = `timed out after ${timeout / 1000} seconds`;
      own.abort(new PlaincallError(error));
      resolve({ id: call.id, name: call.name, status: "error", error });
    }, timeout);
  });
  try {
    return await Promise.race([outcome(tool, call, own.signal), late]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}

async function outcome(tool: Tool | undefined, call: Call, signal: AbortSignal): Promise<ExecutedResult> {
  const { id, name } = call;
  let value: unknown;
  try {
    if (tool === undefined) throw new PlaincallError(`the tool \`${name}\` has no function`);
    value = await tool.run(call.arguments, { signal });
  } catch (error) {
    return { id, name, status: "error", error: messageOf(error) };
  }
  try {
    return { id, name, status: "ok", output: textOf(value), value };
  } catch (error) {
    const reason = `the tool ran, but its result cannot be written as text: ${nameOf(error)}`;
    return { id, name, status: "error", error: reason, value };
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

/** Returns an error as a sentence for the model. Those of this package state what to do. */
function messageOf(error: unknown): string {
  if (error instanceof PlaincallError) return error.message;
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : `the tool failed: ${String(error)}`;
  } catch {
    return "the tool failed";
  }
}

/** Returns a value as text for the model: text unchanged, other values as JSON or as their `String`. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value ?? null, (_, inner: unknown) => plain(inner)) ?? String(value);
  } catch {
    // Such as an object that contains itself.
    return String(value);
  }
}

/** Returns a value that JSON does not have as one that it has. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Set) return [...value];
  return value instanceof Map ? Object.fromEntries(value) : value;
}
