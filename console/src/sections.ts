// The sections of the console that the caller may see.
import { can } from "./http.ts";
import { to } from "./router.ts";
import { text } from "./text.ts";

export type Section = { id: string; name: string; address: string };

export function sections(): Section[] {
  const all: [string, string, string][] = [
    ["functions", text.functions, "cs:function:read"],
    ["activations", text.activations, "cs:activation:read"],
    ["queues", text.queues, "cs:queue:read"],
  ];
  const seen = all.filter(([, , action]) => can(action)).map(([id, name]) => ({ id, name, address: to([id]) }));
  return [{ id: "", name: text.overview, address: to([]) }, ...seen];
}
