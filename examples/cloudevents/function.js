// The platform maps both modes of HTTP to event.cloudEvent, which has CloudEvents' JSON format.
export default function (event) {
  const received = event.cloudEvent;
  if (!received) {
    return {
      statusCode: 400,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ error: "send a CloudEvent" }),
    };
  }
  cs.log.info({ type: received.type, source: received.source, id: received.id });
  return { received };
}
