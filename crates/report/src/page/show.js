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
  const first = calls.find(({ status }) => status === "error") ?? calls[0];
  if (calls[Number(wanted) - 1]) {
    choose(Number(wanted) - 1, "address");
  } else if (first && !isNarrow.matches) {
    // On a phone, the details would hide the view. The address names only what a person has chosen.
    state.chosen = first.number;
    state.isDefault = true;
    notify("chosen", first.number, "opened");
  }
  performance.mark("shown");
});
