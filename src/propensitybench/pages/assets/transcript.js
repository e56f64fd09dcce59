try {
  const theme = localStorage.getItem("propensitybench-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* without storage the system's theme applies */ }
addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("[data-fold]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const expand = button.textContent === "expand all";
      for (const fold of document.querySelectorAll("details")) fold.open = expand;
      for (const other of document.querySelectorAll("[data-fold]")) {
        other.textContent = expand ? "collapse all" : "expand all";
      }
    });
  }
});
