// Menus and buttons, then the first look.
document.documentElement.classList.add("js");
const option = (value, label) => new Option(label, value);

function fillMenus() {
  const model = document.getElementById("model");
  DATA.models.forEach((m, k) => model.add(option(k, m.name)));
  model.addEventListener("change", () => look({ model: Number(model.value) }));
  document.getElementById("model-choice").hidden = DATA.models.length < 2;

  const range = document.getElementById("range");
  const n = DATA.classes.length;
  const total = n + DATA.left_out;
  range.add(option(`0,${n}`, DATA.left_out ? `the ${n} rarest of ${total}` : `all ${n}`));
  for (const size of [100, 40, 20]) {
    if (n < 1.5 * size) continue;
    range.add(option(`${n - size},${n}`, `the ${size} rarest`));
    range.add(option(`0,${size}`, DATA.left_out ? `the ${size} most frequent of these` : `the ${size} most frequent`));
  }
  range.addEventListener("change", () => {
    const [from, to] = range.value.split(",").map(Number);
    const inside = (k) => k >= from && k < to;
    look({ from, to, ...(inside(STATE.i) && inside(STATE.j) ? {} : { i: to - 1, j: to - 2 }) });
  });
  document.getElementById("range-choice").hidden = range.length < 2;

  for (const side of ["i", "j"]) {
    const pick = document.getElementById(`pick-${side}`);
    DATA.classes.forEach((name, k) => pick.add(option(k, name)));
    pick.addEventListener("change", () => {
      const chosen = Number(pick.value);
      const other = side === "i" ? "j" : "i";
      look(chosen === STATE[other] ? { [side]: chosen, [other]: STATE[side] } : { [side]: chosen });
    });
  }
}

document.getElementById("swap").addEventListener("click", () => look({ i: STATE.j, j: STATE.i }));

document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  repaint();
});

for (const button of document.querySelectorAll("button.show")) {
  const [i, j] = [button.dataset.i, button.dataset.j].map((k) => Number(k) - DATA.left_out);
  button.disabled = i < 0 || j < 0;
  button.addEventListener("click", () => {
    look({ i, j });
    openPair();
  });
}

fillMenus();
legend();
// The first look is at the worst pair, in its worse direction: that is the question most readers bring.
const first = document.querySelector("#worst button.show:not(:disabled)");
if (first) {
  const [a, b] = [first.dataset.i, first.dataset.j].map((k) => Number(k) - DATA.left_out);
  look(aucOf(0, a, b) <= aucOf(0, b, a) ? { i: a, j: b } : { i: b, j: a });
} else {
  look({});
}
