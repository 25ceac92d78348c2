// Pauses and resumes the updates of a page, shows the state of the connection, and draws the charts.
(function () {
  "use strict";
  var state = document.getElementById("live-state");
  var pause = document.getElementById("pause");
  var content = document.getElementById("content");
  var paused = false;
  var missed = null; // the newest content that arrived during the pause

  function show(text) { if (state && state.textContent !== text) { state.textContent = text; } }

  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", function () {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      show(paused ? "Paused" : "Live");
      if (!paused && missed !== null) {
        htmx.swap(content, missed, { swapStyle: "innerHTML" });
        missed = null;
        draw();
      }
    });
    document.body.addEventListener("htmx:sseBeforeMessage", function (e) {
      if (!paused) { return; }
      e.preventDefault();
      if (e.target === content) { missed = e.detail.data; }
    });
    document.body.addEventListener("htmx:sseMessage", function (e) { if (e.target === content) { draw(); } });
    document.body.addEventListener("htmx:sseError", function () { if (!paused) { show("No connection. The page connects again."); } });
  }

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  // clock returns the UTC time of day of a Unix time.
  function clock(t) { return new Date(t * 1e3).toISOString().slice(11, 16); }

  // draw draws a chart for each element with data-chart: the ID of a table whose first two columns have the values in data-value.
  function draw() {
    document.querySelectorAll("[data-chart]").forEach(function (place) {
      var x = [], y = [];
      document.querySelectorAll("#" + place.dataset.chart + " tbody tr").forEach(function (row) {
        x.push(Number(row.cells[0].dataset.value));
        y.push(Number(row.cells[1].dataset.value));
      });
      place.replaceChildren();
      if (x.length < 2) { return; }
      var axis = { stroke: colour("--ink"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
      new uPlot({
        width: Math.max(place.clientWidth, 280), height: 240, legend: { show: false }, cursor: { show: false }, tzDate: function (t) { return uPlot.tzDate(new Date(t * 1e3), "UTC"); },
        series: [{}, { stroke: colour("--bar"), width: 2, points: { show: false } }],
        axes: [Object.assign({ values: function (u, ticks) { return ticks.map(clock); } }, axis), Object.assign({ label: place.dataset.label, size: 60 }, axis)]
      }, [x, y], place);
    });
  }
  draw();
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
