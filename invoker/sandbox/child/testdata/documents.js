import { check, rejects } from "./check.js";
export default async function () {
  check("members", Object.keys(cs.storage), ["put", "get", "list", "delete", "bulkPut", "transact"]);
  check("put", await cs.storage.put({ namespace: "n", key: "k<&>", value: { a: ["<&>"] } }), { said: '{"namespace":"n","key":"k<&>","value":{"a":["<&>"]}}' });
  check("get", await cs.storage.get({ namespace: "n", key: "k" }), { key: "k", revision: 3, value: { n: [1], __proto__x: 2 } });
  check("list", await cs.storage.list({ namespace: "n" }), { items: [1], nextCursor: null });
  check("delete", await cs.storage.delete({ namespace: "n", key: "k" }), undefined);
  check("bulkPut", await cs.storage.bulkPut({ items: [] }), { said: '{"items":[]}' });
  check("transact", await cs.storage.transact({ operations: [] }), { said: '{"operations":[]}' });
  for (const wrong of [undefined, () => 1, 1n]) {
    const e = await rejects("request " + typeof wrong, cs.storage.put(wrong), "cs.storage.put: the request");
    check("error", [e.code, e.status], ["VALIDATION_FAILED", 400]);
  }
  const e = await rejects("refused", cs.storage.get({ key: "full" }), "no room");
  check("members of the error", [e.code, e.status, e.quota, e instanceof Error], ["QUOTA_EXCEEDED", 429, { scope: "namespace", unit: "records", limit: 1, used: 1 }, true]);
}
