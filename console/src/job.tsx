// The page of one job.
import { call, can, segment } from "./http.ts";
import type { Schemas } from "./http.ts";
import { changed, useLoad } from "./live.ts";
import { go, tenant, to } from "./router.ts";
import { duration } from "./format.ts";
import { cliFor, curlFor } from "./commands.ts";
import { ActionButton, Card, Code, CopyAs, Facts, Heading, JSONValue, Show, Status, Table, Time } from "./ui.tsx";
import { text } from "./text.ts";

const waits = ["pending", "scheduled", "retrying", "waiting"];

// The actions that a job in a state can have, with the routes' names of them.
function actionsOf(state: string): ("retry" | "cancel" | "hold" | "approve" | "reject")[] {
  if (state === "held") return ["approve", "reject", "cancel"];
  if (waits.includes(state)) return ["hold", "cancel"];
  if (state === "active") return ["cancel"];
  return state === "dead" || state === "cancelled" || state === "completed" ? ["retry"] : [];
}

export function JobPage({ id }: { id: string }) {
  const path = `tenants/${segment(tenant.value)}/jobs/${segment(id)}`;
  const job = useLoad(path, (signal) => call<Schemas["JobHistory"]>(`${path}?include=timeline`, { signal }), { poll: true, on: (e) => e.subject === `jobs/${id}` });
  const j = job.data;
  const parents: [string, string][] = [[text.queues, to(["queues"])]];
  if (j) parents.push([j.queue, to(["queues", j.queue], { state: j.state })]);
  return (
    <>
      <Heading title={id} parents={parents}>
        {j &&
          can("cs:job:steer") &&
          actionsOf(j.state).map((what) => (
            <ActionButton
              key={what}
              of={{
                name: text.job[what],
                title: text.job[`${what}Title`],
                explain: text.job[`${what}Text`],
                danger: what === "cancel" || what === "reject",
                run: async () => {
                  await call(`${path}:${what}`, { method: "POST" });
                  changed();
                  return text.job.done;
                },
                command: { curl: curlFor("POST", `${path}:${what}`), cli: cliFor(["job", what, id]) },
              }}
            />
          ))}
        {j && j.state !== "active" && can("cs:job:delete") && (
          <ActionButton
            of={{
              name: text.job.remove,
              title: text.job.removeTitle,
              explain: text.job.removeText,
              danger: true,
              run: async () => {
                await call(path, { method: "DELETE" });
                go(to(["queues", j.queue]));
                changed();
                return text.job.done;
              },
              command: { curl: curlFor("DELETE", path), cli: cliFor(["job", "delete", id]) },
            }}
          />
        )}
      </Heading>
      <Show of={job}>
        {(j) => (
          <div class="columns">
            <div>
              {(j.errors ?? []).length > 0 && (
                <Card title={text.job.errors}>
                  {(j.errors ?? [])
                    .slice()
                    .reverse()
                    .map((e) => (
                      <div key={`${e.attempt}-${e.at_ms}`} class="job-error">
                        <p>
                          <span class="tag">
                            {text.job.attempt} {e.attempt}
                          </span>{" "}
                          <span class="bad-text">{e.error}</span> <Time ms={e.at_ms} />
                        </p>
                        {e.stack && <Code value={e.stack} label={text.act.stack} />}
                      </div>
                    ))}
                </Card>
              )}
              <Card title={text.job.payload}>
                <JSONValue value={j.payload} />
              </Card>
              {j.result !== undefined && (
                <Card title={text.job.result}>
                  <JSONValue value={j.result} />
                </Card>
              )}
              {j.checkpoint !== undefined && (
                <Card title={text.job.checkpoint}>
                  <JSONValue value={j.checkpoint} />
                </Card>
              )}
              {j.progress !== undefined && (
                <Card title={text.job.progress}>
                  <JSONValue value={j.progress} />
                </Card>
              )}
              {(j.attempts ?? []).length > 0 && (
                <Card title={text.job.attempts}>
                  <Table label={text.job.attempts} head={[{ name: text.job.attempt, number: true }, text.job.outcome, text.act.started, { name: text.act.took, number: true }, text.job.worker, text.act.error]}>
                    {(j.attempts ?? []).map((a) => (
                      <tr key={`${a.attempt}-${a.lease_epoch}`}>
                        <td class="number">{a.attempt}</td>
                        <td>
                          <Status of={a.outcome === "failed" ? "error" : a.outcome} label={a.outcome} />
                        </td>
                        <td>
                          <Time ms={a.started_at_ms} />
                        </td>
                        <td class="number">{a.started_at_ms && a.ended_at_ms ? duration(a.ended_at_ms - a.started_at_ms) : "–"}</td>
                        <td>{a.worker_id}</td>
                        <td class="clip bad-text">{a.error}</td>
                      </tr>
                    ))}
                  </Table>
                </Card>
              )}
            </div>
            <div>
              <Card title={text.job.facts}>
                <Facts
                  of={[
                    [text.job.state, <Status of={j.state} />],
                    [text.job.since, <Time ms={j.state_since_ms} />],
                    [text.job.reason, j.dead_reason ?? j.hold_reason],
                    [text.job.attempt, `${j.attempt} / ${j.max_attempts ?? "–"}`],
                    [text.job.created, <Time ms={j.created_at_ms} />],
                    [text.job.due, j.due_at_ms || j.run_at_ms ? <Time ms={j.due_at_ms ?? j.run_at_ms} /> : ""],
                    [text.job.ended, j.ended_at_ms ? <Time ms={j.ended_at_ms} /> : ""],
                    [text.job.worker, j.worker_id],
                    [text.job.lease, j.lease ? <Time ms={j.lease.expires_ms} /> : ""],
                    [text.job.priority, j.priority],
                    [text.job.backoff, j.backoff && `${j.backoff}, ${duration(j.base_delay_ms)}`],
                    [text.job.unique, j.unique_key],
                    [text.job.tags, Object.entries(j.tags ?? {}).map(([k, v]) => `${k}=${v}`).join(", ")],
                    [text.job.batch, j.batch_id],
                    [text.job.parent, j.parent_id && <a href={to(["jobs", j.parent_id])}>{j.parent_id}</a>],
                    [text.job.dependsOn, (j.depends_on ?? []).length > 0 && (j.depends_on ?? []).map((d) => <a key={d} class="block" href={to(["jobs", d])}>{d}</a>)],
                    [text.job.chain, j.chain_id && `${j.chain_id}, ${j.chain_step}`],
                    [text.job.activation, j.activation_id && <a href={to(["activations", j.activation_id])}>{j.activation_id}</a>],
                    [text.act.retryOf, j.retry_of && <a href={to(["jobs", j.retry_of])}>{j.retry_of}</a>],
                  ]}
                />
                <CopyAs of={{ curl: curlFor("GET", path), cli: cliFor(["job", "get", id]) }} />
              </Card>
              {j.timeline && (
                <Card title={text.job.timeline}>
                  <ol class="timeline">
                    {(j.timeline.entries ?? []).map((e, i) => (
                      <li key={i} class={/dead|failed|expired/.test(e.type) ? "bad" : /completed/.test(e.type) ? "good" : ""}>
                        <strong>{e.type.replace(/^job\./, "")}</strong> <Time ms={e.at_ms} />
                        {(e.worker_id || e.actor) && <div class="quiet">{e.worker_id ?? e.actor}</div>}
                        {(e.error || e.reason) && <div class="bad-text">{e.error ?? e.reason}</div>}
                      </li>
                    ))}
                  </ol>
                  {(j.timeline.missing ?? []).map((m) => (
                    <p key={m.reason} class="quiet">
                      {text.job.incomplete} {m.detail}
                    </p>
                  ))}
                </Card>
              )}
            </div>
          </div>
        )}
      </Show>
    </>
  );
}
