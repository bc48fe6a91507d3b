// The parts that views are made of.
import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Failure } from "./http.ts";
import { now } from "./live.ts";
import type { Loaded } from "./live.ts";
import { absolute, pretty, relative } from "./format.ts";
import { settings } from "./settings.ts";
import { text } from "./text.ts";

export function Time({ ms }: { ms: number | undefined | null }) {
  if (!ms) return <span class="quiet">–</span>;
  const rel = relative(ms, now.value);
  const abs = absolute(ms);
  const first = settings.times.value === "relative";
  return (
    <time dateTime={new Date(ms).toISOString()} title={first ? abs : rel}>
      {first ? rel : abs}
    </time>
  );
}

const tones: Record<string, string> = {
  success: "good", completed: "good", error: "bad", timeout: "bad", dead: "bad", running: "busy", active: "busy",
  retrying: "warn", held: "warn", paused: "warn", draining: "warn",
};

export function Status({ of, label }: { of: string; label?: string }) {
  return <span class={`status ${tones[of] ?? "plain"}`}>{label ?? text.status[of] ?? of}</span>;
}

export function Empty({ title, hint, commands }: { title: string; hint?: string; commands?: string[] }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {hint && <p>{hint}</p>}
      {commands && <Code value={commands.join("\n")} label={text.cli} />}
    </div>
  );
}

export function Trouble({ error, retry }: { error: Error; retry?: () => void }) {
  const failure = error instanceof Failure ? error : undefined;
  return (
    <div class="trouble" role="alert">
      <p>
        <strong>{failure?.status === 403 ? text.denied : error.message}</strong>
      </p>
      {failure?.status === 403 && <p>{error.message}</p>}
      {failure?.fields.map((f) => (
        <p key={f.path}>
          <code>{f.path}</code> {f.message}
        </p>
      ))}
      {failure && (
        <p class="quiet">
          {failure.code} {failure.requestID && `· ${text.requestID} ${failure.requestID}`}
        </p>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          {text.retry}
        </button>
      )}
    </div>
  );
}

// Show renders what was loaded. An error beside older data leaves the data.
export function Show<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (of.data !== undefined)
    return (
      <>
        {of.error && <Trouble error={of.error} retry={of.reload} />}
        {children(of.data)}
      </>
    );
  if (of.error) return <Trouble error={of.error} retry={of.reload} />;
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {text.loading}
    </div>
  );
}

export function Copy({ value, label }: { value: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      // Without a secure connection there is no clipboard.
      const area = document.createElement("textarea");
      area.value = value;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="quiet-button" onClick={copy} aria-label={`${text.copy}: ${label}`}>
      {done ? text.copied : label}
    </button>
  );
}

export function Code({ value, label = text.copy }: { value: string; label?: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>{value}</pre>
      <Copy value={value} label={text.copy} />
    </div>
  );
}

export function JSONValue({ value }: { value: unknown }) {
  return <Code value={pretty(value)} label="JSON" />;
}

// Facts is a list of names and values; those without a value are left out.
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Card({ title, actions, children }: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  const id = useId();
  return (
    <section class="card" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

// Table scrolls sideways on narrow screens by itself.
export function Table({ label, head, children }: { label: string; head: (string | { name: string; number?: boolean; hide?: boolean })[]; children: ComponentChildren }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {head.map((h) => {
              const column = typeof h === "string" ? { name: h } : h;
              return (
                <th key={column.name} scope="col" class={`${"number" in column && column.number ? "number" : ""} ${"hide" in column && column.hide ? "wide-only" : ""}`}>
                  {column.name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Tabs({ label, all, current, address }: { label: string; all: [string, string][]; current: string; address: (tab: string) => string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {all.map(([id, name]) => (
        <a key={id} href={address(id)} aria-current={id === current ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

export function Heading({ title, parents, children }: { title: string; parents?: [string, string][]; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · ${text.product}`;
  }, [title]);
  return (
    <div class="heading">
      <div>
        {parents && (
          <p class="parents">
            {parents.map(([name, address]) => (
              <a key={address} href={address}>
                {name}
              </a>
            ))}
          </p>
        )}
        <h1>{title}</h1>
      </div>
      {children && <div class="actions">{children}</div>}
    </div>
  );
}

export type Command = { curl: string; cli?: string };

// CopyAs offers an action as a command for a terminal.
export function CopyAs({ of }: { of: Command }) {
  return (
    <span class="copy-as">
      <span class="quiet">{text.copyAs}</span>
      <Copy value={of.curl} label={text.curl} />
      {of.cli && <Copy value={of.cli} label={text.cli} />}
    </span>
  );
}

// A Notice is shown for some seconds after an action.
export const notice = signal("");
let clearing: ReturnType<typeof setTimeout> | undefined;
export function say(message: string): void {
  notice.value = message;
  clearTimeout(clearing);
  clearing = setTimeout(() => (notice.value = ""), 5_000);
}

export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      <div class="dialog">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

export type Action = { name: string; title: string; explain: string; danger?: boolean; run: () => Promise<string | void>; command: Command };

// ActionButton asks before it acts, and offers the action as a command.
export function ActionButton({ of }: { of: Action }) {
  const [open, setOpen] = useState(false);
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<Error>();
  const act = async () => {
    setWorking(true);
    setError(undefined);
    try {
      const said = await of.run();
      if (said) say(said);
      setOpen(false);
    } catch (e) {
      setError(e as Error);
    }
    setWorking(false);
  };
  return (
    <>
      <button type="button" class={of.danger ? "danger" : ""} onClick={() => setOpen(true)}>
        {of.name}
      </button>
      {open && (
        <Dialog title={of.title} close={() => setOpen(false)}>
          <p>{of.explain}</p>
          {error && <Trouble error={error} />}
          <CopyAs of={of.command} />
          <div class="buttons">
            <button type="button" onClick={() => setOpen(false)}>
              {text.cancel}
            </button>
            <button type="button" class={of.danger ? "danger primary" : "primary"} disabled={working} onClick={act} autofocus>
              {of.name}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

// More continues a list of pages.
export function More({ cursor, load }: { cursor: string | null | undefined; load: () => Promise<void> }) {
  const [working, setWorking] = useState(false);
  if (!cursor) return null;
  const more = async () => {
    setWorking(true);
    try {
      await load();
    } catch (e) {
      say((e as Error).message);
    }
    setWorking(false);
  };
  return (
    <p class="more">
      <button type="button" disabled={working} onClick={more}>
        {text.more}
      </button>
    </p>
  );
}
