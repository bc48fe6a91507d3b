import Koa from "koa";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { call } from "./http/call.js";

const app = new Koa();
app.silent = true;
app.use(async (ctx, next) => {
	await next();
	ctx.set("X-Status", String(ctx.status));
});
app.use(async (ctx) => {
	if (ctx.path === "/echo") {
		ctx.cookies.set("session", "abc", { httpOnly: true });
		ctx.body = { got: JSON.parse(await text(ctx.req)), query: ctx.query, is: ctx.is("json"), cookie: ctx.cookies.get("a") };
	} else if (ctx.path === "/stream") {
		ctx.type = "text/plain";
		ctx.body = Readable.from(["a", "b"]);
	} else if (ctx.path === "/throw") {
		ctx.throw(409, "on purpose");
	} else if (ctx.path === "/empty") {
		ctx.status = 204;
	}
});

export default async function () {
	const listener = app.callback();
	return [
		await call(listener, "POST", "/echo?x=1&x=2", '{"n":1}', { cookie: "a=b" }),
		await call(listener, "GET", "/stream"),
		await call(listener, "GET", "/throw"),
		await call(listener, "GET", "/empty"),
		await call(listener, "GET", "/none"),
	];
}
