// The console begins here.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Failure, reachable, readSession, session } from "./http.ts";
import { at, go, namespace, place, tenant } from "./router.ts";
import { Shell } from "./shell.tsx";
import { SignIn } from "./signin.tsx";
import { text } from "./text.ts";
import "./style.css";

// The tenant and namespace that an address without them means.
const defaultTenant = "t_default";
const defaultNamespace = "default";

function App() {
  const now = session.value;
  const identity = now?.identity;
  // A key of one tenant or namespace sees no other: an address that names another one was another key's.
  const home = identity && [identity.tenant === "*" ? tenant.value || defaultTenant : identity.tenant, identity.namespace || namespace.value || defaultNamespace];
  const lost = home !== undefined && (home[0] !== tenant.value || home[1] !== namespace.value);
  useEffect(() => {
    if (lost) go(at([...home!, ...(tenant.value === home![0] ? place.value.path.slice(2) : [])]) + (tenant.value === home![0] ? location.search : ""), true);
  }, [lost]);
  if (now === null)
    return (
      <main id="main" class="starting">
        <h1 class="hidden">{text.product}</h1>
        <p role="status">{reachable.value ? text.loading : text.retrying}</p>
      </main>
    );
  if (!now.signed_in) return <SignIn />;
  return lost ? null : <Shell key={`${identity?.key_id} ${tenant.value}`} />;
}

// A server whose store does not answer is asked again; live.ts does the same for one that is down.
async function start(): Promise<void> {
  try {
    await readSession();
  } catch (error) {
    if (error instanceof Failure) setTimeout(start, 2_000);
  }
}
void start();
render(<App />, document.getElementById("app")!);
