// The first view of a namespace.
import { call, can, query, segment, session } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { useLoad } from "./live.ts";
import { namespace, tenant, to } from "./router.ts";
import { count, percent } from "./format.ts";
import { Card, Empty, Heading, Show, Table, Time } from "./ui.tsx";
import { functionsPath } from "./functions.tsx";
import { text } from "./text.ts";

const none = { items: [], next_cursor: null };

export function Overview() {
  const root = `tenants/${segment(tenant.value)}`;
  const inside = `${root}/namespaces/${segment(namespace.value)}`;
  const all = useLoad(
    `overview ${inside}`,
    async (signal) => {
      const list = <T,>(action: string, path: string) => (can(action) ? call<Page<T>>(path, { signal }) : Promise.resolve(none as Page<T>));
      const [functions, queues, schedules, events] = await Promise.all([
        list<Schemas["FunctionCalls"]>("cs:function:read", functionsPath() + ":calls" + query({ limit: 500 })),
        list<Schemas["Queue"]>("cs:queue:read", `${inside}/queues` + query({ limit: 500 })),
        list<Schemas["ScheduleStatus"]>("cs:schedule:read", `${inside}/schedules` + query({ limit: 500 })),
        list<Schemas["Event"]>("cs:job:read", `${root}/events` + query({ namespace: namespace.value, types: "function.*,version.*,alias.*,schedule.created,schedule.updated,schedule.deleted,schedule.paused,schedule.resumed", limit: 200 })),
      ]);
      return { functions: functions.items ?? [], queues: queues.items ?? [], schedules: schedules.items ?? [], events: events.items ?? [], partial: functions.next_cursor !== null || queues.next_cursor !== null };
    },
    { poll: true, on: (e) => e.data.namespace === namespace.value },
  );
  return (
    <>
      <Heading title={text.overview} />
      <Show of={all}>
        {({ functions, queues, schedules, events, partial }) => {
          if (functions.length + queues.length + schedules.length === 0)
            return <Empty title={text.over.welcome} hint={text.over.welcomeHint} commands={["sous fn init hello", "sous fn deploy hello", "sous fn invoke hello"]} />;
          const calls = sum(functions.map((f) => f.calls));
          const failures = sum(functions.map((f) => f.failures));
          const pending = sum(queues.map((q) => (q.depths["pending"] ?? 0) + (q.depths["scheduled"] ?? 0) + (q.depths["retrying"] ?? 0) + (q.depths["waiting"] ?? 0)));
          const dead = sum(queues.map((q) => q.depths["dead"] ?? 0));
          const incidents = functions.filter((f) => f.last_failure).sort((a, b) => b.last_failure!.at_ms - a.last_failure!.at_ms);
          const next = schedules.filter((s) => s.next_run_ms).sort((a, b) => a.next_run_ms! - b.next_run_ms!);
          return (
            <>
              <ul class="figures">
                <Figure name={text.over.calls} value={count(calls)} address={to(["functions"])} />
                <Figure name={text.over.failures} value={count(failures)} note={percent(failures, calls)} bad={failures > 0} address={to(["activations"], { status: "error" })} />
                <Figure name={text.over.pending} value={count(pending)} address={to(["queues"])} />
                <Figure name={text.over.dead} value={count(dead)} bad={dead > 0} address={to(["queues"])} />
              </ul>
              {partial && <p class="quiet">{text.over.partial}</p>}
              <div class="columns even">
                <div>
                  <Card title={text.over.incidents} actions={<a href={to(["activations"], { status: "error" })}>{text.activations}</a>}>
                    {incidents.length === 0 ? (
                      <p class="quiet">{text.over.noIncidents}</p>
                    ) : (
                      <ul class="rows">
                        {incidents.slice(0, 6).map((f) => (
                          <li key={f.name}>
                            <a href={to(["activations", f.last_failure!.activation_id])}>{f.name}</a>
                            <span class="bad-text clip">
                              {f.last_failure!.type}: {f.last_failure!.message}
                            </span>
                            <Time ms={f.last_failure!.at_ms} />
                          </li>
                        ))}
                      </ul>
                    )}
                  </Card>
                  <Card title={text.over.changes}>
                    {events.length === 0 ? (
                      <p class="quiet">{text.over.noChanges}</p>
                    ) : (
                      <ul class="rows">
                        {events
                          .slice(-8)
                          .reverse()
                          .map((e) => (
                            <li key={e.id}>
                              <span class="tag">{e.type}</span>
                              <Subject of={e} />
                              <Time ms={Date.parse(e.time)} />
                            </li>
                          ))}
                      </ul>
                    )}
                  </Card>
                </div>
                <div>
                  <Card title={text.over.busiest} actions={<a href={to(["functions"])}>{text.functions}</a>}>
                    <Table label={text.over.busiest} head={[text.fn.name, { name: text.fn.calls, number: true }, { name: text.fn.failures, number: true }]}>
                      {[...functions]
                        .sort((a, b) => b.calls - a.calls)
                        .slice(0, 6)
                        .map((f) => (
                          <tr key={f.name}>
                            <td>
                              <a class="name" href={to(["functions", f.name])}>
                                {f.name}
                              </a>
                            </td>
                            <td class="number">{count(f.calls)}</td>
                            <td class={`number ${f.failures ? "bad-text" : "quiet"}`}>{count(f.failures)}</td>
                          </tr>
                        ))}
                    </Table>
                  </Card>
                  <Card title={text.over.schedules}>
                    {next.length === 0 ? (
                      <p class="quiet">{text.over.noSchedules}</p>
                    ) : (
                      <ul class="rows">
                        {next.slice(0, 5).map((s) => (
                          <li key={s.name}>
                            <span>{s.name}</span>
                            <code class="clip">{s.cron ?? `${s.every_seconds} s`}</code>
                            <Time ms={s.next_run_ms} />
                          </li>
                        ))}
                      </ul>
                    )}
                  </Card>
                  <p class="quiet">
                    {text.over.server} {session.value?.identity?.server_version}
                  </p>
                </div>
              </div>
            </>
          );
        }}
      </Show>
    </>
  );
}

const sum = (all: number[]) => all.reduce((a, b) => a + b, 0);

function Figure({ name, value, note, bad, address }: { name: string; value: string; note?: string; bad?: boolean; address: string }) {
  return (
    <li>
      <a href={address} class={bad ? "bad" : ""}>
        <span>{name}</span>
        <strong>{value}</strong>
        <small>{note}</small>
      </a>
    </li>
  );
}

function Subject({ of: e }: { of: Schemas["Event"] }) {
  const parts = e.subject.split("/");
  if (parts[0] === "functions" && parts[2]) {
    return (
      <a class="clip" href={to(["functions", parts[2]])}>
        {parts.slice(2).filter((p) => p !== "versions" && p !== "aliases").join(" · ")}
        {e.data.alias && e.data.version ? ` → ${e.data.version}` : ""}
      </a>
    );
  }
  return <span class="clip">{parts.slice(1).join("/")}</span>;
}
