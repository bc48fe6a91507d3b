import { createSchema, createYoga } from "graphql-yoga";

const yoga = createYoga({
	logging: false,
	schema: createSchema({
		typeDefs: "type Query { hello(name: String!): String!, fail: String } type Mutation { add(a: Int!, b: Int!): Int! } type Subscription { count(to: Int!): Int! }",
		resolvers: {
			Query: {
				hello: (_, { name }, ctx) => `hello ${name} ${ctx.request.headers.get("x-user")}`,
				fail: () => {
					throw new Error("secret");
				},
			},
			Mutation: { add: (_, { a, b }) => a + b },
			Subscription: {
				count: {
					async *subscribe(_, { to }) {
						for (let i = 1; i <= to; i++) yield { count: i };
					},
				},
			},
		},
	}),
});

const post = (body, headers) => yoga.fetch("https://example.com/graphql", { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } });

export default async function () {
	const hello = await post({ query: "query ($n: String!) { hello(name: $n) }", variables: { n: "Ada" } }, { "x-user": "u1" });
	const fail = await post({ query: "{ fail }" });
	const invalid = await post({ query: "{ nope }" });
	const add = await post({ query: "mutation { add(a: 1, b: 2) }" });
	const events = await post({ query: "subscription { count(to: 3) }" }, { accept: "text/event-stream" });
	const text = await events.text();
	return {
		hello: [hello.status, hello.headers.get("content-type"), await hello.json()],
		fail: (await fail.json()).errors[0].message,
		invalid: (await invalid.json()).errors[0].message,
		add: await add.json(),
		events: text.split("\n").filter((line) => line.startsWith("data: {")),
	};
}
