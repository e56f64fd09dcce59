try {
  const theme = localStorage.getItem("propensitybench-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* storage is not open to every page; the system's theme is used then */ }
addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("[data-fold]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.textContent === "open all";
      for (const fold of document.querySelectorAll("details")) fold.open = open;
      for (const other of document.querySelectorAll("[data-fold]")) {
        other.textContent = open ? "close all" : "open all";
      }
    });
  }
});
