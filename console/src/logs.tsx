// The log of one activation.
import { useEffect, useState } from "preact/hooks";
import { call, query, segment, send } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { useLoad } from "./live.ts";
import { tenant } from "./router.ts";
import { messages } from "./stream.ts";
import { clock, pretty } from "./format.ts";
import { Show } from "./ui.tsx";
import { text } from "./text.ts";

const levels = ["debug", "info", "warn", "error"];

export function Logs({ id, running, compact = false }: { id: string; running: boolean; compact?: boolean }) {
  const path = `tenants/${segment(tenant.value)}/activations/${segment(id)}/logs`;
  const [level, setLevel] = useState("");
  const [followed, setFollowed] = useState<Schemas["LogLine"][]>([]);
  const page = useLoad(running ? "" : path, (signal) => call<Page<Schemas["LogLine"]>>(path + query({ limit: 500 }), { signal }));
  useEffect(() => {
    if (!running) return;
    const control = new AbortController();
    setFollowed([]);
    void (async () => {
      try {
        const answer = await send(`api/v1/${path}?follow=true`, { headers: { accept: "text/event-stream" }, signal: control.signal });
        for await (const message of messages(answer.body!)) {
          if (message.name === "log") setFollowed((lines) => [...lines, JSON.parse(message.data) as Schemas["LogLine"]].slice(-1_000));
        }
      } catch {
        // The view reads the log again when the activation ends.
      }
    })();
    return () => control.abort();
  }, [path, running]);
  const lines = (all: Schemas["LogLine"][]) => {
    const shown = all.filter((l) => !level || levels.indexOf(l.level) >= levels.indexOf(level));
    if (all.length === 0) return <p class="quiet">{text.act.noLogs}</p>;
    return (
      <>
        {!compact && (
          <label class="inline">
            {text.act.logFilter}
            <select value={level} onChange={(e) => setLevel(e.currentTarget.value)}>
              <option value="">{text.act.all}</option>
              {levels.map((l) => (
                <option key={l}>{l}</option>
              ))}
            </select>
          </label>
        )}
        <ol class="log" tabIndex={0} aria-label={text.act.logs}>
          {shown.map((l, i) => (
            <li key={i} class={l.level}>
              <time dateTime={new Date(l.ts_ms).toISOString()}>{clock(l.ts_ms)}</time>
              <span class="level">{l.level}</span>
              <span class="message">{pretty(l.message)}</span>
            </li>
          ))}
        </ol>
      </>
    );
  };
  if (running) return lines(followed);
  return <Show of={page}>{(p) => lines(p.items ?? [])}</Show>;
}
