// The page for people who are not signed in.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, session, signIn } from "./http.ts";
import { Code } from "./ui.tsx";
import { text } from "./text.ts";

export function SignIn() {
  const field = useRef<HTMLInputElement>(null);
  const [working, setWorking] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => {
    document.title = `${text.signIn.title} · ${text.product}`;
    field.current?.focus();
  }, []);
  const submit = async (e: Event) => {
    e.preventDefault();
    const key = field.current?.value.trim() ?? "";
    if (!key.startsWith("sous_")) {
      setError(text.signIn.form);
      field.current?.focus();
      return;
    }
    setWorking(true);
    setError("");
    try {
      await signIn(key);
    } catch (failure) {
      setError((failure as Error).message + (failure instanceof Failure && failure.requestID ? ` (${failure.requestID})` : ""));
      setWorking(false);
      field.current?.focus();
    }
  };
  const reason = session.value?.reason;
  return (
    <main class="sign-in" id="main">
      <h1>{text.product}</h1>
      {reason && (
        <p class="banner" role="status">
          {text.signIn.ended}: {reason}
        </p>
      )}
      <form onSubmit={submit}>
        <p>{text.signIn.lead}</p>
        <label>
          {text.signIn.key}
          <input ref={field} type="password" name="key" autocomplete="off" spellcheck={false} aria-invalid={error !== ""} aria-describedby={error ? "key-error" : undefined} required />
        </label>
        {error && (
          <p id="key-error" class="bad-text" role="alert">
            {error}
          </p>
        )}
        <button class="primary" disabled={working}>
          {working ? text.signIn.working : text.signIn.button}
        </button>
      </form>
      <section>
        <p class="quiet">{text.signIn.help}</p>
        <Code value={text.signIn.bootstrap} label={text.signIn.bootstrap} />
        <p class="quiet">{text.signIn.more}</p>
        <Code value={text.signIn.create} label={text.signIn.create} />
      </section>
    </main>
  );
}
