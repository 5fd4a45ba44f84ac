// A figure over time: a canvas by uPlot, and the same in words for those who do not see it.

import {h} from "./dom.js";

const HEIGHT = 160;
const dark = matchMedia("(prefers-color-scheme: dark)");
const clock = time => new Date(time * 1000).toLocaleTimeString("en-GB"); // 24 hours, as the server writes times
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// "show" writes a value with its unit. update() takes times in seconds and values, null where there is none.
export function plot(title, show, signal) {
  const words = h("span", {class: "now"});
  const canvas = h("div", {"aria-hidden": "true"});
  const element = h("figure", {class: "plot"}, h("figcaption", {}, h("strong", {}, title), " ", words), canvas);
  const axis = {stroke: () => colour("--muted"), grid: {stroke: () => colour("--line"), width: 1},
    ticks: {stroke: () => colour("--line"), width: 1}};
  let drawn = null;
  let data = [[], []];

  const draw = () => {
    const width = Math.floor(canvas.clientWidth);
    if (!width) return;
    if (drawn) {
      drawn.setSize({width, height: HEIGHT});
      return;
    }
    drawn = new uPlot({
      width, height: HEIGHT, legend: {show: false}, cursor: {show: false},
      scales: {y: {range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1]}},
      axes: [{...axis, size: 30, space: 80, values: (_, ticks) => ticks.map(clock)}, {...axis, size: 64, values: (_, ticks) => ticks.map(tick => show(tick))}],
      series: [{}, {stroke: () => colour("--accent"), width: 1.5, points: {show: false}, spanGaps: false}],
    }, data, canvas);
  };
  const resized = new ResizeObserver(draw);
  resized.observe(canvas);
  const redraw = () => drawn?.redraw(false, true);
  dark.addEventListener("change", redraw);
  signal.addEventListener("abort", () => {
    resized.disconnect();
    dark.removeEventListener("change", redraw);
    drawn?.destroy();
  });

  return {
    element,
    update(times, values) {
      data = [times, values];
      const known = values.filter(value => value !== null);
      const last = values.at(-1);
      words.textContent = known.length
        ? `now ${last === null ? "unknown" : show(last)}, at most ${show(Math.max(...known))} since `
          + clock(times[0])
        : "nothing is known yet";
      if (drawn) drawn.setData(data);
      else draw();
    },
  };
}
