import { GraphQLError, buildSchema, graphql, introspectionFromSchema, parse, print, printSchema, validate, visit } from "graphql";

const schema = buildSchema(`
	"A person"
	type User { id: ID!, name: String!, friends(first: Int = 2): [User!]! }
	enum Color { RED GREEN }
	input NewUser { name: String!, color: Color = RED }
	type Query { user(id: ID!): User, fails: String }
	type Mutation { add(user: NewUser!): User! }
`);
const users = [{ id: "1", name: "Ada" }, { id: "2", name: "Grace" }];
const withFriends = (u) => u && { ...u, friends: async ({ first }) => users.filter((o) => o.id !== u.id).slice(0, first).map(withFriends) };
const rootValue = {
	user: ({ id }) => withFriends(users.find((u) => u.id === id)),
	fails: () => {
		throw new GraphQLError("on purpose", { extensions: { code: "X" } });
	},
	add: ({ user }) => withFriends({ id: "3", name: user.name + user.color }),
};

export default async function () {
	const doc = parse("query Q($id: ID!) { user(id: $id) { ...F friends { name } } fails } fragment F on User { n: name }");
	const seen = [];
	visit(doc, { Field: (node) => void seen.push(node.name.value) });
	return {
		query: await graphql({ schema, source: print(doc), rootValue, variableValues: { id: "1" } }),
		mutation: await graphql({ schema, source: 'mutation { add(user: { name: "Lin" }) { id name } }', rootValue }),
		invalid: validate(schema, parse("{ user { nope } }")).map((e) => e.message),
		syntax: (await graphql({ schema, source: "{ user(" })).errors[0].message,
		seen,
		schema: printSchema(schema),
		types: introspectionFromSchema(schema).__schema.types.length,
	};
}
