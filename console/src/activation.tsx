// The page of one activation.
import { useState } from "preact/hooks";
import { call, can, segment } from "./http.ts";
import type { Schemas } from "./http.ts";
import { changed, useLoad } from "./live.ts";
import { tenant, to } from "./router.ts";
import { absolute, bytes, duration } from "./format.ts";
import { cliFor, curlFor } from "./commands.ts";
import { ActionButton, Card, Code, CopyAs, Facts, Heading, JSONValue, Show, Status, Time } from "./ui.tsx";
import { Invoke } from "./function.tsx";
import { functionsPath } from "./functions.tsx";
import { Logs } from "./logs.tsx";
import { text } from "./text.ts";

const ended = (status: string) => status !== "running" && status !== "queued";

export function ActivationPage({ id }: { id: string }) {
  const path = `tenants/${segment(tenant.value)}/activations/${segment(id)}`;
  const [again, setAgain] = useState(false);
  const activation = useLoad(path, (signal) => call<Schemas["Activation"]>(path, { signal }), { poll: true, on: (e) => e.subject === `activations/${id}` });
  const a = activation.data;
  return (
    <>
      <Heading title={id} parents={[[text.activations, to(["activations"])], ...(a ? [[a.function, to(["functions", a.function])] as [string, string]] : [])]}>
        {a && can("cs:function:invoke") && (
          <button type="button" onClick={() => setAgain(true)}>
            {text.act.again}
          </button>
        )}
        {a && !ended(a.status) && can("cs:activation:cancel") && (
          <ActionButton
            of={{
              name: text.act.cancel,
              title: text.act.cancelTitle,
              explain: text.act.cancelText,
              danger: true,
              run: async () => {
                await call(`${path}:cancel`, { method: "POST" });
                changed();
              },
              command: { curl: curlFor("POST", `${path}:cancel`), cli: cliFor(["activation", "cancel", id]) },
            }}
          />
        )}
      </Heading>
      <Show of={activation}>
        {(a) => (
          <>
            <div class="columns">
              <div>
                {a.error && (
                  <Card title={text.act.error}>
                    <p class="bad-text">
                      <strong>{a.error.type}</strong> {a.error.message}
                    </p>
                    {a.error.stack && <Code value={a.error.stack} label={text.act.stack} />}
                  </Card>
                )}
                <Card title={text.act.logs}>
                  <Logs id={id} running={!ended(a.status)} />
                  {a.logs_truncated && <p class="quiet">{text.act.logsCut}</p>}
                </Card>
                {ended(a.status) && !a.error && (
                  <Card title={text.act.result}>
                    {a.result === undefined ? <p class="quiet">{text.act.noResult}</p> : <JSONValue value={a.result} />}
                    {a.result_truncated && <p class="quiet">{text.act.resultCut}</p>}
                  </Card>
                )}
              </div>
              <div>
                <Card title={text.act.timing}>
                  <Timing of={a} />
                </Card>
                <Card title={text.act.facts}>
                  <Facts
                    of={[
                      [text.act.status, <Status of={a.status} />],
                      [text.act.fn, <a href={to(["functions", a.function])}>{a.function}</a>],
                      [text.act.version, `${a.ref.alias ? a.ref.alias + " → " : ""}${a.ref.version}`],
                      [text.act.trigger, a.trigger.type],
                      [text.act.started, <Time ms={a.start_ms} />],
                      [text.act.ended, a.end_ms ? absolute(a.end_ms) : ""],
                      [text.act.attempt, a.attempt],
                      [text.act.cold, a.cold_start ? text.yes : text.no],
                      [text.act.cpu, duration(a.cpu_ms)],
                      [text.act.memoryPeak, a.memory_peak_bytes ? bytes(a.memory_peak_bytes) : ""],
                      [text.act.egress, a.egress_bytes ? bytes(a.egress_bytes) : ""],
                      [text.act.job, a.job_id && <a href={to(["jobs", a.job_id])}>{a.job_id}</a>],
                      [text.act.retryOf, a.retry_of && <a href={to(["activations", a.retry_of])}>{a.retry_of}</a>],
                      [text.act.request, a.request_id && <code>{a.request_id}</code>],
                    ]}
                  />
                  <CopyAs of={{ curl: curlFor("GET", path), cli: cliFor(["activation", "get", id]) }} />
                </Card>
              </div>
            </div>
            {again && <Again a={a} close={() => setAgain(false)} />}
          </>
        )}
      </Show>
    </>
  );
}

function Again({ a, close }: { a: Schemas["Activation"]; close: () => void }) {
  const f = { name: a.function, aliases: a.ref.alias ? [{ alias: a.ref.alias, version: a.ref.version ?? 0, updated_at_ms: 0 }] : [], latest_version: a.ref.version };
  return <Invoke f={f} path={`${functionsPath()}/${segment(a.function)}`} close={close} />;
}

// Timing draws when the activation waited and ran.
function Timing({ of: a }: { of: Schemas["Activation"] }) {
  const end = a.end_ms ?? a.start_ms + a.duration_ms;
  const whole = Math.max(end - a.start_ms, a.duration_ms, 1);
  const wait = Math.max(whole - a.duration_ms, 0);
  const parts: [string, number, number, string][] = [];
  if (wait > 1 && a.job_id) parts.push([text.act.queueWait, 0, wait, "wait"]);
  parts.push([text.act.ran, parts.length ? wait : 0, a.duration_ms, a.error ? "bad" : "run"]);
  if (a.first_byte_ms) parts.push([text.act.firstByte, 0, a.first_byte_ms, "wait"]);
  return (
    <ul class="timing">
      {parts.map(([name, from, took, tone]) => (
        <li key={name}>
          <span>{name}</span>
          <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect class="track" width="100" height="8" />
            <rect class={tone} x={(100 * from) / whole} width={Math.max((100 * took) / whole, 0.8)} height="8" />
          </svg>
          <span class="number">{duration(took)}</span>
        </li>
      ))}
    </ul>
  );
}

