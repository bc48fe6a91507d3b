// The list of queues and the page of one.
import { useState } from "preact/hooks";
import { call, can, query, segment } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { changed, useLoad } from "./live.ts";
import { filter, namespace, tenant, to } from "./router.ts";
import { count, duration, pretty, short } from "./format.ts";
import { cliFor, curlFor } from "./commands.ts";
import { ActionButton, Card, CopyAs, Empty, Facts, Heading, More, Show, Status, Table, Tabs, Time } from "./ui.tsx";
import { text } from "./text.ts";

export const states = ["pending", "active", "retrying", "scheduled", "waiting", "held", "dead", "completed", "cancelled"];

const queuesPath = () => `tenants/${segment(tenant.value)}/namespaces/${segment(namespace.value)}/queues`;

export function Queues() {
  const path = queuesPath() + query({ limit: 200 });
  const [more, setMore] = useState<{ key: string; items: Schemas["Queue"][]; cursor: string | null } | null>(null);
  const page = useLoad(path, (signal) => call<Page<Schemas["Queue"]>>(path, { signal }), { poll: true, on: (e) => e.type.startsWith("job.") && e.data.namespace === namespace.value });
  const number = true;
  return (
    <>
      <Heading title={text.queues} />
      <Show of={page}>
        {(first) => {
          const further = more?.key === path ? more : null;
          const all = [...(first.items ?? []), ...(further?.items ?? [])];
          if (all.length === 0) return <Empty title={text.queue.empty} hint={text.queue.emptyHint} commands={[`sous job enqueue emails --payload '{"to": "ada@example.com"}'`]} />;
          return (
            <>
              <Table label={text.queues} head={[text.queue.name, text.queue.state, ...["pending", "active", "retrying", "scheduled", "held", "dead"].map((s) => ({ name: text.status[s]!, number })), { name: text.queue.oldest, number, hide: true }, { name: text.queue.limits, hide: true }]}>
                {all.map((q) => (
                  <tr key={q.queue}>
                    <td>
                      <a class="name" href={to(["queues", q.queue])}>
                        {q.queue}
                      </a>
                    </td>
                    <td>
                      <QueueState of={q} />
                    </td>
                    {["pending", "active", "retrying", "scheduled", "held", "dead"].map((s) => (
                      <td key={s} class="number">
                        <Depth q={q} state={s} />
                      </td>
                    ))}
                    <td class="number wide-only">{q.oldest_pending_ms ? duration(q.oldest_pending_ms) : "–"}</td>
                    <td class="wide-only">{limitsOf(q)}</td>
                  </tr>
                ))}
              </Table>
              <More
                cursor={further ? further.cursor : first.next_cursor}
                load={async () => {
                  const next = await call<Page<Schemas["Queue"]>>(path + `&cursor=${segment((further ? further.cursor : first.next_cursor) ?? "")}`);
                  setMore({ key: path, items: [...(further?.items ?? []), ...(next.items ?? [])], cursor: next.next_cursor });
                }}
              />
            </>
          );
        }}
      </Show>
    </>
  );
}

function QueueState({ of: q }: { of: Schemas["Queue"] }) {
  if (q.paused) return <Status of="paused" label={text.queue.paused} />;
  if (q.draining) return <Status of="draining" label={text.queue.draining} />;
  return <Status of="open" label={text.queue.open} />;
}

function Depth({ q, state }: { q: Schemas["Queue"]; state: string }) {
  const n = q.depths[state] ?? 0;
  if (n === 0) return <span class="quiet">0</span>;
  return (
    <a class={state === "dead" ? "bad-text" : ""} href={to(["queues", q.queue], { state })}>
      {count(n)}
    </a>
  );
}

function limitsOf(q: Schemas["Queue"]): string {
  const all: string[] = [];
  if (q.max_concurrency) all.push(`${count(q.max_concurrency)} active`);
  if (q.rate_limit) all.push(`${count(q.rate_limit)} / ${duration(q.rate_window_ms)}`);
  return all.join(", ") || text.queue.unlimited;
}

export function QueuePage({ name }: { name: string }) {
  const path = `${queuesPath()}/${segment(name)}`;
  const mine = (e: Schemas["Event"]) => e.type.startsWith("job.") && e.data.queue === name && e.data.namespace === namespace.value;
  const queue = useLoad(path, (signal) => call<Schemas["Queue"]>(path, { signal }), { poll: true, on: mine });
  const q = queue.data;
  const state = filter("state") || states.find((s) => (q?.depths[s] ?? 0) > 0) || "pending";
  const act = (name_: string, title: string, explain: string, method: string, at: string, body: unknown, cli: string[], said?: (answer: never) => string) => (
    <ActionButton
      of={{
        name: name_,
        title,
        explain,
        run: async () => {
          const answer = await call<never>(at, { method, body });
          changed();
          return said?.(answer) ?? text.job.done;
        },
        command: { curl: curlFor(method, at, body), cli: cliFor(cli) },
      }}
    />
  );
  return (
    <>
      <Heading title={name} parents={[[text.queues, to(["queues"])]]}>
        {q && can("cs:queue:configure") && (
          <>
            {!q.paused && act(text.queue.pause, text.queue.pauseTitle, text.queue.pauseText, "PATCH", path, { paused: true }, ["queue", "pause", name])}
            {!q.draining && act(text.queue.drain, text.queue.drainTitle, text.queue.drainText, "POST", `${path}:drain`, undefined, ["queue", "drain", name])}
            {(q.paused || q.draining) && act(text.queue.resume, `${text.queue.resume}?`, "", "POST", `${path}:resume`, undefined, ["queue", "resume", name])}
          </>
        )}
        {q && (q.depths["dead"] ?? 0) > 0 && can("cs:job:steer") && act(text.queue.redrive, text.queue.redriveTitle, text.queue.redriveText, "POST", `${path}:redrive`, undefined, ["queue", "redrive", name], (a: Schemas["RedrivenBody"]) => text.queue.redriven(a.redriven))}
      </Heading>
      <Show of={queue}>
        {(q) => (
          <>
            <Card title={text.queue.depth}>
              <ul class="depths">
                {states.map((s) => (
                  <li key={s}>
                    <a href={to(["queues", name], { state: s })} aria-current={s === state ? "true" : undefined} class={(q.depths[s] ?? 0) === 0 ? "zero" : s === "dead" ? "dead" : ""}>
                      <strong>{count(q.depths[s] ?? 0)}</strong> {text.status[s]}
                    </a>
                  </li>
                ))}
              </ul>
              <Facts
                of={[
                  [text.queue.state, <QueueState of={q} />],
                  [text.queue.oldest, q.oldest_pending_ms ? duration(q.oldest_pending_ms) : ""],
                  [text.queue.concurrency, q.max_concurrency ? count(q.max_concurrency) : text.queue.unlimited],
                  [text.queue.rate, q.rate_limit ? `${count(q.rate_limit)} / ${duration(q.rate_window_ms)}` : text.queue.unlimited],
                  [text.queue.retention, q.retention_ms ? duration(q.retention_ms) : ""],
                  [text.queue.events, q.events],
                ]}
              />
            </Card>
            {can("cs:job:read") && <Tabs label={text.queue.jobs} all={states.map((s) => [s, text.status[s]!])} current={state} address={(s) => to(["queues", name], { state: s })} />}
            {can("cs:job:read") && <Jobs path={path} queue={name} state={state} on={mine} />}
            <CopyAs of={{ curl: curlFor("GET", `${path}/jobs?state=${state}`), cli: cliFor(["job", "list", name, "--state", state]) }} />
          </>
        )}
      </Show>
    </>
  );
}

function Jobs({ path, queue, state, on }: { path: string; queue: string; state: string; on: (e: Schemas["Event"]) => boolean }) {
  const key = `${path}/jobs` + query({ state, limit: 100 });
  const [more, setMore] = useState<{ key: string; items: Schemas["Job"][]; cursor: string | null } | null>(null);
  const page = useLoad(key, (signal) => call<Page<Schemas["Job"]>>(key, { signal }), { poll: true, on });
  const number = true;
  return (
    <Show of={page}>
      {(first) => {
        const further = more?.key === key ? more : null;
        const all = [...(first.items ?? []), ...(further?.items ?? [])];
        if (all.length === 0) return <Empty title={text.queue.noJobs(text.status[state]!.toLowerCase())} hint={text.queue.noJobsHint} commands={[`sous job enqueue ${queue} --payload '{"hello": "world"}'`]} />;
        return (
          <>
            <Table label={text.queue.jobs} head={[text.job.id, text.job.since, { name: text.job.attempt, number }, { name: text.job.priority, hide: true }, { name: text.job.tags, hide: true }, text.job.payload, { name: text.job.worker, hide: true }]}>
              {all.map((j) => (
                <tr key={j.id}>
                  <td>
                    <a class="name" href={to(["jobs", j.id])}>
                      <code>{short(j.id)}</code>
                    </a>
                  </td>
                  <td>
                    <Time ms={j.state_since_ms ?? j.created_at_ms} />
                  </td>
                  <td class="number">
                    {j.attempt}
                    {j.max_attempts ? ` / ${j.max_attempts}` : ""}
                  </td>
                  <td class="wide-only">{j.priority}</td>
                  <td class="wide-only">
                    {Object.entries(j.tags ?? {}).map(([k, v]) => (
                      <span key={k} class="tag">
                        {k}={v}
                      </span>
                    ))}
                  </td>
                  <td class="clip">
                    <code>{pretty(j.payload).replace(/\s+/g, " ").slice(0, 200)}</code>
                  </td>
                  <td class="wide-only">{j.worker_id}</td>
                </tr>
              ))}
            </Table>
            <More
              cursor={further ? further.cursor : first.next_cursor}
              load={async () => {
                const next = await call<Page<Schemas["Job"]>>(key + `&cursor=${segment((further ? further.cursor : first.next_cursor) ?? "")}`);
                setMore({ key, items: [...(further?.items ?? []), ...(next.items ?? [])], cursor: next.next_cursor });
              }}
            />
          </>
        );
      }}
    </Show>
  );
}
