// Sends events with the SDK, each in both modes, and prints a line of JSON for each: what was
// sent and what the function answered.
import { CloudEvent, emitterFor, httpTransport, Mode } from "cloudevents";

const url = process.argv[2];
if (!url) {
  console.error("usage: node send.js URL");
  process.exit(2);
}

const common = { source: "https://shop.example.com/orders", type: "com.example.order.placed" };
const events = [
  new CloudEvent({ ...common, data: { order: 7, items: ["Teapot", "Tässchen"] } }),
  new CloudEvent({
    ...common,
    subject: "orders/7",
    time: "2026-10-08T12:30:00.000Z",
    dataschema: "https://shop.example.com/schemas/order.json",
    region: "eu", // an extension
    data: { order: 7 },
  }),
  new CloudEvent({ ...common, datacontenttype: "text/plain", data: "one ünï 👍 line" }),
  new CloudEvent({ ...common, datacontenttype: "application/octet-stream", data: new Uint8Array([0, 255, 1]) }),
];
for (const mode of [Mode.BINARY, Mode.STRUCTURED]) {
  const emit = emitterFor(httpTransport(url), { mode });
  for (const event of events) {
    const { body } = await emit(event);
    console.log(JSON.stringify({ mode, sent: event, answer: JSON.parse(body) }));
  }
}
