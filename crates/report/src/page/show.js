// The page of `plaincall show`: shows the trace in it.

addEventListener("DOMContentLoaded", () => {
  buildFilters();
  buildTranscript();
  listeners.opened.push(buildHead, showReply);
  buildViews();
  listeners.chosen.push(details);
  buildTimeline();
  buildGraph();
  openTrace(JSON.parse(byId("data").textContent));
  const [, wantedView, wanted] = /^#(transcript|timeline|graph)?\/?(?:call-(\d+))?$/.exec(location.hash) ?? [];
  view(isNarrow.matches ? wantedView ?? "transcript" : wantedView === "graph" ? "graph" : "timeline");
  if (calls[Number(wanted) - 1]) choose(Number(wanted) - 1, "address");
  performance.mark("shown");
});
