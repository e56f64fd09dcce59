"use strict";
// Charts, drawn from the same data as the tables.
{
  const labels = new Map(report.analysis.runs.map((run, place) => [run.name, report.runs[place].label]));
  const colourOf = (place) => `var(--run-${place % 8})`;
  const percent = (value) => (value === null || value === undefined ? NaN : 100 * value);
  const point = (estimate) => ({
    x: percent(estimate.value ?? estimate.difference),
    low: percent(estimate.ci95?.[0]), high: percent(estimate.ci95?.[1]),
  });
  const tipText = (d, unit) => [
    [d.label, d.naming && `${d.naming} name`].filter(Boolean).join(", "), d.group === d.label ? "" : d.group,
    formatNumber(d.x / 100, unit) +
      (Number.isFinite(d.low) ? ` (95% CI ${formatNumber([d.low / 100, d.high / 100], unit)})` : ""),
  ].filter(Boolean).join("\n");
  const TIP = { fontSize: 12, lineHeight: 1.35, textPadding: 9, stroke: "var(--soft)" };

  // Points with intervals in groups, each group under its heading.
  function forest(rows, width, { unit = "%", description, ticks = false }) {
    const known = rows.filter((row) => Number.isFinite(row.x));
    if (!known.length) return make("p", { class: "soft" }, "No data.");
    const groups = [...new Set(known.map((row) => row.group))];
    const lanes = [...new Set(known.map((row) => row.lane))];
    const tall = groups.length > MANY;
    const filled = known.filter((row) => row.naming !== "benign");
    const open = known.filter((row) => row.naming === "benign");
    const position = { fy: "group", y: "lane" };
    return Plot.plot({
      width, height: (tall ? 80 : 48) + groups.length * (lanes.length * 17 + 32), marginLeft: 12, marginRight: 16,
      marginTop: tall ? 38 : 6, marginBottom: 40, ariaLabel: description,
      x: {
        axis: tall ? "both" : "bottom",
        label: unit === "%" ? "percent of tasks" : "percentage points", grid: true, labelAnchor: "center", labelArrow: false,
        ...(unit === "%" ? { domain: [0, 100] } : { nice: true }),
      },
      y: { domain: ["", ...lanes], axis: null, padding: 0.5 },
      fy: { domain: groups, axis: null, padding: 0.14 },
      marks: [
        unit === "%" ? null : Plot.ruleX([0], { stroke: "var(--soft)" }),
        Plot.text(groups, { fy: (d) => d, text: (d) => d, frameAnchor: "top-left", dx: 4, dy: 3, fontWeight: 600, fill: "var(--ink)",
          stroke: "var(--card)", strokeWidth: 4 }),
        Plot.ruleY(known, { ...position, x1: "low", x2: "high", stroke: "colour", strokeWidth: 2 }),
        ticks ? Plot.tickX(known, { ...position, x: "zero", stroke: "colour", strokeWidth: 2, insetTop: -2, insetBottom: -2 }) : null,
        Plot.dot(filled, { ...position, x: "x", r: 5, fill: "colour" }),
        Plot.dot(open, { ...position, x: "x", r: 4.5, stroke: "colour", strokeWidth: 2, fill: "var(--card)" }),
        Plot.tip(known, Plot.pointer({ ...TIP, ...position, x: "x", title: (d) => tipText(d, unit), maxRadius: 60 })),
      ],
    });
  }

  // Curves over levels with bands, one panel per naming.
  function curves(quantity, width) {
    const points = sides.flatMap(({ place, label, naming, scores }) => {
      const [values, bands] = quantity === "cumulative"
        ? [scores.levels.map((step) => step.domain.value), scores.levels.map((step) => step.domain.ci95)]
        : [scores.survival[quantity], scores.survival[`${quantity}_band`]];
      return values.map((value, level) => ({
        level, label, naming, panel: `${naming} name`, side: `${place} ${naming}`, colour: colourOf(place),
        x: percent(value), low: percent(bands[level]?.[0]), high: percent(bands[level]?.[1]),
      }));
    });
    const panels = [...new Set(points.map((d) => d.panel))];
    const facet = width < 620 ? "fy" : "fx";
    const last = Math.max(0, ...points.map((d) => d.level));
    const line = { x: "level", z: "side", [facet]: "panel" };
    return Plot.plot({
      width, height: facet === "fy" ? 40 + 210 * panels.length : 320, marginLeft: 44, marginBottom: 40, marginTop: 28,
      ariaLabel: `${quantity} by level`,
      x: { domain: [0, last], ticks: last + 1, tickFormat: "d", label: "level", labelAnchor: "center", labelArrow: false },
      y: { grid: true, label: "percent", zero: true, nice: true, ...(quantity === "hazard" ? {} : { domain: [0, 100] }) },
      [facet]: { domain: panels, axis: null },
      marks: [
        Plot.text(panels, { [facet]: (d) => d, text: (d) => d, frameAnchor: "top", dy: -14, fontWeight: 600 }),
        Plot.areaY(points, { ...line, y1: "low", y2: "high", fill: "colour", fillOpacity: 0.13 }),
        Plot.lineY(points, { ...line, y: "x", stroke: "colour", strokeWidth: 2 }),
        Plot.dot(points, { ...line, y: "x", r: 2.5, fill: "colour" }),
        Plot.tip(points, Plot.pointer({ ...TIP, x: "level", y: "x", [facet]: "panel",
          title: (d) => tipText({ ...d, group: `level ${d.level}` }, "%") })),
      ],
    });
  }

  // Rows of a forest: the estimates of every side, as [group, estimate, extra] triples.
  const bySide = (estimatesOf) => sides.flatMap(({ place, label, naming, scores }) =>
    estimatesOf(scores).map(([group, estimate, extra = {}]) => ({
      label, naming, group: group ?? label, lane: group ? `${place} ${naming}` : naming, colour: colourOf(place),
      ...point(estimate), ...extra,
    })));

  const byPart = (part) => (width) => forest(
    bySide((scores) => Object.entries(scores.parts[part]).map(([name, both]) => [name, both.domain])),
    width, { description: `Propensity by ${part}` });

  function summary(width) {
    const rows = bySide(({ estimates }) => [[null, estimates.propensity.domain,
      { zero: percent(estimates.propensity_zero.domain.value) }]]);
    return forest(rows, width, { description: "Propensity of each run under each naming", ticks: true });
  }

  function namingByDimension(width) {
    const rows = report.analysis.runs.flatMap((run, place) =>
      (run.families.both ?? []).flatMap((family) => family.comparisons).map((one) => (
        { label: report.runs[place].label, group: one.name, lane: String(place), colour: colourOf(place), ...point(one) }
      )));
    return forest(rows, width, { unit: "pp", description: "Difference between the namings by dimension" });
  }

  function pairs(width) {
    const rows = Object.entries(report.analysis.models).flatMap(([naming, comparison]) =>
      comparison.pairs.map((pair) => ({
        label: "", naming, group: `${labels.get(pair.second)} minus ${labels.get(pair.first)}`, lane: naming,
        colour: "var(--link)", ...point(pair.contrast.propensity),
      })));
    return forest(rows, width, { unit: "pp", description: "Difference in propensity between runs" });
  }

  const CHARTS = {
    summary, pairs, naming: namingByDimension,
    domain: byPart("domain"), dimension: byPart("dimension"), capability: byPart("capability"),
    cumulative: (width) => curves("cumulative", width),
    survival: (width) => curves("survival", width),
    hazard: (width) => curves("hazard", width),
  };

  function legend(name) {
    const several = report.runs.length > 1 && name !== "pairs" && name !== "summary";
    const entries = several ? report.runs.map(({ label }, place) =>
      make("span", {}, make("i", { class: `dot r${place % 8}` }), label)) : [];
    const namings = new Set(sides.map((side) => side.naming));
    if (namings.size > 1 && ["summary", "domain", "dimension", "capability", "pairs"].includes(name)) {
      entries.push(make("span", {}, make("i", { class: "dot r7" }), "harmful name"));
      entries.push(make("span", {}, make("i", { class: "dot open" }), "benign name"));
    }
    return make("div", { class: "key" }, ...entries);
  }

  function draw(box) {
    const width = Math.floor(box.clientWidth - 2 * parseFloat(getComputedStyle(box).paddingLeft));
    if (width <= 0 || box.dataset.width === String(width)) return;
    box.dataset.width = String(width);
    box.replaceChildren(legend(box.dataset.chart), CHARTS[box.dataset.chart](width));
    // Plot labels its groups, and a label needs a role.
    box.querySelectorAll("g[aria-label]:not([role])").forEach((group) => group.setAttribute("role", "group"));
  }

  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));
  document.querySelectorAll(".chart").forEach((box) => sizes.observe(box));
}
