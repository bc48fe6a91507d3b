import Stripe from "stripe";

export default async function () {
	const calls = [];
	const fetch = async (url, init) => {
		const headers = new Headers(init.headers);
		calls.push([init.method, String(url), headers.get("authorization"), headers.get("idempotency-key"), String(init.body ?? "")]);
		if (String(url).includes("/refunds")) return Response.json({ error: { type: "card_error", code: "charge_already_refunded", message: "refunded" } }, { status: 400 });
		return Response.json({ id: "cus_1", object: "customer", email: "ada@example.com" }, { headers: { "request-id": "req_1" } });
	};
	const stripe = new Stripe("sk_test_123", { httpClient: Stripe.createFetchHttpClient(fetch), maxNetworkRetries: 0, telemetry: false });
	const customer = await stripe.customers.create({ email: "ada@example.com", metadata: { a: "b c" } }, { idempotencyKey: "k1" });
	const refused = await stripe.refunds.create({ charge: "ch_1" }, { idempotencyKey: "k2" }).catch((err) => [err.type, err.code, err.statusCode, err.message]);
	const payload = JSON.stringify({ id: "evt_1", object: "event", type: "charge.succeeded" });
	const header = await stripe.webhooks.generateTestHeaderStringAsync({ payload, secret: "whsec_test", timestamp: 1760000000 });
	const event = await stripe.webhooks.constructEventAsync(payload, header, "whsec_test", 1e10);
	const forged = await stripe.webhooks.constructEventAsync(payload + " ", header, "whsec_test", 1e10).catch((err) => err.type);
	return { customer: [customer.id, customer.email, customer.lastResponse.requestId], refused, header, event: event.type, forged, calls };
}
