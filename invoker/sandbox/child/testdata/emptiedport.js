// As emptied.js, for messages.
import { check } from "./check.js";

export default async function () {
  const { port1, port2 } = new MessageChannel(), sent = new Uint8Array([1, 2]);
  const got = new Promise((resolve) => { port2.onmessage = (e) => resolve(e.data); });
  port1.postMessage(sent, [sent.buffer]);
  check("a buffer in a message", [sent.length, sent.byteLength, [...await got]], [0, 0, [1, 2]]);
  port1.close();
}
