"use strict";
// Light and dark theme, and printing. In the head, so that a stored theme applies before anything is shown.
{
  const KEY = "propensitybench-theme", root = document.documentElement;
  const isDark = () =>
    (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  try {
    const stored = localStorage.getItem(KEY);
    if (stored) root.dataset.theme = stored;
  } catch { /* without storage the system's theme applies */ }

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.hidden = false;
    label();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* the choice lasts for this page */ }
      label();
    });
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  });
}
