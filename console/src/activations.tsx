// The list of activations.
import { useState } from "preact/hooks";
import { call, query, segment } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { useLoad } from "./live.ts";
import { filter, namespace, setFilter, tenant, to } from "./router.ts";
import { duration, short } from "./format.ts";
import { Empty, Heading, More, Show, Status, Table, Time } from "./ui.tsx";
import { text } from "./text.ts";

const statuses = ["success", "error", "timeout", "cancelled", "running", "queued"];
const triggers = ["http", "api", "schedule", "queue", "cadence"];

export function Activations() {
  const filters = { status: filter("status"), trigger: filter("trigger"), function: filter("function"), id: filter("id") };
  const path = `tenants/${segment(tenant.value)}/activations` + query({ namespace: namespace.value, ...filters, limit: 100 });
  const [more, setMore] = useState<{ key: string; items: Schemas["Activation"][]; cursor: string | null } | null>(null);
  const page = useLoad(path, (signal) => call<Page<Schemas["Activation"]>>(path, { signal }), {
    poll: true,
    on: (e) => e.type.startsWith("activation.") && e.data.namespace === namespace.value,
  });
  return (
    <>
      <Heading title={text.activations} />
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <Choice label={text.act.statusFilter} value={filters.status} all={statuses} name={(s) => text.status[s] ?? s} set={(status) => setFilter({ status })} />
        <Choice label={text.act.triggerFilter} value={filters.trigger} all={triggers} name={(s) => s} set={(trigger) => setFilter({ trigger })} />
        <Field label={text.act.fnFilter} value={filters.function} set={(v) => setFilter({ function: v })} />
        <Field label={text.act.idFilter} value={filters.id} set={(v) => setFilter({ id: v })} />
      </form>
      <Show of={page}>
        {(first) => {
          const further = more?.key === path ? more : null;
          return (
            <>
              <ActivationTable of={[...(first.items ?? []), ...(further?.items ?? [])]} fn command="sous fn invoke hello" />
              <More
                cursor={further ? further.cursor : first.next_cursor}
                load={async () => {
                  const next = await call<Page<Schemas["Activation"]>>(path + `&cursor=${segment((further ? further.cursor : first.next_cursor) ?? "")}`);
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

export function Choice({ label, value, all, name, set }: { label: string; value: string; all: string[]; name: (v: string) => string; set: (v: string) => void }) {
  return (
    <label>
      {label}
      <select value={value} onChange={(e) => set(e.currentTarget.value)}>
        <option value="">{text.act.all}</option>
        {all.map((v) => (
          <option key={v} value={v}>
            {name(v)}
          </option>
        ))}
      </select>
    </label>
  );
}

// Field is a filter that counts when it is left or submitted: each one is a search.
export function Field({ label, value, set }: { label: string; value: string; set: (v: string) => void }) {
  return (
    <label>
      {label}
      <input type="search" value={value} onChange={(e) => set(e.currentTarget.value.trim())} />
    </label>
  );
}

export function ActivationTable({ of, fn, command }: { of: Schemas["Activation"][]; fn: boolean; command: string }) {
  if (of.length === 0) return <Empty title={text.act.empty} hint={text.act.emptyHint} commands={[command]} />;
  const number = true;
  return (
    <Table
      label={text.activations}
      head={[text.act.status, text.act.started, ...(fn ? [text.act.fn] : []), { name: text.act.version, number, hide: true }, { name: text.act.trigger, hide: true }, { name: text.act.took, number }, { name: text.act.id, hide: fn }, text.act.error]}
    >
      {of.map((a) => (
        <tr key={a.activation_id}>
          <td>
            <a class="row-link" href={to(["activations", a.activation_id])}>
              <Status of={a.status} />
              <span class="hidden">{a.activation_id}</span>
            </a>
          </td>
          <td>
            <Time ms={a.start_ms} />
          </td>
          {fn && (
            <td>
              <a class="name" href={to(["functions", a.function])}>
                {a.function}
              </a>
            </td>
          )}
          <td class="number wide-only">{a.ref.version}</td>
          <td class="wide-only">{a.trigger.type}</td>
          <td class="number">{duration(a.duration_ms)}</td>
          <td class={fn ? "wide-only" : ""}>
            <a href={to(["activations", a.activation_id])}>
              <code>{short(a.activation_id)}</code>
            </a>
          </td>
          <td class="clip bad-text">{a.error ? `${a.error.type}: ${a.error.message}` : ""}</td>
        </tr>
      ))}
    </Table>
  );
}
