// uPlot with the lab's colours, sizes and words.

import uPlot from "../uplot/uPlot.esm.js";
import { short } from "./format.js";

// Okabe and Ito's colours, as in the report.
export const COLOURS = { single: "#d55e00", double: "#0072b2", ensemble: "#009e73", split: "#cc79a7" };

const styleOf = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

/** A colour that the theme decides: light-dark() is resolved by asking the browser. */
function resolved(name) {
  const probe = document.createElement("span");
  probe.style.color = styleOf(name);
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function axis(label, more = {}) {
  return {
    label, labelSize: label ? 22 : 0, labelFont: "12px system-ui, sans-serif", font: "11.5px system-ui, sans-serif",
    stroke: () => resolved("--soft"), grid: { stroke: () => resolved("--line"), width: 1 },
    ticks: { stroke: () => resolved("--line"), size: 4 }, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))),
    ...more,
  };
}

/** 1, 2 and 5 times powers of ten. uPlot's own ticks never end on a logarithmic axis that starts elsewhere. */
function logTicks(_, __, low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    ticks.push(...[1, 2, 5].map((digit) => Number(`${digit}e${power}`)).filter((tick) => tick >= low && tick <= high));
  }
  return ticks;
}

const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark"
  || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

/** A series colour that can be seen on the page: the darkest greens are lightened where it is dark. */
const visible = (colour) => (isDark() && colour.startsWith("#") ? `color-mix(in srgb, ${colour} 70%, white)` : colour);

/** Draw vertical marks: [{x, label, colour, dash}] from `marks()`. */
const marked = (marks) => ({
  hooks: {
    draw: [(plot) => {
      const { ctx } = plot;
      const { left, top, width, height } = plot.bbox;
      const scale = devicePixelRatio;
      ctx.save();
      ctx.font = `${11.5 * scale}px system-ui, sans-serif`;
      for (const mark of marks()) {
        const x = Math.round(plot.valToPos(mark.x, "x", true));
        if (x < left || x > left + width) continue;
        ctx.strokeStyle = ctx.fillStyle = mark.colour ? visible(mark.colour) : resolved("--ink");
        ctx.setLineDash((mark.dash ?? []).map((length) => length * scale));
        ctx.lineWidth = 1.4 * scale;
        ctx.beginPath();
        ctx.moveTo(x, top);
        ctx.lineTo(x, top + height);
        ctx.stroke();
        const right = x > left + 0.7 * width;
        ctx.textAlign = right ? "right" : "left";
        ctx.fillText(mark.label, x + (right ? -5 : 5) * scale, top + (12 + 15 * (mark.row ?? 0)) * scale);
      }
      ctx.restore();
    }],
  },
});

/**
 * A chart in `place` that redraws with the theme and the width of its place.
 * `show({data, series, bands, xLabel, yLabel, yLog, marks, onZoom})` draws; data is uPlot's.
 */
export class Chart {
  constructor(place, { height = 260 } = {}) {
    this.place = place;
    this.height = height;
    place.classList.add("chart");
    place.setAttribute("role", "img");
    this.describe("Nothing is drawn yet.");
    new ResizeObserver(() => this.resize()).observe(place);
    addEventListener("theme", () => this.content && this.show(this.content));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.content && this.show(this.content));
  }

  resize() {
    const width = this.place.clientWidth;
    if (this.plot && width && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.height });
  }

  describe(words) {
    this.place.setAttribute("aria-label", words);
  }

  show(content) {
    const shape = JSON.stringify([content.series.map((one) => [one.label, one.stroke, one.dash, one.show]), content.xLabel, content.yLabel, content.yLog,
      content.bands, document.documentElement.dataset.theme]);
    this.content = content;
    if (this.plot && shape === this.shape) {
      this.plot.setData(content.data, !this.zoomed);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.zoomed = false;
    const options = {
      width: this.place.clientWidth || 600,
      height: this.height,
      scales: { x: { time: false, range: content.xRange ? () => content.xRange : undefined }, y: content.yLog ? { distr: 3, range: (_, low, high) => [low * 0.85, high * 1.2] } : { range: content.yRange } },
      axes: [axis(content.xLabel, { size: 34 }), axis(content.yLabel, { size: 62, show: !content.yHidden, ...(content.yLog ? { splits: logTicks, filter: (_, ticks) => ticks } : {}) })],
      series: [{ label: content.xName ?? content.xLabel, value: (_, value) => (value === null ? "—" : short(value)) },
        ...content.series.map((one) => ({ width: 1.8, points: { show: false }, spanGaps: true,
          value: (_, value) => (value === null || value === undefined ? "—" : short(value)), ...one, stroke: visible(one.stroke) }))],
      bands: content.bands,
      cursor: { drag: { x: Boolean(content.onZoom), y: false, setScale: Boolean(content.onZoom) }, focus: { prox: 24 } },
      legend: { show: content.legend ?? true, live: true },
      plugins: [marked(() => this.content.marks ?? [])],
      hooks: { setScale: [(plot, key) => key === "x" && this.zoom(plot)] },
    };
    this.place.classList.toggle("still", content.still ?? false);
    this.plot = new uPlot(options, content.data, this.place);
  }

  zoom(plot) {
    if (!this.content.onZoom || !plot.data[0].length) return;
    const { min, max } = plot.scales.x;
    const all = [plot.data[0][0], plot.data[0].at(-1)];
    this.zoomed = min > all[0] || max < all[1];
    this.content.onZoom(this.zoomed ? [min, max] : null);
  }
}

export const bars = (options) => uPlot.paths.bars(options);
export const stepped = () => uPlot.paths.stepped({ align: 1 });
export const faded = (colour, share) => `color-mix(in srgb, ${colour} ${Math.round(100 * share)}%, transparent)`;
