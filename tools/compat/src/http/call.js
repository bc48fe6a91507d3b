import { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough, Writable } from "node:stream";

// call has a listener of the event request answer without a server, and returns what a client
// would read, without the date.
export function call(listener, method, url, body = "", headers = {}) {
	const req = Object.assign(new IncomingMessage(new PassThrough()), {
		method, url, httpVersion: "1.1", httpVersionMajor: 1, httpVersionMinor: 1,
		headers: { host: "a.example", ...(body && { "content-type": "application/json", "content-length": String(body.length) }), ...headers },
	});
	req.push(body || null);
	if (body) req.push(null);
	req.complete = true;
	const chunks = [];
	const res = new ServerResponse(req);
	res.assignSocket(new Writable({
		write(chunk, encoding, done) {
			chunks.push(chunk);
			done();
		},
	}));
	return new Promise((resolve, reject) => {
		res.on("finish", () => resolve(Buffer.concat(chunks).toString("latin1").replace(/Date: [^\r]*\r\n/, "")));
		res.on("error", reject);
		listener(req, res);
	});
}
