"use strict";
// Light and dark theme, and printing.
{
  const KEY = "propensitybench-theme";
  const button = document.getElementById("theme"), root = document.documentElement;
  const stored = (() => { try { return localStorage.getItem(KEY); } catch { return null; } })();
  const isDark = () =>
    (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  function apply(theme) {
    if (theme) root.dataset.theme = theme;
    button.textContent = isDark() ? "Light" : "Dark";
  }

  apply(stored);
  button.hidden = false;
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    try { localStorage.setItem(KEY, theme); } catch { /* without storage the choice lasts for this page only */ }
    apply(theme);
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  });
}
