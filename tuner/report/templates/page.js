"use strict";
// The page can be read without this: it adds a choice of theme, buttons that copy, and the figures.
const button = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
const nameTheme = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
const follow = () => { nameTheme(); drawn.forEach((place) => draw(place)); };
button.addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("tuner-theme", theme); } catch { /* kept for this page only */ }
  follow();
});
prefersDark.addEventListener("change", () => follow());
nameTheme();
button.hidden = false;
document.documentElement.classList.add("scripted");

for (const copy of document.querySelectorAll("[data-copy]")) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const text = document.getElementById(copy.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      copy.textContent = "Copied";
    } catch { // not over plain HTTP: left to the reader's own keys
      getSelection().selectAllChildren(text);
    }
  });
}

const read = (name) => JSON.parse(document.getElementById(name).textContent);
const figures = read("figures-data");
const colours = read("colours-data");
const PRINTED_PX = 680; // between the margins of A4
const drawn = new Set();
const options = {
  displaylogo: false, displayModeBar: "hover", responsive: true,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};
// A figure is made in the colours of the light scheme; those of the dark one take their places.
const draw = (place, dark = isDark(), width = undefined) => {
  const text = JSON.stringify(figures[place.id]);
  const {data, layout} = JSON.parse(dark ? text.replace(/#[0-9a-f]{6}/g, (each) => colours[each] ?? each) : text);
  delete layout.title; // the page has a heading
  layout.width = width;
  // On a touch screen a finger scrolls the page.
  layout.dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
  Plotly.react(place, data, layout, options);
  drawn.add(place);
};
// Figures are drawn when they come into view: all at once would take seconds.
const drawFigures = () => {
  if (!window.Plotly) return; // its file is not beside the page
  const places = document.querySelectorAll(".plot");
  document.documentElement.classList.add("drawing");
  const seen = new IntersectionObserver((entries) => {
    for (const each of entries.filter((entry) => entry.isIntersecting)) {
      seen.unobserve(each.target);
      draw(each.target);
    }
  }, {rootMargin: "400px"});
  places.forEach((place) => seen.observe(place));
  // The sheet is laid out only afterwards: a figure is told its width there, in one column or in two.
  addEventListener("beforeprint", () => {
    for (const place of places) {
      if (place.checkVisibility()) draw(place, false, PRINTED_PX * (place.closest(".first") ? 0.58 : 1));
    }
  });
  addEventListener("afterprint", follow);
};
addEventListener("DOMContentLoaded", drawFigures);
