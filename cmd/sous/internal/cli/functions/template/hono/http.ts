// toRequest makes a Request of an event. Its path is the one below the function's URL.
export function toRequest(event: Partial<HttpEvent> | null): Request {
  const method = event?.requestContext?.http.method ?? "GET";
  const headers = new Headers(event?.headers);
  for (const cookie of event?.cookies ?? []) headers.append("cookie", cookie);
  const query = event?.rawQueryString ? "?" + event.rawQueryString : "";
  const url = "https://" + (headers.get("host") ?? "localhost") + (event?.path || "/") + query;
  const hasBody = event?.body && method !== "GET" && method !== "HEAD";
  return new Request(url, { method, headers, body: hasBody ? (event.isBase64Encoded ? bytes(event.body!) : event.body) : undefined });
}

// toResponse makes a result of a Response.
export async function toResponse(response: Response): Promise<HttpResponse> {
  const headers: Record<string, string> = {};
  response.headers.forEach((value, name) => {
    if (name !== "set-cookie") headers[name] = value;
  });
  const body = base64(await response.bytes());
  return { statusCode: response.status, headers, cookies: response.headers.getSetCookie(), body, isBase64Encoded: true };
}

function bytes(encoded: string): Uint8Array<ArrayBuffer> {
  const text = atob(encoded);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

function base64(data: Uint8Array): string {
  let text = "";
  for (const byte of data) text += String.fromCharCode(byte);
  return btoa(text);
}
