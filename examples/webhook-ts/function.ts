import { verifySignature } from "./src/signature.ts";
import type { HttpEvent, HttpResponse } from "./src/http.ts";

declare const cs: {
  secrets: { get(name: string): Promise<string> };
  log: { info(...values: unknown[]): void; warn(...values: unknown[]): void };
};

interface Delivery {
  action?: string;
  repository?: { full_name?: string };
}

export default async function handle(event: HttpEvent): Promise<HttpResponse> {
  if (event.requestContext?.http?.method !== "POST") {
    return reply(405, { error: "send a POST" }, { allow: "POST" });
  }
  const secret = await cs.secrets.get("WEBHOOK_SECRET");
  // The signature covers the bytes as sent, so it is checked before parsing.
  const body = event.isBase64Encoded
    ? Uint8Array.from([...atob(event.body ?? "")], (c) => c.charCodeAt(0))
    : new TextEncoder().encode(event.body ?? "");
  if (!(await verifySignature(secret, event.headers["x-hub-signature-256"], body))) {
    cs.log.warn("refused a delivery: bad signature");
    return reply(401, { error: "bad signature" });
  }
  let delivery: Delivery;
  try {
    delivery = JSON.parse(new TextDecoder().decode(body));
  } catch {
    return reply(400, { error: "the body is not JSON" });
  }
  const { action = "unknown", repository } = delivery;
  cs.log.info({ action, repository: repository?.full_name });
  return reply(200, { accepted: action });
}

function reply(statusCode: number, value: unknown, headers: Record<string, string> = {}): HttpResponse {
  return { statusCode, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(value) };
}
