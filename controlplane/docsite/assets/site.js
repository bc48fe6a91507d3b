// The theme, the menu of wide screens, and the search. The pages can be read without it.
"use strict";
(() => {
  const root = document.documentElement;
  const base = document.currentScript.dataset.root;
  let stored = null;
  try { stored = localStorage.getItem("sous-theme"); } catch { /* storage is blocked */ }
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;

  const switchTheme = () => {
    const now = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("sous-theme", root.dataset.theme); } catch { /* storage is blocked */ }
  };

  let index = null;
  const load = () => (index ??= fetch(base + "search.json").then((r) => {
    if (!r.ok) throw new Error("search.json: " + r.status);
    return r.json();
  }).catch((e) => { index = null; throw e; }));

  // score is 0 unless every word occurs; a title counts more than the text.
  const score = (entry, words) => {
    const title = entry.title.toLowerCase(), page = entry.page.toLowerCase(), text = entry.text.toLowerCase();
    let sum = 0;
    for (const word of words) {
      const points = (title.includes(word) ? 8 : 0) + (page.includes(word) ? 4 : 0) + (text.includes(word) ? 1 : 0);
      if (points === 0) return 0;
      sum += points;
    }
    return sum;
  };

  const snippet = (entry, words) => {
    const at = Math.max(0, entry.text.toLowerCase().indexOf(words[0]) - 40);
    return (at > 0 ? "…" : "") + entry.text.slice(at, at + 140);
  };

  const show = (list, hits, words) => {
    list.replaceChildren(...hits.map(({ entry }) => {
      const item = document.createElement("li"), link = document.createElement("a"), small = document.createElement("small");
      link.href = base + entry.path;
      link.textContent = entry.title === entry.page ? entry.page : entry.page + " › " + entry.title;
      small.textContent = snippet(entry, words);
      link.append(small);
      item.append(link);
      return item;
    }));
    if (hits.length === 0) list.textContent = "Nothing found";
    list.hidden = false;
  };

  const search = async (input, list) => {
    const query = input.value, words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) { list.hidden = true; return; }
    let entries;
    try { entries = await load(); } catch { list.textContent = "The search index did not load"; list.hidden = false; return; }
    if (input.value !== query) return;
    const hits = entries.map((entry) => ({ entry, points: score(entry, words) })).filter((h) => h.points > 0);
    show(list, hits.sort((a, b) => b.points - a.points).slice(0, 12), words);
  };

  addEventListener("DOMContentLoaded", () => {
    const theme = document.getElementById("theme"), input = document.getElementById("search");
    const list = document.getElementById("found"), menu = document.getElementById("menu");
    theme.hidden = false;
    theme.addEventListener("click", switchTheme);
    const wide = matchMedia("(min-width: 56rem)");
    menu.open = wide.matches;
    wide.addEventListener("change", () => { menu.open = wide.matches; });
    input.parentElement.hidden = false;
    input.addEventListener("input", () => search(input, list));
    addEventListener("keydown", (e) => {
      if (e.key === "/" && !/^(input|textarea)$/i.test(e.target.tagName)) { e.preventDefault(); input.focus(); }
      if (e.key === "Escape") list.hidden = true;
      if (e.key === "Enter" && e.target === input) list.querySelector("a")?.click();
    });
    addEventListener("click", (e) => { if (!e.target.closest(".search")) list.hidden = true; });
  });
})();
