// What this module exports by default answers every call. Its result becomes the
// HTTP response, or any other value, which is answered as JSON.
export default async function handle(event: (Partial<HttpEvent> & { name?: string }) | null, ctx: Context): Promise<HttpResponse> {
  const name = event?.queryStringParameters?.name ?? event?.name ?? "world";
  cs.log.info({ greeting: name, attempt: ctx.attempt });
  return {
    statusCode: 200,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ hello: name }),
  };
}
