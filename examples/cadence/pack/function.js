// Packs the items of an order, one after the other. Each heartbeat reports the
// progress, and the attempt after a failure continues from there. If the workflow
// cancels the activity, the next heartbeat ends it.
export default async function pack(event, ctx) {
  const { items } = event.input.json;
  const from = cs.cadence.lastHeartbeat()?.packed ?? 0;
  for (let packed = from; packed < items.length; packed++) {
    await new Promise((resolve) => setTimeout(resolve, 50)); // where the work would be
    if (items[packed] === "vase" && ctx.attempt === 1) {
      throw new Error("the vase fell");
    }
    await cs.cadence.heartbeat({ packed: packed + 1 });
  }
  return { packed: items.length, resumed_from: from };
}
