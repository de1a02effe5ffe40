"use strict";
// The page is complete without this: it adds the choice of a theme and what is shown of a point.
const button = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
const nameTheme = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
button.addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("tuner-theme", theme); } catch { /* kept for this page only */ }
  nameTheme();
});
prefersDark.addEventListener("change", nameTheme);
nameTheme();
button.hidden = false;

const trials = JSON.parse(document.getElementById("trials-data").textContent);
const tip = document.getElementById("tip");
let lit = null;
const hide = () => { lit?.classList.remove("lit"); lit = null; tip.hidden = true; };
const centre = (point) => {
  const box = point.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
};
const place = () => {
  if (!lit) return;
  const [x, y] = centre(lit);
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x + 12, document.documentElement.clientWidth - width - 8))}px`;
  tip.style.top = `${y + height + 20 < innerHeight ? y + 12 : Math.max(8, y - height - 12)}px`;
};
const show = (point) => {
  if (point === lit) return;
  hide();
  lit = point;
  point.classList.add("lit");
  tip.textContent = point.dataset.tip ?? trials[point.dataset.trial];
  tip.hidden = false;
  place();
};
for (const plot of document.querySelectorAll(".plot")) {
  const points = [...plot.querySelectorAll("use[data-trial], use[data-tip]")];
  const point = (event) => {
    const near = points.map((each) => {
      const [x, y] = centre(each);
      return [Math.hypot(event.clientX - x, event.clientY - y), each];
    }).reduce((best, each) => (each[0] < best[0] ? each : best), [24, null])[1];
    if (near) show(near); else hide();
  };
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (event.target !== plot || !step || !points.length) return;
    event.preventDefault();
    const ordered = points.slice().sort((one, other) => centre(one)[0] - centre(other)[0]);
    const next = ordered.indexOf(lit) < 0 && step < 0 ? ordered.length - 1 : ordered.indexOf(lit) + step;
    show(ordered[Math.max(0, Math.min(ordered.length - 1, next))]);
  });
}
addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
addEventListener("scroll", place, {passive: true});
