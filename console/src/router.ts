// The address of each view: TENANT/NAMESPACE/VIEW/… below the console, with filters as its query.
import { computed, signal } from "@preact/signals";
import { base } from "./http.ts";

const here = () => ({ path: decode(location.pathname.slice(base.pathname.length)), query: new URLSearchParams(location.search) });
const decode = (path: string) => path.split("/").filter(Boolean).map(decodeURIComponent);

export const place = signal(here());
addEventListener("popstate", () => (place.value = here()));

export const tenant = computed(() => place.value.path[0] ?? "");
export const namespace = computed(() => place.value.path[1] ?? "");
export const view = computed(() => place.value.path.slice(2));

// to returns the address of a view of the current namespace.
export function to(parts: string[], query: Record<string, string | undefined> = {}): string {
  return at([tenant.value, namespace.value, ...parts], query);
}

// at returns an address below the console.
export function at(parts: string[], query: Record<string, string | undefined> = {}): string {
  const url = new URL(parts.map(encodeURIComponent).join("/"), base);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  return url.pathname + url.search;
}

export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = here();
  if (!replace) {
    scrollTo(0, 0);
    // Readers of the screen continue with the new view.
    requestAnimationFrame(() => document.getElementById("main")?.focus({ preventScroll: true }));
  }
}

// filter returns a filter of the address; setFilter changes some without a new entry of the history.
export const filter = (name: string) => place.value.query.get(name) ?? "";
export function setFilter(values: Record<string, string | undefined>): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  go(url.pathname + url.search, true);
}

// Clicks on links of the console change the view; with a modifier the browser opens them itself.
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest?.("a");
  if (!link || link.target || link.origin !== base.origin || link.hasAttribute("download")) return;
  if (!link.pathname.startsWith(base.pathname)) return;
  event.preventDefault();
  if (link.href !== location.href) go(link.pathname + link.search);
});
