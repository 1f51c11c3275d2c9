// A plot of uPlot in the colours of the page. The same numbers are in a table below it, for those who cannot see it.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { html, moment } from "/ui.js";

const HEIGHT = 180;
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The value of a colour of base.css. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const bars = () => uPlot.paths.bars({ size: [0.6, 46] });
export const steps = () => uPlot.paths.stepped({ align: 1 });
export const axis = (more = {}) => ({ stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", ...more });
const two = (number) => String(number).padStart(2, "0");
/** `13:30`; at midnight, and where a day is a step, the date. */
const hour = (at, step) => {
  const date = new Date(at * 1000);
  const isDay = step >= 86400 || (date.getHours() === 0 && date.getMinutes() === 0);
  return isDay ? `${two(date.getMonth() + 1)}-${two(date.getDate())}` : `${two(date.getHours())}:${two(date.getMinutes())}${step < 60 ? `:${two(date.getSeconds())}` : ""}`;
};
export const timeAxis = () => axis({ size: 28, values: (_, splits, _axis, _space, step) => splits.map((at) => hour(at, step)) });
export const timeSeries = () => ({ label: "Time", value: (_, at) => (at == null ? "–" : moment(new Date(at * 1000).toISOString())) });
export const fromZero = (most = 0) => ({ range: (_, low, high) => [0, Math.max(high || 0, most) * 1.05 || 1] });

/** `options()` are those of uPlot without a size; it is called when there is a place to draw. */
export function Plot({ label, data, options }) {
  const box = useRef(null);
  const [isDark, setDark] = useState(DARK.matches);
  useEffect(() => {
    const onChange = () => setDark(DARK.matches);
    DARK.addEventListener("change", onChange);
    return () => DARK.removeEventListener("change", onChange);
  }, []);
  useEffect(() => {
    if (!box.current) return undefined;
    const plot = new uPlot({ width: box.current.clientWidth, height: HEIGHT, cursor: { y: false }, ...options() }, data, box.current);
    const observer = new ResizeObserver(([entry]) => plot.setSize({ width: entry.contentRect.width, height: HEIGHT }));
    observer.observe(box.current);
    return () => { observer.disconnect(); plot.destroy(); };
  }, [data, isDark]);
  return html`<div class="chart" ref=${box} role="img" aria-label=${label}></div>`;
}
