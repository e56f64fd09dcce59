"use strict";
// Opens and closes all that is folded.
{
  const buttons = document.querySelectorAll("[data-fold]");
  for (const button of buttons) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const expand = button.textContent === "expand all";
      document.querySelectorAll("details").forEach((fold) => { fold.open = expand; });
      buttons.forEach((other) => { other.textContent = expand ? "collapse all" : "expand all"; });
    });
  }
}
