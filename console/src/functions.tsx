// The list of functions.
import { useState } from "preact/hooks";
import { call, can, query, segment } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { useLoad } from "./live.ts";
import { namespace, setFilter, filter, tenant, to } from "./router.ts";
import { count, duration, percent } from "./format.ts";
import { Create } from "./source.tsx";
import { Empty, Heading, More, Show, Table, Time } from "./ui.tsx";
import { text } from "./text.ts";

export const functionsPath = () => `tenants/${segment(tenant.value)}/namespaces/${segment(namespace.value)}/functions`;

export function Functions() {
  const key = functionsPath();
  const [more, setMore] = useState<{ key: string; items: Schemas["FunctionCalls"][]; cursor: string | null } | null>(null);
  const page = useLoad(key, (signal) => call<Page<Schemas["FunctionCalls"]>>(key + ":calls" + query({ limit: 200 }), { signal }), {
    poll: true,
    on: (e) => /^(function|version|alias)\./.test(e.type) && e.data.namespace === namespace.value,
  });
  const search = filter("q");
  const [creating, setCreating] = useState(false);
  return (
    <>
      <Heading title={text.functions}>
        <input type="search" class="filter" placeholder={text.fn.filter} aria-label={text.fn.filter} value={search} onInput={(e) => setFilter({ q: e.currentTarget.value })} />
        {can("cs:function:create") && can("cs:function:publish") && (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            {text.source.create}
          </button>
        )}
      </Heading>
      {creating && <Create close={() => setCreating(false)} />}
      <Show of={page}>
        {(first) => {
          const further = more?.key === key ? more : null;
          const all = [...(first.items ?? []), ...(further?.items ?? [])];
          const cursor = further ? further.cursor : first.next_cursor;
          if (all.length === 0)
            return <Empty title={text.fn.empty} hint={text.fn.emptyHint} commands={["sous fn init hello", "sous fn deploy hello", "sous fn invoke hello"]} />;
          const shown = all.filter((f) => f.name.includes(search));
          return (
            <>
              {shown.length === 0 ? <Empty title={text.fn.noMatch} /> : <List of={shown} />}
              <More
                cursor={cursor}
                load={async () => {
                  const next = await call<Page<Schemas["FunctionCalls"]>>(key + ":calls" + query({ limit: 200, cursor }));
                  setMore({ key, items: [...(further?.items ?? []), ...(next.items ?? [])], cursor: next.next_cursor });
                }}
              />
            </>
          );
        }}
      </Show>
    </>
  );
}

function List({ of }: { of: Schemas["FunctionCalls"][] }) {
  const number = true;
  const hide = true;
  return (
    <Table
      label={text.functions}
      head={[text.fn.name, { name: text.fn.alias, hide }, { name: text.fn.version, number }, { name: text.fn.calls, number }, { name: text.fn.failures, number }, { name: text.fn.p50, number, hide }, { name: text.fn.p99, number }, { name: text.fn.spread, hide }, text.fn.lastFailure]}
    >
      {of.map((f) => (
        <tr key={f.name}>
          <td>
            <a class="name" href={to(["functions", f.name])}>
              {f.name}
            </a>
            {f.description && <div class="quiet clip">{f.description}</div>}
          </td>
          <td class="wide-only">
            {(f.aliases ?? []).slice(0, 4).map((a) => (
              <span key={a.alias} class="tag">
                {a.alias} → {a.version}
              </span>
            ))}
          </td>
          <td class="number">{f.latest_version ?? <span class="quiet">{text.fn.unpublished}</span>}</td>
          <td class="number">{count(f.calls)}</td>
          <td class={`number ${f.failures > 0 ? "bad-text" : "quiet"}`}>{f.failures > 0 ? `${count(f.failures)} · ${percent(f.failures, f.calls)}` : 0}</td>
          <td class="number wide-only">{duration(f.p50_ms)}</td>
          <td class="number">{duration(f.p99_ms)}</td>
          <td class="wide-only">
            <Spread of={f.durations ?? []} />
          </td>
          <td>
            {f.last_failure ? (
              <a href={to(["activations", f.last_failure.activation_id])} title={f.last_failure.message}>
                {f.last_failure.type} · <Time ms={f.last_failure.at_ms} />
              </a>
            ) : (
              <span class="quiet">–</span>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

// Spread draws how many calls took how long, from fast to slow.
function Spread({ of }: { of: Schemas["DurationCount"][] }) {
  const most = Math.max(...of.map((d) => d.calls), 1);
  if (of.length === 0) return <span class="quiet">–</span>;
  const label = of.map((d) => `${d.below_ms ? "< " + duration(d.below_ms) : "≥"}: ${count(d.calls)}`).join(", ");
  const width = 5;
  return (
    <svg class="spread" width={of.length * width} height="18" role="img" aria-label={label}>
      <title>{label}</title>
      {of.map((d, i) => {
        const height = d.calls === 0 ? 1 : 2 + Math.round((15 * d.calls) / most);
        return <rect key={i} x={i * width} y={18 - height} width={width - 1} height={height} />;
      })}
    </svg>
  );
}
