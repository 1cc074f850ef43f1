// One pair of classes: in the map, in words, as two histograms back to back, and as a ROC curve.
const map = document.getElementById("map");

// One scale for all models, so that colours can be compared. With many pairs, a hundredth of them may lie below the scale:
// otherwise one pair of single rows would make all others pale.
const [LOWEST, SATURATED] = (() => {
  const sorted = DATA.models.flatMap((model) => [...model.matrix].filter((v) => !Number.isNaN(v))).sort((a, b) => a - b);
  const spared = sorted.length > 2000 ? Math.floor(0.01 * sorted.length) : 0;
  const low = Math.floor(Math.min(0.95, sorted[spared]) * 20) / 20;
  return [low, sorted[0] < low];
})();
document.getElementById("legend-low").textContent = (SATURATED ? "≤ " : "") + LOWEST.toFixed(2);

function describe(i, j) {
  if (i === j) return `${DATA.classes[i]}, ${rows(DATA.counts[i])}`;
  const value = number(aucOf(STATE.model, i, j));
  return `${DATA.classes[i]} (${rows(DATA.counts[i])}) against ${DATA.classes[j]} (${rows(DATA.counts[j])}): AUC ${value}`;
}

const pairMap = heatMap(map, document.getElementById("tip"), {
  bad: (i, j) => (1 - aucOf(STATE.model, i, j)) / (1 - LOWEST),
  text: (i, j, cell) => {
    const value = aucOf(STATE.model, i, j);
    const shown = value === 1 ? "1" : value.toFixed(cell >= 44 ? 3 : 2).replace(/^0/, "");
    return shown === "1.00" || shown === "1.000" ? ">.99" : shown;
  },
  describe,
  at: () => [STATE.i, STATE.j],
  choose: (i, j) => look({ i, j }),
  diagonal: false,
  axes: ["against class j", "class i"],
  corner: "rows: class i, columns: class j",
  key: (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); openPair(); return true; }
    if (event.key === "x") { look({ i: STATE.j, j: STATE.i }); return true; }
    return false;
  },
});

function axisTicks(low, high, logOdds) {
  if (!logOdds) {
    const step = (high - low) / 2;
    const tidy = (v) => Number(v.toPrecision(3)).toString();
    return [low, low + step, high].map((v) => [v, tidy(v)]);
  }
  return [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999]
    .map((p) => [Math.log(p / (1 - p)), String(p)])
    .filter(([v]) => v >= low - 1e-6 && v <= high + 1e-6);
}

function drawHistogram() {
  const { model: m, i, j } = STATE;
  const svg = document.getElementById("histogram");
  const caption = document.getElementById("histogram-caption");
  const [upper, lower] = [histogramOf(m, i, i), histogramOf(m, i, j)];
  if (!upper || !lower) {
    svg.innerHTML = "";
    caption.textContent = "With this many classes only the pairs of the tables above keep their histograms.";
    return;
  }
  caption.textContent = `Score of ${DATA.classes[i]}, on rows of ${DATA.classes[i]} (up) and of ${DATA.classes[j]} (down)`;
  // Each side fills its half, whatever the number of rows.
  const scaled = (counts) => { const top = Math.max(...counts); return Array.from(counts, (c) => c / top); };
  const [up, down] = [scaled(upper), scaled(lower)];
  const [left, width, middle, reach] = [6, 228, 96, 82];
  const bar = width / DATA.bins;
  let parts = "";
  for (let b = 0; b < DATA.bins; b++) {
    const x = (left + b * bar).toFixed(1);
    const w = Math.max(1, bar - 1).toFixed(1);
    if (up[b]) { const h = Math.max(1.5, reach * up[b]); parts += `<rect class="up" x="${x}" y="${(middle - h).toFixed(1)}" width="${w}" height="${h.toFixed(1)}"/>`; }
    if (down[b]) { const h = Math.max(1.5, reach * down[b]); parts += `<rect class="down" x="${x}" y="${middle}" width="${w}" height="${h.toFixed(1)}"/>`; }
  }
  parts += `<line class="axis" x1="${left}" x2="${left + width}" y1="${middle}" y2="${middle}"/>`;
  const [low, high, logOdds] = DATA.models[m].axes[i];
  let end = -Infinity;
  for (const [value, label] of axisTicks(low, high, logOdds)) {
    const x = left + (width * (value - low)) / (high - low);
    const anchor = x < 20 ? "start" : x > 220 ? "end" : "middle";
    const wide = 6 * label.length;
    const begin = anchor === "start" ? x : anchor === "end" ? x - wide : x - wide / 2;
    if (begin < end + 4) continue;
    end = begin + wide;
    parts += `<line class="axis" x1="${x}" x2="${x}" y1="184" y2="189"/><text x="${x}" y="203" text-anchor="${anchor}">${label}</text>`;
  }
  parts += `<text class="strong" x="8" y="12">${text(shorten(DATA.classes[i], 22))}</text><text class="strong" x="232" y="178" text-anchor="end">${text(shorten(DATA.classes[j], 22))}</text>`;
  svg.innerHTML = parts;
}

function drawCurve() {
  const { model: m, i, j } = STATE;
  const svg = document.getElementById("roc");
  const caption = document.getElementById("roc-caption");
  const curve = curveOf(m, i, j);
  svg.innerHTML = curve ? square("false positive rate (j)", "true positive rate (i)", curve.points, { chance: true, under: true }) : "";
  caption.textContent = curve ? `ROC, area ${number(aucOf(m, i, j))}${curve.exact ? "" : "; drawn from the histograms"}` : "";
}

function describePair() {
  const { model: m, i, j } = STATE;
  const [a, b] = [DATA.classes[i], DATA.classes[j]];
  document.getElementById("pair-title").textContent = `${a} against ${b}: AUC ${number(aucOf(m, i, j))}`;
  document.getElementById("pair-text").textContent =
    `Of two rows, one of ${a} (${rows(DATA.counts[i])}) and one of ${b} (${rows(DATA.counts[j])}), the score of ${a} is higher on the row of ${a} ` +
    `${(100 * aucOf(m, i, j)).toFixed(1)} % of the time. The other way round, by the score of ${b}: ${number(aucOf(m, j, i))}.`;
  document.getElementById("pick-i").value = i;
  document.getElementById("pick-j").value = j;
  map.setAttribute("aria-label", `Heat map of class pairs, at ${describe(i, j)}`);
}

function openPair() {
  const detail = document.getElementById("detail");
  detail.scrollIntoView({ block: "nearest" });
  detail.focus({ preventScroll: true });
}

watchers.push(describePair, drawHistogram, drawCurve);
