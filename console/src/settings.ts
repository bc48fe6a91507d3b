// What the viewer chose, kept in this browser.
import { effect, signal } from "@preact/signals";

function kept<T extends string>(name: string, fallback: T, all: readonly T[]) {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem("sous-console-" + name);
  } catch {
    // A browser may keep nothing.
  }
  const value = signal<T>(all.includes(stored as T) ? (stored as T) : fallback);
  effect(() => {
    const now = value.value;
    try {
      localStorage.setItem("sous-console-" + name, now);
    } catch {
      // The same.
    }
  });
  return value;
}

export const themes = ["auto", "light", "dark"] as const;
export const timeForms = ["relative", "absolute"] as const;

export const settings = {
  theme: kept("theme", "auto", themes),
  times: kept("times", "relative", timeForms),
};

effect(() => {
  document.documentElement.dataset["theme"] = settings.theme.value;
});
