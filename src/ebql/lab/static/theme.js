// Loaded before the page is drawn, so that a chosen theme does not flash.
(() => {
  const root = document.documentElement;
  const chosen = localStorage.getItem("theme");
  if (chosen) root.dataset.theme = chosen;
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const systemIsDark = matchMedia("(prefers-color-scheme: dark)").matches;
      const isDark = root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark;
      root.dataset.theme = isDark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
      dispatchEvent(new Event("theme"));
    });
  });
})();
