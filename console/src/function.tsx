// The page of one function.
import { useState } from "preact/hooks";
import { base, call, can, query, segment } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { changed, useLoad } from "./live.ts";
import { filter, namespace, tenant, to } from "./router.ts";
import { bytes, duration, pretty } from "./format.ts";
import { cliFor, curlFor } from "./commands.ts";
import { ActionButton, Card, Code, Copy, CopyAs, Dialog, Empty, Facts, Heading, Show, Status, Table, Tabs, Time, Trouble } from "./ui.tsx";
import { ActivationTable } from "./activations.tsx";
import { functionsPath } from "./functions.tsx";
import { Logs } from "./logs.tsx";
import { Source } from "./source.tsx";
import { text } from "./text.ts";

export function FunctionPage({ name }: { name: string }) {
  const path = `${functionsPath()}/${segment(name)}`;
  const detail = useLoad(path, (signal) => call<Schemas["FunctionDetail"]>(path, { signal }), {
    on: (e) => /^(function|version|alias)\./.test(e.type) && e.data.function === name && e.data.namespace === namespace.value,
  });
  const [invoking, setInvoking] = useState(false);
  const tab = filter("tab") || "overview";
  const tabs = Object.entries(text.fn.tabs).filter(([id]) => (id === "logs" ? can("cs:activation:read") : id === "triggers" ? can("cs:trigger:read") : true));
  return (
    <>
      <Heading title={name} parents={[[text.functions, to(["functions"])]]}>
        {can("cs:function:invoke") && (
          <button type="button" class="primary" onClick={() => setInvoking(true)}>
            {text.fn.invoke}
          </button>
        )}
      </Heading>
      <Tabs label={name} all={tabs as [string, string][]} current={tab} address={(id) => to(["functions", name], { tab: id === "overview" ? undefined : id })} />
      <Show of={detail}>
        {(f) => (
          <>
            {tab === "overview" && <Overview f={f} path={path} />}
            {tab === "source" && <Source f={f} path={path} />}
            {tab === "versions" && <Versions f={f} path={path} />}
            {tab === "logs" && <RecentLogs name={name} />}
            {tab === "triggers" && <Triggers name={name} />}
            {invoking && <Invoke f={f} path={path} close={() => setInvoking(false)} />}
          </>
        )}
      </Show>
    </>
  );
}

function Overview({ f, path }: { f: Schemas["FunctionDetail"]; path: string }) {
  const prod = (f.aliases ?? []).find((a) => a.alias === "prod");
  const number = prod?.version ?? f.latest_version;
  const version = useLoad(number ? `${path}/${number}` : "", (signal) => call<Schemas["Version"]>(`${path}/versions/${number}`, { signal }));
  const url = new URL(`../v1/web/${tenant.value}/${namespace.value}/${f.name}/${prod ? "prod" : number ?? ""}/`, base).href;
  const activations = `tenants/${segment(tenant.value)}/activations` + query({ namespace: namespace.value, function: f.name, limit: 8 });
  const recent = useLoad(can("cs:activation:read") ? activations : "", (signal) => call<Page<Schemas["Activation"]>>(activations, { signal }), {
    poll: true,
    on: (e) => e.type.startsWith("activation.") && e.data.function === f.name,
  });
  return (
    <div class="columns">
      <div>
        {f.description && <p class="lead">{f.description}</p>}
        {number === null || number === undefined ? (
          <Empty title={text.fn.noVersions} hint={text.fn.noVersionsHint} commands={[`sous fn deploy ${f.name}`]} />
        ) : (
          <Card title={text.fn.url} actions={<Copy value={url} label={text.copy} />}>
            <p class="url">
              <a href={url} target="_blank" rel="noreferrer noopener">
                {url}
              </a>
            </p>
            <p class="quiet">{text.fn.urlHint}</p>
          </Card>
        )}
        {can("cs:activation:read") && (
          <Card title={text.fn.recent} actions={<a href={to(["activations"], { function: f.name })}>{text.fn.allActivations}</a>}>
            <Show of={recent}>{(page) => <ActivationTable of={page.items ?? []} fn={false} command={`sous fn invoke ${f.name}`} />}</Show>
          </Card>
        )}
      </div>
      <div>
        <Card title={text.fn.alias}>
          <Facts of={(f.aliases ?? []).map((a) => [a.alias, <>{a.version} <span class="quiet">· <Time ms={a.updated_at_ms} /></span></>])} />
          {(f.aliases ?? []).length === 0 && <p class="quiet">{text.none}</p>}
        </Card>
        {number && (
          <Card title={`${text.fn.settings} ${number}`}>
            <Show of={version}>{(v) => <Settings of={v.config} />}</Show>
          </Card>
        )}
        <Card title={text.job.facts}>
          <Facts of={[[text.fn.created, <Time ms={f.created_at_ms} />], [text.fn.runtime, f.runtime], ...Object.entries(f.labels ?? {}).map(([k, v]) => [k, v] as [string, string])]} />
        </Card>
      </div>
    </div>
  );
}

function Settings({ of: c }: { of: Schemas["VersionConfig"] }) {
  const roles = c.authz?.invoke_http_roles ?? [];
  const names = Object.keys(c.env ?? {});
  return (
    <>
      <Facts
        of={[
          [text.fn.entry, <code>{c.entry} · {c.handler}</code>],
          [text.fn.timeout, duration(c.timeout_ms)],
          [text.fn.memory, `${c.memory_mb} MiB`],
          [text.fn.cpu, c.cpu_ms ? duration(c.cpu_ms) : ""],
          [text.fn.concurrency, c.max_concurrency],
          [text.fn.isolation, c.isolation],
          [text.fn.roles, roles.includes("*") ? <span class="status warn">{text.fn.public}</span> : roles.join(", ")],
          [text.fn.env, names.join(", ")],
        ]}
      />
      <h3>{text.fn.capabilities}</h3>
      {Object.keys(c.capabilities).length === 0 ? <p class="quiet">{text.fn.noCapabilities}</p> : <Code value={pretty(c.capabilities)} label={text.fn.capabilities} />}
    </>
  );
}

function Versions({ f, path }: { f: Schemas["FunctionDetail"]; path: string }) {
  const versions = useLoad(`${path}/versions`, (signal) => call<Page<Schemas["Version"]>>(`${path}/versions` + query({ limit: 100 }), { signal }), {
    on: (e) => /^(version|alias)\./.test(e.type) && e.data.function === f.name,
  });
  const prod = (f.aliases ?? []).find((a) => a.alias === "prod");
  return (
    <Show of={versions}>
      {(page) =>
        (page.items ?? []).length === 0 ? (
          <Empty title={text.fn.noVersions} hint={text.fn.noVersionsHint} commands={[`sous fn deploy ${f.name}`]} />
        ) : (
          <Table label={text.fn.tabs.versions} head={[text.act.version, text.fn.pointedBy, text.fn.published, { name: text.fn.size, number: true }, { name: text.fn.digest, hide: true }, { name: text.fn.timeout, number: true, hide: true }, { name: text.fn.memory, number: true, hide: true }, { name: text.fn.actions, number: true }]}>
            {(page.items ?? []).map((v) => (
              <tr key={v.version}>
                <td class="name">{v.version}</td>
                <td>
                  {(f.aliases ?? []).filter((a) => a.version === v.version).map((a) => (
                    <span key={a.alias} class="tag">
                      {a.alias}
                    </span>
                  ))}
                </td>
                <td>
                  <Time ms={v.published_at_ms} />
                </td>
                <td class="number">{bytes(v.size_bytes ?? 0)}</td>
                <td class="wide-only">
                  <code title={v.sha256}>{v.sha256.slice(0, 12)}</code>
                </td>
                <td class="number wide-only">{duration(v.config.timeout_ms)}</td>
                <td class="number wide-only">{v.config.memory_mb} MiB</td>
                <td class="row-actions">
                  {can("cs:function:alias:set") && prod?.version !== v.version && (
                    <ActionButton
                      of={{
                        name: text.fn.rollBack,
                        title: `${text.fn.rollBackTitle} ${v.version}?`,
                        explain: text.fn.rollBackText,
                        run: async () => {
                          await call(`${path}/aliases/prod`, { method: "PUT", body: { version: v.version } });
                          changed();
                          return `${text.fn.pointed} ${v.version}`;
                        },
                        command: { curl: curlFor("PUT", `${path}/aliases/prod`, { version: v.version }), cli: cliFor(["fn", "alias", "set", f.name, "prod", String(v.version)]) },
                      }}
                    />
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )
      }
    </Show>
  );
}

// RecentLogs shows the logs of the latest activations, the newest first.
function RecentLogs({ name }: { name: string }) {
  const path = `tenants/${segment(tenant.value)}/activations` + query({ namespace: namespace.value, function: name, limit: 10 });
  const recent = useLoad(path, (signal) => call<Page<Schemas["Activation"]>>(path, { signal }), { poll: true, on: (e) => e.type.startsWith("activation.") && e.data.function === name });
  return (
    <Show of={recent}>
      {(page) =>
        (page.items ?? []).length === 0 ? (
          <ActivationTable of={[]} fn={false} command={`sous fn invoke ${name}`} />
        ) : (
          <>
            {(page.items ?? []).map((a) => (
              <section key={a.activation_id} class="log-group">
                <p>
                  <Status of={a.status} /> <a href={to(["activations", a.activation_id])}>{a.activation_id}</a> <Time ms={a.start_ms} />
                </p>
                <Logs id={a.activation_id} running={a.status === "running" || a.status === "queued"} compact />
              </section>
            ))}
          </>
        )
      }
    </Show>
  );
}

function Triggers({ name }: { name: string }) {
  const root = `tenants/${segment(tenant.value)}/namespaces/${segment(namespace.value)}`;
  const all = useLoad(
    `${root}/triggers/${name}`,
    async (signal) => {
      const queues = await call<Page<Schemas["QueueTrigger"]>>(`${root}/triggers` + query({ function: name, limit: 100 }), { signal });
      const schedules = can("cs:schedule:read") ? await call<Page<Schemas["ScheduleStatus"]>>(`${root}/schedules` + query({ limit: 500 }), { signal }) : { items: [], next_cursor: null };
      return { queues: queues.items ?? [], schedules: (schedules.items ?? []).filter((s) => s.ref?.function === name) };
    },
    { on: (e) => e.type.startsWith("schedule.") },
  );
  return (
    <Show of={all}>
      {({ queues, schedules }) =>
        queues.length + schedules.length === 0 ? (
          <Empty title={text.fn.noTriggers} hint={text.fn.noTriggersHint} commands={[`sous queue trigger set emails ${name}`, `sous schedule create nightly --cron '0 3 * * *' --function ${name}`]} />
        ) : (
          <>
            {queues.length > 0 && (
              <Table label={text.fn.queueTrigger} head={[text.fn.queueTrigger, text.act.version, { name: text.fn.batch, number: true }, { name: text.queue.concurrency, number: true }, text.fn.enabled]}>
                {queues.map((q) => (
                  <tr key={q.queue}>
                    <td>
                      <a class="name" href={to(["queues", q.queue])}>
                        {q.queue}
                      </a>
                    </td>
                    <td>{q.alias ?? q.version}</td>
                    <td class="number">{q.batch_size}</td>
                    <td class="number">{q.concurrency || text.queue.unlimited}</td>
                    <td>{q.enabled ? text.yes : text.no}</td>
                  </tr>
                ))}
              </Table>
            )}
            {schedules.length > 0 && (
              <Table label={text.fn.schedule} head={[text.fn.schedule, text.fn.when, text.fn.next, text.fn.enabled]}>
                {schedules.map((s) => (
                  <tr key={s.name}>
                    <td class="name">{s.name}</td>
                    <td>
                      <code>{s.cron ?? `${s.every_seconds} s`}</code> {s.timezone}
                    </td>
                    <td>
                      <Time ms={s.next_run_ms} />
                    </td>
                    <td>{s.enabled ? text.yes : text.no}</td>
                  </tr>
                ))}
              </Table>
            )}
          </>
        )
      }
    </Show>
  );
}

// Invoke sends an event and shows the answer.
export function Invoke({ f, path, close }: { f: { name: string; aliases?: Schemas["Alias"][] | null; latest_version?: number | null }; path: string; close: () => void }) {
  const refs = [...(f.aliases ?? []).map((a) => a.alias), ...(f.latest_version ? [String(f.latest_version)] : [])];
  const [ref, setRef] = useState(refs.includes("prod") ? "prod" : refs[0] ?? "");
  const [event, setEvent] = useState('{\n  "name": "you"\n}');
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<Error>();
  const [answer, setAnswer] = useState<Schemas["InvokeResponse"]>();
  let value: unknown;
  let invalid = "";
  try {
    value = event.trim() === "" ? null : JSON.parse(event);
  } catch (e) {
    invalid = (e as Error).message;
  }
  const body = { ref: /^\d+$/.test(ref) ? { version: Number(ref) } : { alias: ref }, event: value };
  const run = async (e: Event) => {
    e.preventDefault();
    setWorking(true);
    setError(undefined);
    try {
      setAnswer(await call<Schemas["InvokeResponse"]>(`${path}:invoke`, { method: "POST", body }));
      changed();
    } catch (failure) {
      setError(failure as Error);
    }
    setWorking(false);
  };
  return (
    <Dialog title={`${text.fn.invokeTitle} ${f.name}`} close={close}>
      <form onSubmit={run}>
        <label>
          {text.fn.ref}
          <select value={ref} onChange={(e) => setRef(e.currentTarget.value)}>
            {refs.map((r) => (
              <option key={r}>{r}</option>
            ))}
          </select>
        </label>
        <label>
          {text.fn.event}
          <textarea rows={6} spellcheck={false} value={event} onInput={(e) => setEvent(e.currentTarget.value)} aria-invalid={invalid !== ""} />
        </label>
        {invalid && (
          <p class="bad-text" role="alert">
            {text.fn.invalidJSON} {invalid}
          </p>
        )}
        {error && <Trouble error={error} />}
        {answer && (
          <div class="answer" role="status">
            <p>
              <Status of={answer.status} /> {duration(answer.duration_ms)} · <a href={to(["activations", answer.activation_id])}>{text.fn.open}</a>
            </p>
            <Code value={answer.error ? `${answer.error.type}: ${answer.error.message}` : pretty(answer.result ?? null)} label={answer.error ? text.fn.failure : text.fn.result} />
          </div>
        )}
        <CopyAs of={{ curl: curlFor("POST", `${path}:invoke`, body), cli: cliFor(["fn", "invoke", f.name, "--event", JSON.stringify(value ?? null)]) }} />
        <div class="buttons">
          <button type="button" onClick={close}>
            {text.close}
          </button>
          <button class="primary" disabled={working || invalid !== "" || ref === ""}>
            {working ? text.fn.running : text.fn.invoke}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
