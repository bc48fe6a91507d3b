const KEY = "counter:visits";

export default async function handle(event) {
  const method = event?.requestContext?.http?.method ?? "POST";
  let visits = (await cs.kv.get(KEY)) ?? 0;
  if (method === "DELETE") {
    await cs.kv.del(KEY);
    visits = 0;
  } else if (method !== "GET") {
    visits += 1;
    await cs.kv.set(KEY, visits, { ttlSeconds: 30 * 24 * 3600 });
  }
  return { visits };
}
