// What surrounds every view: navigation, place, session.
import { useEffect, useState } from "preact/hooks";
import { base, call, can, query, reachable, segment, session, signOut } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { state, useLoad } from "./live.ts";
import { at, go, namespace, tenant, view } from "./router.ts";
import { settings, themes, timeForms } from "./settings.ts";
import { sections } from "./sections.ts";
import { Palette, paletteOpen } from "./palette.tsx";
import { Empty, Heading, notice, say } from "./ui.tsx";
import { Activations } from "./activations.tsx";
import { ActivationPage } from "./activation.tsx";
import { FunctionPage } from "./function.tsx";
import { Functions } from "./functions.tsx";
import { JobPage } from "./job.tsx";
import { Overview } from "./overview.tsx";
import { QueuePage, Queues } from "./queues.tsx";
import { text } from "./text.ts";

function View() {
  const [section, name, further] = view.value;
  if (!further) {
    if (!section) return <Overview />;
    if (section === "functions") return name ? <FunctionPage key={name} name={name} /> : <Functions />;
    if (section === "activations") return name ? <ActivationPage key={name} id={name} /> : <Activations />;
    if (section === "queues") return name ? <QueuePage key={name} name={name} /> : <Queues />;
    if (section === "jobs" && name) return <JobPage key={name} id={name} />;
  }
  return (
    <>
      <Heading title={text.notFound} />
      <Empty title={text.notFound} hint={text.notFoundHint} />
    </>
  );
}

export function Shell() {
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() === "k" && (e.metaKey || e.ctrlKey)) {
        e.preventDefault();
        paletteOpen.value = !paletteOpen.value;
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const current = view.value[0] === "jobs" ? "queues" : view.value[0] ?? "";
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>
        {text.skip}
      </a>
      <header class="top">
        <a class="product" href={at([tenant.value, namespace.value])}>
          <Mark />
          {text.product}
        </a>
        <Place />
        <button type="button" class="search-button" onClick={() => (paletteOpen.value = true)}>
          <span>{text.search}</span>
          <kbd>{/Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <span class={`liveness ${reachable.value ? state.value : "off"}`} title={!reachable.value ? text.lost : state.value === "live" ? text.liveHint : text.idleHint}>
          {!reachable.value ? text.offline : state.value === "live" ? text.live : text.idle}
        </span>
        <Account />
      </header>
      <nav class="side" aria-label={text.navigation}>
        <ul>
          {sections().map((s) => (
            <li key={s.id}>
              <a href={s.address} aria-current={s.id === current ? "page" : undefined}>
                {s.name}
              </a>
            </li>
          ))}
        </ul>
        <ul class="further">
          <li>
            <a href={new URL("../docs/", base).pathname} target="_blank" rel="noopener">
              {text.docs}
            </a>
          </li>
          <li>
            <a href={new URL("../docs/reference", base).pathname} target="_blank" rel="noopener">
              {text.apiReference}
            </a>
          </li>
        </ul>
      </nav>
      <main id="main" tabIndex={-1}>
        {!reachable.value && (
          <p class="banner" role="alert">
            {text.retrying}
          </p>
        )}
        <View />
      </main>
      <p class={`notice ${notice.value ? "shown" : ""}`} role="status">
        {notice.value}
      </p>
      {paletteOpen.value && <Palette />}
    </div>
  );
}

function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" class="mark">
      <path d="M3 8h14v3a6 6 0 0 1-6 6H9a6 6 0 0 1-6-6z" />
      <path d="M7 2v3M13 2v3M10 1v3" />
    </svg>
  );
}

// Place shows and changes the tenant and the namespace.
function Place() {
  const identity = session.value?.identity;
  const every = identity?.tenant === "*";
  const path = `tenants/${segment(tenant.value)}/namespaces`;
  const names = useLoad(can("cs:tenant:read") && !identity?.namespace ? path : "", async (signal) =>
    ((await call<Page<Schemas["NamespaceRecord"]>>(path + query({ limit: 500 }), { signal })).items ?? []).map((n) => n.namespace),
  );
  const all = [...new Set([...(names.data ?? []), namespace.value])].sort();
  return (
    <div class="place">
      {every ? (
        <form
          onSubmit={(e) => {
            e.preventDefault();
            const name = new FormData(e.currentTarget).get("tenant");
            if (typeof name === "string" && name) go(at([name.trim(), "default"]));
          }}
        >
          <input key={tenant.value} name="tenant" aria-label={text.tenant} defaultValue={tenant.value} size={12} spellcheck={false} autocomplete="off" />
        </form>
      ) : (
        <span>{tenant.value}</span>
      )}
      <span aria-hidden="true">/</span>
      <select
        aria-label={text.namespace}
        value={namespace.value}
        onChange={(e) => {
          const chosen = e.currentTarget.value;
          go(at([tenant.value, chosen, ...view.value.slice(0, 1).filter((s) => s !== "jobs")]));
        }}
      >
        {all.map((n) => (
          <option key={n}>{n}</option>
        ))}
      </select>
    </div>
  );
}

function Account() {
  const [open, setOpen] = useState(false);
  const identity = session.value?.identity;
  const off = session.value?.auth === "off";
  useEffect(() => {
    if (!open) return;
    const close = (e: Event) => {
      if (e instanceof KeyboardEvent ? e.key === "Escape" : !(e.target as Element).closest?.(".account")) setOpen(false);
    };
    addEventListener("click", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("click", close);
      removeEventListener("keydown", close);
    };
  }, [open]);
  const name = off ? text.local : identity?.name || identity?.key_id || text.account;
  return (
    <div class="account">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        {name}
      </button>
      {open && (
        <div class="menu">
          <p class="quiet">{off ? text.localHint : `${identity?.key_id} · ${(identity?.roles ?? []).join(", ")}`}</p>
          <fieldset>
            <legend>{text.theme}</legend>
            {themes.map((t) => (
              <label key={t}>
                <input type="radio" name="theme" checked={settings.theme.value === t} onChange={() => (settings.theme.value = t)} /> {text.themeName[t]}
              </label>
            ))}
          </fieldset>
          <fieldset>
            <legend>{text.times}</legend>
            {timeForms.map((t) => (
              <label key={t}>
                <input type="radio" name="times" checked={settings.times.value === t} onChange={() => (settings.times.value = t)} /> {text.timesName[t]}
              </label>
            ))}
          </fieldset>
          {!off && (
            <button type="button" onClick={() => signOut().catch((e: Error) => say(e.message))}>
              {text.signOut}
            </button>
          )}
        </div>
      )}
    </div>
  );
}
