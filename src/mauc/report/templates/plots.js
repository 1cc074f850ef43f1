// Shared by all plots: escaped text, and a square frame with a curve.
const text = (value) => {
  const holder = document.createElement("i");
  holder.textContent = value;
  return holder.innerHTML;
};

const FRAME = { left: 26, size: 176, bottom: 182 };
const spot = (x, y) => `${(FRAME.left + FRAME.size * x).toFixed(1)},${(FRAME.bottom - FRAME.size * y).toFixed(1)}`;

function square(across, up, curve, { chance = false, under = false, extra = "" } = {}) {
  const { left, size, bottom } = FRAME;
  const points = curve.map(([x, y]) => spot(x, y)).join(" ");
  return (
    `<rect class="axis" fill="none" x="${left}" y="${bottom - size}" width="${size}" height="${size}"/>` +
    (chance ? `<line class="chance" x1="${left}" y1="${bottom}" x2="${left + size}" y2="${bottom - size}"/>` : "") +
    (under ? `<polygon class="under" points="${left},${bottom} ${points} ${left + size},${bottom}"/>` : "") +
    extra +
    (points ? `<polyline class="curve" points="${points}"/>` : "") +
    `<text x="${left}" y="198">0</text><text x="${left + size}" y="198" text-anchor="end">1</text><text x="${left + size / 2}" y="198" text-anchor="middle">${across}</text>` +
    `<text x="${left - 6}" y="${bottom}" text-anchor="end">0</text><text x="${left - 6}" y="${bottom - size + 9}" text-anchor="end">1</text>` +
    `<text transform="translate(13 ${bottom - size / 2}) rotate(-90)" text-anchor="middle">${up}</text>`
  );
}

// Bins of a calibration curve: the observed share with its interval, over the mean score; the larger, the more rows.
function reliabilityPlot(bins) {
  const most = Math.max(...bins.map(([n]) => n));
  const marks = bins.map(([n, mean, right, low, high]) => {
    const [x, y] = spot(mean / 1000, right / 1000).split(",");
    const ends = [low, high].map((v) => spot(mean / 1000, v / 1000).split(",")[1]);
    const radius = 2.5 + 4.5 * Math.sqrt(n / most);
    return `<line class="reach" x1="${x}" x2="${x}" y1="${ends[0]}" y2="${ends[1]}"/><circle class="dot" cx="${x}" cy="${y}" r="${radius.toFixed(1)}"><title>${rows(n)}: mean score ${(mean / 1000).toFixed(2)}, observed share ${(right / 1000).toFixed(2)}</title></circle>`;
  });
  return square("mean score", "observed share", [], { chance: true, extra: marks.join("") });
}
