const namespace = "shop";

/**
 * Takes the quantity of an order from the stock, once for each order: a job is executed at least
 * once, so an attempt can find the work of an earlier one.
 */
export async function fill({ id, item, quantity }) {
  if (await find("order", id)) return "done before";
  const stock = await find("stock", item);
  if (!stock || stock.value < quantity) return "out of stock";
  // Both documents are written or none. If one of them has changed since it was read, this
  // throws, and the next attempt reads it again.
  await cs.storage.transact({
    namespace,
    operations: [
      { op: "put", key: `stock-${item}`, value: stock.value - quantity, ifRevision: stock.revision },
      { op: "put", key: `order-${id}`, value: { item, quantity }, ifRevision: 0 },
    ],
  });
  return "filled";
}

export async function restock(item, quantity) {
  await cs.storage.put({ namespace, key: `stock-${item}`, value: quantity });
}

/** Returns the document, undefined if there is none. */
export async function find(kind, name) {
  try {
    return await cs.storage.get({ namespace, key: `${kind}-${name}` });
  } catch (error) {
    if (error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}
