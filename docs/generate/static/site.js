"use strict";
// What scrolls sideways can be scrolled with the keyboard as well (WCAG 2.1.1).
const reach = () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
  }
};
addEventListener("load", reach);
addEventListener("resize", reach);

// A drawer that opens takes the focus with it, and Escape closes it.
for (const [name, drawer] of [["__navigation", ".sidebar-drawer"], ["__toc", ".toc-drawer"]]) {
  const box = document.getElementById(name);
  const inside = document.querySelector(drawer);
  box.addEventListener("change", () => {
    if (box.checked && box.matches(":focus-visible")) inside.querySelector("a").focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !box.checked) return;
    box.checked = false;
    box.focus();
  });
}

// Every block of code can be copied; of a console only what is typed.
for (const block of document.querySelectorAll(".highlight pre")) {
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "copy";
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    const lines = block.textContent.trimEnd().split("\n");
    const typed = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    await navigator.clipboard.writeText(`${(typed.length ? typed : lines).join("\n")}\n`);
    copy.textContent = "Copied";
  });
  block.after(copy);
}
