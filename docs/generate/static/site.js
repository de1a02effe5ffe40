// What scrolls sideways can be scrolled with the keyboard as well (WCAG 2.1.1).
"use strict";
const reach = () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
  }
};
addEventListener("load", reach);
addEventListener("resize", reach);
