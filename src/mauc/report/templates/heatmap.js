// Heat maps over pairs of classes, on a canvas: two hundred classes are forty thousand cells.
const RAMPS = {
  light: ["#f3f5f1", "#f5dfa8", "#ee9d5a", "#c9434f", "#6b1d5e", "#2b0b3a"],
  dark: ["#1f2a30", "#4a3a6a", "#a3407c", "#ea6b51", "#fbb54d", "#fff3b0"],
};
const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
let printing = false;

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (printing) return false;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const clamp = (t) => Math.min(1, Math.max(0, t));

// Pale is fine, strong is bad: bad runs from 0 to 1.
function colour(bad, ramp) {
  const t = clamp(bad) * (ramp.length - 1);
  const k = Math.min(ramp.length - 2, Math.floor(t));
  return ramp[k].map((c, d) => Math.round(c + (t - k) * (ramp[k + 1][d] - c)));
}

function shorten(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

// A map in a canvas, with a tip that follows pointer and keys. `of` says what it shows:
// bad(i, j) in 0…1 or NaN, text(i, j, cell), describe(i, j), at() and choose(i, j), diagonal, axes [across, down], key(event).
function heatMap(canvas, tip, of) {
  const map = { geometry: { gutter: 0, top: 0, cell: 1 } };

  map.draw = () => {
    const n = STATE.to - STATE.from;
    const width = canvas.parentElement.clientWidth;
    if (width === 0) return;
    const names = DATA.classes.slice(STATE.from, STATE.to);
    const longest = Math.max(...names.map((name) => Math.min(name.length, 14)));
    const labelled = (width - 7.2 * longest - 14) / n >= 13;
    const gutter = labelled ? Math.min(width * 0.3, 6.6 * longest + 26) : 20;
    const cell = (width - gutter - 2) / n;
    const flat = labelled && 7.2 * longest < cell - 4;
    // The names of the axes have a separate line above the names of the columns.
    const top = labelled ? 16 + (flat ? 24 : gutter) : gutter;
    map.geometry = { gutter, top, cell };
    const scale = window.devicePixelRatio || 1;
    const height = top + n * cell + 2;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const ink = getComputedStyle(document.body).color;
    const paint = canvas.getContext("2d");
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
        const [i, j] = [STATE.from + r, STATE.from + c];
        const bad = of.bad(i, j);
        if (Number.isNaN(bad)) continue;
        const [x, y] = [across(c), down(r)];
        const [red, green, blue] = colour(bad, ramp);
        paint.fillStyle = `rgb(${red},${green},${blue})`;
        paint.fillRect(x, y, across(c + 1) - x - gap, down(r + 1) - y - gap);
        if (cell >= 36) {
          paint.fillStyle = 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#15191b" : "#ffffff";
          paint.font = `${cell >= 56 ? 14 : 11}px ${family}`;
          paint.textAlign = "center";
          paint.fillText(of.text(i, j, cell), x + cell / 2, y + cell / 2);
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
      paint.fillText(`${of.axes[0]}, frequent to rare →`, gutter, 9);
      paint.save();
      paint.translate(9, top);
      paint.rotate(-Math.PI / 2);
      paint.textAlign = "right";
      paint.fillText(`← ${of.axes[1]}, rare to frequent`, 0, 0);
      paint.restore();
    } else {
      paint.fillText(of.corner, 2, 9);
    }
    paint.globalAlpha = 1;
    mark(paint, across, down, n);
  };

  function mark(paint, across, down, n) {
    const [r, c] = of.at().map((k) => k - STATE.from);
    if (r < 0 || c < 0 || r >= n || c >= n) return;
    const size = Math.max(across(c + 1) - across(c), 6);
    paint.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    paint.lineWidth = 2.5;
    paint.strokeRect(across(c) - 1.5, down(r) - 1.5, size + 2, size + 2);
  }

  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - map.geometry.gutter) / map.geometry.cell);
    const r = Math.floor((event.clientY - box.top - map.geometry.top) / map.geometry.cell);
    const n = STATE.to - STATE.from;
    return r < 0 || c < 0 || r >= n || c >= n ? null : [STATE.from + r, STATE.from + c];
  }

  function showTip([i, j], x, y) {
    tip.textContent = of.describe(i, j);
    tip.hidden = false;
    const room = canvas.parentElement.clientWidth;
    tip.style.left = `${Math.max(0, Math.min(x + 14, room - tip.offsetWidth))}px`;
    tip.style.top = `${y + 18}px`;
  }

  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    if (!cell) { tip.hidden = true; return; }
    const box = canvas.getBoundingClientRect();
    showTip(cell, event.clientX - box.left, event.clientY - box.top);
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("blur", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (cell && (of.diagonal || cell[0] !== cell[1])) of.choose(...cell);
  });

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || of.key?.(event)) return;
    const [low, high] = [STATE.from, STATE.to - 1];
    const steps = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -high], End: [0, high],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const inside = (k) => Math.min(high, Math.max(low, k));
    const now = of.at();
    let [i, j] = [inside(now[0] + step[0]), inside(now[1] + step[1])];
    if (i === j && !of.diagonal) {
      // The diagonal is no pair: step over it, or stay if it is the last cell.
      [i, j] = [inside(i + Math.sign(step[0])), inside(j + Math.sign(step[1]))];
      if (i === j) [i, j] = now;
    }
    of.choose(i, j);
    const { gutter, top, cell } = map.geometry;
    showTip([i, j], gutter + (j - low + 0.5) * cell, top + (i - low + 0.5) * cell);
    document.getElementById("said").textContent = of.describe(i, j);
  });

  watchers.push(map.draw);
  new ResizeObserver(() => requestAnimationFrame(map.draw)).observe(canvas.parentElement);
  return map;
}

function legend() {
  const ramp = RAMPS[isDark() ? "dark" : "light"];
  for (const bar of document.querySelectorAll(".ramp")) bar.style.background = `linear-gradient(to left, ${ramp.join(",")})`;
}
const repaint = () => { legend(); look({}); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
addEventListener("beforeprint", () => { printing = true; repaint(); });
addEventListener("afterprint", () => { printing = false; repaint(); });
