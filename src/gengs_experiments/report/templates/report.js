"use strict";
// The page's own script: sorting, menus, charts, themes. It reads the data block below the page,
// writes text as text, and asks nobody for anything.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // ---- tables -------------------------------------------------------------------------------
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  const sortBy = (table, head) => {
    const column = [...head.parentElement.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.children) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.children[column].dataset.value;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      return down ? compare(y, x) : compare(x, y); // what has no value stays at the end
    });
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable"))
    for (const head of table.tHead.rows[0].cells)
      head.querySelector("button").addEventListener("click", () => sortBy(table, head));

  for (const group of document.querySelectorAll(".choices")) {
    const control = group.querySelector(".switch");
    if (!control) continue;
    const tables = [...group.querySelectorAll(".choice")];
    const show = () => {
      const chosen = Number(control.querySelector("input:checked").value);
      tables.forEach((table, number) => { table.hidden = number !== chosen; });
    };
    control.hidden = false;
    control.addEventListener("change", show);
    show();
  }

  // ---- colours ------------------------------------------------------------------------------
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const mix = (a, b, share) => channels(a).map((v, i) => Math.round(v + (channels(b)[i] - v) * share));
  const paint = (look) => `rgb(${mix(colour(look.kind), colour("page"), look.shade).join(",")})`;
  const clear = (look, alpha) => paint(look).replace("rgb", "rgba").replace(")", `,${alpha})`);
  // Plotly reads a little markup in its texts: make it plain.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const DASHES = { solid: "", dash: "6 3", dot: "1.5 3", dashdot: "6 3 1.5 3", longdash: "10 3" };

  const swatch = (look, round) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("width", "26");
    svg.setAttribute("height", "11");
    svg.setAttribute("aria-hidden", "true");
    const mark = document.createElementNS(space, round ? "text" : "line");
    if (round) mark.textContent = SHAPES[look.marker][1];
    const shape = round
      ? { x: 13, y: 9, "text-anchor": "middle", "font-size": 12, fill: paint(look) }
      : { x1: 0, y1: 5, x2: 26, y2: 5, stroke: paint(look), "stroke-width": look.width,
          "stroke-dasharray": DASHES[look.dash] };
    for (const [key, value] of Object.entries(shape)) mark.setAttribute(key, value);
    svg.append(mark);
    return svg;
  };

  // ---- charts -------------------------------------------------------------------------------
  const axis = (title, log, values) => {
    const shown = values.filter((v) => v > 0).map(Math.log10);
    const low = Math.floor(shown.reduce((least, v) => Math.min(least, v), Infinity));
    const high = Math.ceil(shown.reduce((most, v) => Math.max(most, v), -Infinity));
    return {
      title: { text: plain(title), standoff: 8 }, type: log ? "log" : "linear", automargin: true,
      gridcolor: colour("line"), linecolor: colour("muted"), zeroline: false, ticks: "outside",
      tickcolor: colour("line"), exponentformat: "power", // full decades: any two charts can be compared
      ...(log && shown.length ? { dtick: 1, range: [low, Math.max(high, low + 1)], minor: { ticks: "outside", ticklen: 3 } } : {}),
    };
  };
  const layout = (x, y) => ({
    autosize: true, margin: { l: 60, r: 12, t: 10, b: 45 }, showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("text") },
    xaxis: x, yaxis: y, hovermode: "closest",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("text") },
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("text") } },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
  });
  // Plotly would offer to send the chart to its makers: nothing leaves this page.
  const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]] };

  // Many bands on top of each other hide what they are about: then they are faint, or not there.
  const bandShade = (line, many) => many ? (line.width > 2 ? 0.1 : 0) : 0.16;
  const curveTraces = (lines, hidden) => lines.flatMap((line) => {
    const shade = bandShade(line, lines.filter((one) => !hidden.has(one.label)).length > 7);
    const base = { legendgroup: line.label, name: plain(line.label), visible: !hidden.has(line.label) };
    const traces = [{ ...base, x: line.x, y: line.y, mode: line.y.length < 15 ? "lines+markers" : "lines",
      type: "scatter", line: { color: paint(line), dash: line.dash, width: line.width },
      marker: { size: 5 }, connectgaps: false,
      hovertemplate: `${plain(line.label).replace(/%\{/g, "% {")}: %{y:.5g}<br>step %{x}<extra></extra>` }];
    if (line.low.length && shade)
      traces.unshift({ ...base, x: [...line.x, ...[...line.x].reverse()],
        y: [...line.high, ...[...line.low].reverse()], fill: "toself", fillcolor: clear(line, shade),
        line: { width: 0 }, mode: "lines", type: "scatter", hoverinfo: "skip" });
    return traces;
  });

  const AXES = { bias: "|bias|", variance: "variance of a gradient", error: "error of one gradient",
    evaluations: "evaluations of the cost", milliseconds: "milliseconds for one gradient" };
  // matplotlib's letter of a shape: Plotly's word, and a character for the legend
  const SHAPES = { o: ["circle", "●"], s: ["square", "■"], D: ["diamond", "◆"], "^": ["triangle-up", "▲"],
    v: ["triangle-down", "▼"], P: ["cross", "✚"], "*": ["star", "★"], X: ["x", "✖"],
    "<": ["triangle-left", "◀"], ">": ["triangle-right", "▶"] };
  const head = (label) => label.split("(")[0];
  const pointTraces = (points, hidden, x, y) => {
    const heads = points.map((p) => head(p.label));
    const short = (label) => heads.filter((h) => h === head(label)).length > 1 ? label : head(label);
    const longest = Math.max(...points.map((p) => p.milliseconds || 0), 1e-9);
    const shown = points.filter((p) => p[x] > 0 && p[y] > 0);
    const ends = [Math.min, Math.max].map((end) => Math.log(end(...shown.map((p) => p[x]))));
    // names near an edge lean inwards
    const side = (p) => {
      const share = (Math.log(p[x]) - ends[0]) / (ends[1] - ends[0] || 1);
      return share > 0.85 ? "top left" : share < 0.1 ? "top right" : "top center";
    };
    return shown.map((p) => {
      const sure = !(y === "bias" || x === "bias") || p.bias > 2 * (p.bias_error || 0);
      const bar = (name) => p[`${name}_error`] === undefined ? undefined
        : { type: "data", array: [2 * p[`${name}_error`]], color: clear(p, 0.6), thickness: 1.2, width: 3 };
      return { x: [p[x]], y: [p[y]], name: plain(p.label), type: "scatter", mode: innerWidth < 640 || shown.length > 8 ? "markers" : "markers+text", // names would overlap
        visible: !hidden.has(p.label), text: [plain(short(p.label))], textposition: side(p),
        textfont: { size: 11, color: paint(p) }, cliponaxis: false, error_x: bar(x), error_y: bar(y),
        marker: { symbol: SHAPES[p.marker][0], size: 9 + 22 * Math.sqrt((p.milliseconds || 0) / longest), line: { width: 2, color: paint(p) },
          color: sure ? clear(p, 0.55) : "rgba(0,0,0,0)" },
        hovertemplate: `${plain(p.label).replace(/%\{/g, "% {")}<br>${plain(AXES[x])} %{x:.4g}<br>` +
          `${plain(AXES[y])} %{y:.4g}<br>${Number(p.evaluations)} evaluations, ` +
          `${Number(p.milliseconds || 0).toPrecision(3)} ms<extra></extra>` };
    });
  };

  // The numbers of one axis, with their bars, of the points that can be drawn.
  const ends = (points, key, other) => points.filter((p) => p[key] > 0 && p[other] > 0)
    .flatMap((p) => [p[key], p[key] + 2 * (p[`${key}_error`] || 0)]);

  const menu = (figure, title, names, chosen, change) => {
    const select = make("select");
    for (const name of names) select.append(make("option", { value: name }, AXES[name] || name));
    select.value = chosen;
    select.addEventListener("change", () => change(select.value));
    const label = make("label", {}, title, select);
    label.hidden = names.length < 2;
    figure.querySelector(".menus").append(label);
    return { select, label };
  };

  const startChart = (chart) => {
    const figure = document.getElementById(chart.id);
    const plot = figure.querySelector(".plot"), legend = figure.querySelector(".legend");
    const hidden = new Set(), points = chart.type === "points";
    const first = Object.keys(chart.views)[0];
    const state = points ? { view: first, x: "variance", y: "bias" }
      : { view: first, shows: Object.keys(chart.views[first])[0] };
    const members = () => points ? chart.views[state.view] : chart.views[state.view][state.shows] || [];

    const draw = () => {
      const lines = members();
      let traces, x, y;
      if (points) {
        traces = pointTraces(lines, hidden, state.x, state.y);
        x = axis(AXES[state.x], true, ends(lines, state.x, state.y));
        y = axis(AXES[state.y], true, ends(lines, state.y, state.x));
      } else {
        traces = curveTraces(lines, hidden);
        x = axis(chart.x, false, []);
        y = axis(state.shows, Boolean(chart.log), lines.flatMap((line) => [...line.y, ...line.low, ...line.high]));
      }
      Plotly.react(plot, traces, layout(x, y), CONFIG);
      drawLegend(lines);
    };
    const drawLegend = (lines) => {
      legend.replaceChildren(...lines.map((line) => {
        const count = line.count ? `${line.count} run${line.count === 1 ? "" : "s"}` : "";
        const button = make("button", { type: "button", "aria-pressed": String(!hidden.has(line.label)),
          title: [line.kindTitle, count].filter(Boolean).join(", ") }, swatch(line, points), make("span", {}, line.label));
        button.addEventListener("click", (event) => {
          if (event.shiftKey) {
            const alone = lines.every((one) => hidden.has(one.label) === (one !== line));
            for (const one of lines)
              if (alone || one === line) hidden.delete(one.label); else hidden.add(one.label);
          } else if (!hidden.delete(line.label)) hidden.add(line.label);
          draw();
          [...legend.children].find((b) => b.textContent === line.label)?.focus();
        });
        return button;
      }));
    };
    let second;
    menu(figure, points ? "law" : chart.menus[0], Object.keys(chart.views), state.view, (name) => {
      state.view = name;
      if (!points) {
        const names = Object.keys(chart.views[name]);
        if (!names.includes(state.shows)) state.shows = names[0];
        second.label.remove();
        second = addSecond();
      }
      draw();
    });
    const addSecond = () => menu(figure, chart.menus[1], Object.keys(chart.views[state.view]), state.shows,
      (name) => { state.shows = name; draw(); });
    if (points) {
      const axes = ["variance", "bias", "error", "evaluations", "milliseconds"];
      menu(figure, "across", axes, state.x, (name) => { state.x = name; draw(); });
      menu(figure, "up", axes, state.y, (name) => { state.y = name; draw(); });
    } else second = addSecond();
    return draw;
  };
  const charts = data.charts.map(startChart);
  const drawAll = () => { for (const draw of charts) draw(); };
  // A chart is drawn when it comes near: a long page opens at once.
  const drawn = new Set();
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const number = data.charts.findIndex((chart) => chart.id === entry.target.id);
      if (entry.isIntersecting && !drawn.has(number)) { drawn.add(number); charts[number](); }
    }
  }, { rootMargin: "600px" });
  for (const chart of data.charts) near.observe(document.getElementById(chart.id));
  const redraw = () => { for (const number of drawn) charts[number](); };
  addEventListener("beforeprint", () => { data.charts.forEach((_, n) => drawn.add(n)); drawAll(); });

  // ---- light and dark -----------------------------------------------------------------------
  const themes = ["auto", "light", "dark"], button = document.getElementById("theme");
  const remember = (value) => { try { localStorage.setItem("gengs-theme", value); } catch { /* not allowed */ } };
  let theme = "auto";
  try { theme = localStorage.getItem("gengs-theme") || "auto"; } catch { /* not allowed */ }
  const apply = () => {
    if (theme === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", theme);
    button.querySelector("span").textContent = theme;
    redraw();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    remember(theme);
    apply();
  });
  if (!themes.includes(theme)) theme = "auto";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  apply();

  // ---- where we are -------------------------------------------------------------------------
  const narrow = matchMedia("(max-width: 56rem)");
  const fold = () => { document.querySelector(".contents").open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
  }, { rootMargin: "-10% 0px -80% 0px" });
  for (const id of links.keys()) seen.observe(document.getElementById(id));
})();
