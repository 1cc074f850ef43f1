// The heat map: drawn on a canvas, because two hundred classes are forty thousand cells.
const map = document.getElementById("map");
const tip = document.getElementById("tip");
const RAMPS = {
  light: ["#f3f5f1", "#f5dfa8", "#ee9d5a", "#c9434f", "#6b1d5e", "#2b0b3a"],
  dark: ["#1f2a30", "#4a3a6a", "#a3407c", "#ea6b51", "#fbb54d", "#fff3b0"],
};
const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
let geometry = { gutter: 0, top: 0, cell: 1 };
let printing = false;

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (printing) return false;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// One scale for all models, so that they can be compared by colour. Of many pairs a hundredth may lie below it: else one
// pair of single rows would bleach all others.
const [LOWEST, SATURATED] = (() => {
  const sorted = DATA.models.flatMap((model) => [...model.matrix].filter((v) => !Number.isNaN(v))).sort((a, b) => a - b);
  const spared = sorted.length > 2000 ? Math.floor(0.01 * sorted.length) : 0;
  const low = Math.floor(Math.min(0.95, sorted[spared]) * 20) / 20;
  return [low, sorted[0] < low];
})();

function colour(value, ramp) {
  const t = Math.min(1, Math.max(0, (1 - value) / (1 - LOWEST))) * (ramp.length - 1);
  const k = Math.min(ramp.length - 2, Math.floor(t));
  return ramp[k].map((c, d) => Math.round(c + (t - k) * (ramp[k + 1][d] - c)));
}

function shorten(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

function draw() {
  const n = STATE.to - STATE.from;
  const width = map.parentElement.clientWidth;
  if (width === 0) return;
  const names = DATA.classes.slice(STATE.from, STATE.to);
  const longest = Math.max(...names.map((name) => Math.min(name.length, 14)));
  const labelled = (width - 7.2 * longest - 14) / n >= 13;
  const gutter = labelled ? Math.min(width * 0.3, 6.6 * longest + 26) : 20;
  const cell = (width - gutter - 2) / n;
  const flat = labelled && 7.2 * longest < cell - 4;
  const top = flat ? 24 : gutter;
  geometry = { gutter, top, cell };
  const scale = window.devicePixelRatio || 1;
  const height = top + n * cell + 2;
  map.width = Math.round(width * scale);
  map.height = Math.round(height * scale);
  map.style.height = `${height}px`;
  const ink = getComputedStyle(document.body).color;
  const paint = map.getContext("2d");
  paint.scale(scale, scale);
  paint.clearRect(0, 0, width, height);
  const ramp = RAMPS[isDark() ? "dark" : "light"].map(rgb);
  const snap = (at) => Math.round(at * scale) / scale;
  const across = (k) => snap(gutter + k * cell);
  const down = (k) => snap(top + k * cell);
  const gap = cell > 9 ? 1 : 0;
  const family = getComputedStyle(document.body).fontFamily;
  paint.textBaseline = "middle";
  for (let r = 0; r < n; r++) {
    for (let c = 0; c < n; c++) {
      const value = aucOf(STATE.model, STATE.from + r, STATE.from + c);
      const [x, y] = [across(c), down(r)];
      if (Number.isNaN(value)) continue;
      const [red, green, blue] = colour(value, ramp);
      paint.fillStyle = `rgb(${red},${green},${blue})`;
      paint.fillRect(x, y, across(c + 1) - x - gap, down(r + 1) - y - gap);
      if (cell >= 36) {
        paint.fillStyle = 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#15191b" : "#ffffff";
        paint.font = `${cell >= 56 ? 14 : 11}px ${family}`;
        paint.textAlign = "center";
        const text = value === 1 ? "1" : value.toFixed(cell >= 44 ? 3 : 2).replace(/^0/, "");
        paint.fillText(text === "1.00" || text === "1.000" ? ">.99" : text, x + cell / 2, y + cell / 2);
      }
    }
  }
  paint.fillStyle = ink;
  paint.font = `12px ${family}`;
  if (labelled) {
    const most = Math.max(3, Math.floor((gutter - 24) / 6.4));
    for (let k = 0; k < n; k++) {
      const name = shorten(names[k], most);
      paint.textAlign = "right";
      paint.fillText(name, gutter - 6, top + (k + 0.5) * cell);
      paint.save();
      paint.translate(gutter + (k + 0.5) * cell, top - 6);
      if (!flat) paint.rotate(-Math.PI / 2);
      paint.textAlign = flat ? "center" : "left";
      paint.fillText(name, 0, flat ? -4 : 0);
      paint.restore();
    }
  }
  paint.globalAlpha = 0.75;
  paint.textAlign = "left";
  if (!labelled) {
    paint.fillText("against class j, frequent to rare →", gutter, 9);
    paint.save();
    paint.translate(9, top);
    paint.rotate(-Math.PI / 2);
    paint.textAlign = "right";
    paint.fillText("← class i, rare to frequent", 0, 0);
    paint.restore();
  } else {
    paint.fillText("i \\ j", 2, 9);
  }
  paint.globalAlpha = 1;
  mark(paint, across, down, n);
}

function mark(paint, across, down, n) {
  const [r, c] = [STATE.i - STATE.from, STATE.j - STATE.from];
  if (r < 0 || c < 0 || r >= n || c >= n) return;
  const size = Math.max(across(c + 1) - across(c), 6);
  paint.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  paint.lineWidth = 2.5;
  paint.strokeRect(across(c) - 1.5, down(r) - 1.5, size + 2, size + 2);
}

function legend() {
  const ramp = RAMPS[isDark() ? "dark" : "light"];
  document.getElementById("ramp").style.background = `linear-gradient(to left, ${ramp.join(",")})`;
  document.getElementById("legend-low").textContent = (SATURATED ? "≤ " : "") + LOWEST.toFixed(2);
}

function cellAt(event) {
  const box = map.getBoundingClientRect();
  const c = Math.floor((event.clientX - box.left - geometry.gutter) / geometry.cell);
  const r = Math.floor((event.clientY - box.top - geometry.top) / geometry.cell);
  const n = STATE.to - STATE.from;
  if (r < 0 || c < 0 || r >= n || c >= n) return null;
  return { i: STATE.from + r, j: STATE.from + c };
}

function describe(i, j) {
  if (i === j) return `${DATA.classes[i]}, ${rows(DATA.counts[i])}`;
  const value = number(aucOf(STATE.model, i, j));
  return `${DATA.classes[i]} (${rows(DATA.counts[i])}) against ${DATA.classes[j]} (${rows(DATA.counts[j])}): AUC ${value}`;
}

function showTip(cell, x, y) {
  tip.textContent = describe(cell.i, cell.j);
  tip.hidden = false;
  const room = map.parentElement.clientWidth;
  tip.style.left = `${Math.max(0, Math.min(x + 14, room - tip.offsetWidth))}px`;
  tip.style.top = `${y + 18}px`;
}

map.addEventListener("pointermove", (event) => {
  const cell = cellAt(event);
  if (!cell) { tip.hidden = true; return; }
  const box = map.getBoundingClientRect();
  showTip(cell, event.clientX - box.left, event.clientY - box.top);
});
map.addEventListener("pointerleave", () => { tip.hidden = true; });
map.addEventListener("blur", () => { tip.hidden = true; });
map.addEventListener("click", (event) => {
  const cell = cellAt(event);
  if (cell && cell.i !== cell.j) look(cell);
});

map.addEventListener("keydown", (event) => {
  const [low, high] = [STATE.from, STATE.to - 1];
  const steps = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -high], End: [0, high],
  };
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openPair();
    return;
  }
  if (event.key === "x") { look({ i: STATE.j, j: STATE.i }); return; }
  const step = steps[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const inside = (k) => Math.min(high, Math.max(low, k));
  let [i, j] = [inside(STATE.i + step[0]), inside(STATE.j + step[1])];
  if (i === j) {
    // The diagonal is no pair: step over it, or stay where it ends the map.
    [i, j] = [inside(i + Math.sign(step[0])), inside(j + Math.sign(step[1]))];
    if (i === j) [i, j] = [STATE.i, STATE.j];
  }
  look({ i, j });
  const { gutter, top, cell } = geometry;
  showTip({ i, j }, gutter + (j - low + 0.5) * cell, top + (i - low + 0.5) * cell);
  document.getElementById("said").textContent = describe(i, j);
});

watchers.push(draw);
new ResizeObserver(() => requestAnimationFrame(draw)).observe(map.parentElement);
const repaint = () => { legend(); draw(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
addEventListener("beforeprint", () => { printing = true; repaint(); });
addEventListener("afterprint", () => { printing = false; repaint(); });
