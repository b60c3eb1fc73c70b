// The head of a logged run.

function buildHead() {
  const begin = trace.begin;
  const date = begin ? new Date(begin.began_unix_ms) : new Date(NaN);
  const when = Number.isNaN(date.getTime()) ? "" : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  byId("title").textContent = `Run${when && ` of ${when}`}`;
  document.title = byId("title").textContent;
  const parts = [count(calls.length, "call"), time(trace.end_ms)];
  if (trace.turns.length > 1) parts.push(count(trace.turns.length, "turn"));
  if (begin) parts.push(count(Object.keys(begin.tools).length, "tool"), `plaincall ${begin.plaincall}`);
  if (trace.usage) parts.push(tokens(trace.usage));
  for (const at of trace.resumed) parts.push(`resumed at ${time(at)}`);
  byId("meta").textContent = parts.join(" · ");
  byId("problems").hidden = trace.problems.length === 0;
  byId("problems").replaceChildren(...trace.problems.map((problem) => sentence("p", "", problem)));
}
