import { TRPCError, initTRPC } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { z } from "zod";

const t = initTRPC.context().create();
const auth = t.middleware(({ ctx, next }) => {
	if (!ctx.user) throw new TRPCError({ code: "UNAUTHORIZED" });
	return next({ ctx: { user: ctx.user.toUpperCase() } });
});
const router = t.router({
	hello: t.procedure.input(z.object({ name: z.string().min(2) })).query(({ input }) => "hello " + input.name),
	users: t.router({ add: t.procedure.use(auth).input(z.object({ n: z.number() })).mutation(({ input, ctx }) => ({ n: input.n + 1, by: ctx.user })) }),
});

const call = async (path, init) => {
	const req = new Request("https://example.com/trpc/" + path, init);
	const res = await fetchRequestHandler({ endpoint: "/trpc", req, router, createContext: () => ({ user: req.headers.get("x-user") }) });
	const body = await res.json();
	if (body.error) delete body.error.data?.stack;
	return [res.status, body];
};

export default async function () {
	const caller = t.createCallerFactory(router)({ user: "ada" });
	const query = (input) => "hello?input=" + encodeURIComponent(JSON.stringify(input));
	const post = (headers) => ({ method: "POST", body: '{"n":1}', headers: { "content-type": "application/json", ...headers } });
	return {
		hello: await call(query({ name: "Ada" })),
		short: (await call(query({ name: "A" })))[0],
		add: await call("users.add", post({ "x-user": "grace" })),
		unauthorized: (await call("users.add", post({})))[1].error.data.code,
		none: (await call("none"))[1].error.data.code,
		caller: await caller.users.add({ n: 41 }),
	};
}
