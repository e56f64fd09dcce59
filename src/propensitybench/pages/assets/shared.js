"use strict";
// What the page's other scripts use: classic scripts share their top-level declarations. All numbers and
// tables are already in the HTML; the scripts add charts, sorting, filters and cards.
const report = JSON.parse(document.getElementById("report").textContent);
const sides = report.analysis.runs.flatMap((run, place) =>
  Object.entries(run.scores.naming).map(([naming, scores]) => (
    { place, label: report.runs[place].label, naming, scores }
  )));
// Charts with more groups than this get a second axis.
const MANY = 8;

function formatNumber(value, unit) {
  if (value === null || value === undefined) return "unknown";
  if (Array.isArray(value)) return value.map((end) => formatNumber(end, unit)).join(" to ");
  const minus = (text) => text.replaceAll("-", "\u2212");
  if (unit === "%") return `${(100 * value).toFixed(2)}%`;
  if (unit === "pp") return minus(`${value >= 0 ? "+" : ""}${(100 * value).toFixed(2)} pp`);
  const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(4);
  return minus(unit === "diff" && value > 0 ? `+${text}` : text);
}
