import { z } from "zod";
import { fill, find, restock } from "./stock.js";

const Order = z.object({
  id: z.string().regex(/^[A-Za-z0-9-]{1,40}$/),
  item: z.string().regex(/^[a-z0-9-]{1,40}$/),
  quantity: z.int().min(1).max(1000),
});

export default {
  async queue(batch, env) {
    for (const message of batch.messages) {
      const order = Order.safeParse(message.body);
      if (!order.success) {
        // No attempt can succeed: the message is stored for a person to look at.
        await cs.queue.enqueue("orders-dead", { body: message.body, error: z.prettifyError(order.error) });
        message.ack();
        continue;
      }
      const outcome = await fill(order.data); // if it throws, the job's policy retries it
      console.info(outcome, { order: order.data.id, attempt: message.attempts });
      if (outcome === "out of stock") {
        message.retry({ delaySeconds: Number(env.RESTOCK_SECONDS ?? 300) });
      } else {
        message.ack();
      }
    }
  },

  /** GET /orders/{id} and /stock/{item} show a document; PUT /stock/{item} sets the stock. */
  async fetch(request) {
    const [, kind, name] = new URL(request.url).pathname.match(/^\/(orders|stock)\/([A-Za-z0-9-]{1,40})$/) ?? [];
    if (!kind) return Response.json({ error: "there is no such page" }, { status: 404 });
    if (request.method === "PUT" && kind === "stock") {
      const stock = z.int().min(0).safeParse(await request.json().catch(() => undefined));
      if (!stock.success) return Response.json({ error: "send a number" }, { status: 422 });
      await restock(name, stock.data);
      return new Response(null, { status: 204 });
    }
    const found = await find(kind === "stock" ? "stock" : "order", name);
    return found === undefined
      ? Response.json({ error: "there is no such document" }, { status: 404 })
      : Response.json(found.value);
  },
};
