export default async function handle(event, ctx) {
  const name = event?.queryStringParameters?.name ?? event?.name ?? "world";
  cs.log.info({ greeting: name, version: ctx.version });
  return {
    statusCode: 200,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ hello: name }),
  };
}
