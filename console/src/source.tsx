// The source of a function: read a version, edit it, publish it, and begin a new function.
import { useState } from "preact/hooks";
import { call, can, segment, send } from "./http.ts";
import type { Schemas } from "./http.ts";
import { changed, useLoad } from "./live.ts";
import { filter, go, setFilter, to } from "./router.ts";
import { cliFor, curlFor } from "./commands.ts";
import { functionsPath } from "./functions.tsx";
import { base64, untar } from "./tar.ts";
import { Code, CopyAs, Dialog, Empty, say, Show, Trouble } from "./ui.tsx";
import { text } from "./text.ts";

const beginning = `export default async function handle(event, ctx) {
  console.log("called with", event);
  return { hello: event?.name ?? "world" };
}
`;

// publish uploads files and publishes them under prod.
async function publish(path: string, files: Map<string, string>): Promise<number> {
  const encoded = Object.fromEntries([...files].map(([name, content]) => [name, base64(content)]));
  const draft = await call<Schemas["DraftReceipt"]>(`${path}/draft`, { method: "PUT", body: { files: encoded } });
  const version = await call<Schemas["PublishedVersion"]>(`${path}/versions`, { method: "POST", body: { draft_id: draft.draft_id, alias: "prod" } });
  changed();
  return version.version;
}

export function Source({ f, path }: { f: Schemas["FunctionDetail"]; path: string }) {
  const latest = f.latest_version ?? 0;
  const shown = Number(filter("version")) || latest;
  const source = useLoad(shown ? `${path}/source/${shown}` : "", async (signal) =>
    untar(new Uint8Array(await (await send(`api/v1/${path}/versions/${shown}/bundle`, { headers: { accept: "*/*" }, signal })).arrayBuffer())),
  );
  if (!shown) return can("cs:function:publish") ? <Editor key="new" path={path} files={new Map([["function.js", beginning]])} /> : <Empty title={text.fn.noVersions} />;
  return (
    <>
      <label class="inline">
        {text.act.version}
        <select value={shown} onChange={(e) => setFilter({ version: e.currentTarget.value })}>
          {Array.from({ length: latest }, (_, i) => latest - i).map((n) => (
            <option key={n} value={n}>
              {n}
            </option>
          ))}
        </select>
      </label>
      <Show of={source}>{(files) => <Editor key={shown} path={path} files={files} />}</Show>
    </>
  );
}

// Editor shows the files of a version, and publishes what was changed in them.
function Editor({ path, files }: { path: string; files: Map<string, string> }) {
  const [edited, setEdited] = useState(files);
  const names = [...edited.keys()].sort();
  const [name, setName] = useState(names.find((n) => /^function\.(js|ts)$/.test(n)) ?? names[0] ?? "");
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<Error>();
  const may = can("cs:function:publish") && can("cs:function:draft:upload");
  const content = edited.get(name) ?? "";
  const dirty = path.length > 0 && (files.size !== edited.size || [...edited].some(([n, c]) => files.get(n) !== c));
  const run = async () => {
    setWorking(true);
    setError(undefined);
    try {
      const version = await publish(path, edited);
      setFilter({ version: undefined });
      say(`${text.source.published} ${version}`);
    } catch (e) {
      setError(e as Error);
    }
    setWorking(false);
  };
  return (
    <div class="source">
      <ul class="files" aria-label={text.source.files}>
        {names.map((n) => (
          <li key={n}>
            <button type="button" class="quiet-button" aria-pressed={n === name} onClick={() => setName(n)}>
              {n}
            </button>
          </li>
        ))}
      </ul>
      <div>
        {may ? (
          <textarea
            class="editor"
            aria-label={name}
            rows={Math.min(Math.max(content.split("\n").length + 1, 14), 40)}
            spellcheck={false}
            autocapitalize="off"
            value={content}
            onInput={(e) => setEdited(new Map(edited).set(name, e.currentTarget.value))}
          />
        ) : (
          <Code value={content} label={name} />
        )}
        {error && <Trouble error={error} />}
        {may && (
          <div class="buttons">
            <CopyAs of={{ curl: curlFor("POST", `${path}/versions`, { draft_id: "drf_…", alias: "prod" }), cli: cliFor(["fn", "deploy", decodeURIComponent(path.split("/").at(-1) ?? "")]) }} />
            <button type="button" class="primary" disabled={working || (!dirty && files.get(name) !== beginning)} onClick={run}>
              {working ? text.source.publishing : text.source.publish}
            </button>
          </div>
        )}
      </div>
    </div>
  );
}

// Create makes a function and opens its source.
export function Create({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [error, setError] = useState<Error>();
  const [working, setWorking] = useState(false);
  const create = async (e: Event) => {
    e.preventDefault();
    setWorking(true);
    setError(undefined);
    try {
      await call(functionsPath(), { method: "POST", body: { name } });
      await publish(`${functionsPath()}/${segment(name)}`, new Map([["function.js", beginning]]));
      close();
      go(to(["functions", name], { tab: "source" }));
    } catch (failure) {
      setError(failure as Error);
    }
    setWorking(false);
  };
  return (
    <Dialog title={text.source.create} close={close}>
      <form onSubmit={create}>
        <label>
          {text.source.name}
          <input value={name} onInput={(e) => setName(e.currentTarget.value)} autocomplete="off" spellcheck={false} required pattern="[a-z][a-z0-9_\-]{0,63}" title={text.source.nameHint} />
        </label>
        <p class="quiet">{text.source.createHint}</p>
        {error && <Trouble error={error} />}
        <CopyAs of={{ curl: curlFor("POST", functionsPath(), { name: name || "hello" }), cli: cliFor(["fn", "init", name || "hello"]) }} />
        <div class="buttons">
          <button type="button" onClick={close}>
            {text.cancel}
          </button>
          <button class="primary" disabled={working || name === ""}>
            {text.source.create}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
