// Actions as commands for a terminal.
import { base, session } from "./http.ts";
import { quoted } from "./format.ts";
import { namespace, tenant } from "./router.ts";

export function curlFor(method: string, path: string, body?: unknown): string {
  const words = ["curl"];
  if (method !== "GET") words.push("-X", method);
  words.push(quoted(new URL("../v1/" + path, base).href));
  let line = words.join(" ");
  if (session.value?.auth === "keys") line += ' -H "authorization: Bearer $SOUS_KEY"';
  if (body !== undefined) line += ` -H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`;
  return line;
}

export function cliFor(words: string[]): string {
  const flags: string[] = [];
  if (tenant.value !== "t_default") flags.push("--tenant", tenant.value);
  if (namespace.value !== "default") flags.push("--namespace", namespace.value);
  return ["sous", ...words, ...flags].map(quoted).join(" ");
}
