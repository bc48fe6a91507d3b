interface HttpEvent {
  queryStringParameters?: Record<string, string>;
  name?: string;
}

interface HttpResponse {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}

// What this module exports by default answers every call. Its result becomes the
// HTTP response, or any other value, which is answered as JSON.
export default async function handle(event: HttpEvent | null, ctx: { attempt: number }): Promise<HttpResponse> {
  const name = event?.queryStringParameters?.name ?? event?.name ?? "world";
  cs.log.info({ greeting: name, attempt: ctx.attempt });
  return {
    statusCode: 200,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ hello: name }),
  };
}

// The part of the platform's globals that this function uses.
declare const cs: { log: { info(...values: unknown[]): void } };
