// The trace of a run, as `plaincall-report` writes it.

interface Usage { input: number; cached?: number; output: number }
interface Cause { call: number; id: string }

interface Attempt {
  number: number;
  started_ms: number;
  ended_ms: number | null;
  error: string | null;
  wait_ms: number | null;
  is_interrupted: boolean;
}

interface Call {
  number: number;
  id: string;
  name: string;
  turn: number;
  effect: string | null;
  dependencies: { id: string; call: number | null }[];
  parent: number | null;
  replies?: { text: string; usage: Usage | null }[];
  source: string | null;
  arguments: [string, string][] | null;
  held: string | null;
  admission: { by: string; reason?: string; always?: boolean; t_ms: number } | null;
  edited: [string, string][] | null;
  attempts: Attempt[];
  status: string | null;
  planned?: "ready" | "held";
  output: string | null;
  error: string | null;
  note: string | null;
  because: (Cause & { link: string; root: Cause }) | null;
  open: { state: string; resume: string } | null;
  appeared_ms: number;
  complete_ms: number | null;
  ready_ms: number | null;
  ended_ms: number | null;
  is_critical: boolean;
  critical_cause: number | null;
}

type Segment = { type: "text" | "reasoning"; text: string } | { type: "call"; call: number };

interface Turn {
  number: number;
  opened_ms: number;
  over_ms: number | null;
  stop: string | null;
  usage: Usage | null;
  ended_ms: number | null;
  cancel: { t_ms: number; reason: string } | null;
  first_call: number;
  segments: Segment[];
  is_exact: boolean;
}

interface Trace {
  begin: { plaincall: string; began_unix_ms: number; tools: Record<string, unknown> } | null;
  turns: Turn[];
  calls: Call[];
  resumed: number[];
  usage: Usage | null;
  end_ms: number;
  problems: string[];
}
