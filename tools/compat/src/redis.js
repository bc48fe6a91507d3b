import { RESP_TYPES, createClient, defineScript } from "redis";

export default async function () {
	const client = createClient({ url: "redis://127.0.0.1:1", socket: { reconnectStrategy: false, connectTimeout: 2000 } });
	client.on("error", () => {});
	const refused = await client.connect().then(() => null, (err) => err);
	console.log("redis: " + refused?.message);
	const script = defineScript({ NUMBER_OF_KEYS: 1, SCRIPT: "return redis.call('GET', KEYS[1])", parseCommand: (parser, key) => parser.pushKey(key), transformReply: (r) => r });
	return { refused: refused instanceof Error && refused.message.length > 10, open: client.isOpen, ready: client.isReady, sha: script.SHA1, types: Object.keys(RESP_TYPES).length > 5, commands: typeof client.hGetAll };
}
