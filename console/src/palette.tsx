// The command palette reaches every view, function and queue, and opens ids.
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { can, call, query, segment } from "./http.ts";
import type { Page, Schemas } from "./http.ts";
import { at, go, namespace, tenant, to } from "./router.ts";
import { settings, themes, timeForms } from "./settings.ts";
import { matching } from "./match.ts";
import { sections } from "./sections.ts";
import { text } from "./text.ts";

export const paletteOpen = signal(false);

type Entry = { kind: string; name: string; run: () => void };

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const [names, setNames] = useState<Entry[]>([]);
  useEffect(() => {
    dialog.current?.showModal();
    const root = `tenants/${segment(tenant.value)}`;
    const inside = `${root}/namespaces/${segment(namespace.value)}`;
    void (async () => {
      const list = async <T,>(action: string, path: string) => (can(action) ? ((await call<Page<T>>(path + query({ limit: 500 })).catch(() => ({ items: [] as T[] }))).items ?? []) : []);
      const [functions, queues, namespaces] = await Promise.all([
        list<Schemas["Function"]>("cs:function:read", `${inside}/functions`),
        list<Schemas["Queue"]>("cs:queue:read", `${inside}/queues`),
        list<Schemas["NamespaceRecord"]>("cs:tenant:read", `${root}/namespaces`),
      ]);
      setNames([
        ...functions.map((f) => ({ kind: text.fn.name, name: f.name, run: () => go(to(["functions", f.name])) })),
        ...queues.map((q) => ({ kind: text.queue.name, name: q.queue, run: () => go(to(["queues", q.queue])) })),
        ...namespaces.map((n) => ({ kind: text.namespace, name: n.namespace, run: () => go(at([tenant.value, n.namespace])) })),
      ]);
    })();
  }, []);
  const close = () => (paletteOpen.value = false);
  const views: Entry[] = sections().map((s) => ({ kind: text.navigation, name: s.name, run: () => go(s.address) }));
  const choices: Entry[] = [
    ...themes.map((t) => ({ kind: text.theme, name: `${text.theme}: ${text.themeName[t]}`, run: () => void (settings.theme.value = t) })),
    ...timeForms.map((t) => ({ kind: text.times, name: `${text.times}: ${text.timesName[t]}`, run: () => void (settings.times.value = t) })),
  ];
  const asID: Entry[] = uuid.test(words.trim())
    ? [
        { kind: text.act.id, name: text.openActivation, run: () => go(to(["activations", words.trim()])) },
        { kind: text.job.id, name: text.openJob, run: () => go(to(["jobs", words.trim()])) },
      ]
    : [];
  const found = asID.length ? asID : matching([...views, ...names, ...choices], words);
  const pick = (e: Entry | undefined) => {
    if (!e) return;
    close();
    e.run();
  };
  const key = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown") setChosen((chosen + 1) % Math.max(found.length, 1));
    else if (e.key === "ArrowUp") setChosen((chosen + found.length - 1) % Math.max(found.length, 1));
    else if (e.key === "Enter") pick(found[chosen]);
    else return;
    e.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label={text.commandPalette} onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found[chosen] ? `${id}-${chosen}` : undefined}
        aria-label={text.paletteHint}
        placeholder={text.paletteHint}
        autocomplete="off"
        spellcheck={false}
        autofocus
        value={words}
        onInput={(e) => {
          setWords(e.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={key}
      />
      <ul id={id} role="listbox" aria-label={text.paletteResults}>
        {found.map((e, i) => (
          <li key={e.kind + e.name} id={`${id}-${i}`} role="option" aria-selected={i === chosen} onPointerMove={() => setChosen(i)} onClick={() => pick(e)}>
            <span>{e.name}</span>
            <span class="quiet">{e.kind}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="quiet palette-empty">{text.paletteEmpty}</p>}
    </dialog>
  );
}
