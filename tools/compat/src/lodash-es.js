import _, { camelCase, chunk, cloneDeep, debounce, deburr, get, groupBy, isEqual, kebabCase, merge, orderBy, set, startCase, template, words } from "lodash-es";

export default async function () {
	let calls = 0;
	const debounced = debounce(() => calls++, 5);
	debounced();
	debounced();
	await new Promise((resolve) => setTimeout(resolve, 50));
	const deep = { a: [{ b: new Map([[1, { c: new Date(0) }]]) }], re: /x/g };
	return {
		grouped: groupBy([6.1, 4.2, 6.3], Math.floor),
		chain: _([3, 1, 2]).map((n) => n * 2).filter((n) => n > 2).sortBy().value(),
		merged: merge({ a: [{ b: 1 }] }, { a: [{ c: 2 }], d: null }),
		set: set({}, "a[0].b.c", 4),
		get: get(deep, "a[0].x", "none"),
		equal: isEqual(cloneDeep(deep), deep),
		ordered: orderBy([{ u: "b", n: 1 }, { u: "a", n: 2 }, { u: "a", n: 3 }], ["u", "n"], ["asc", "desc"]),
		cases: [camelCase("Foo Bar-baz"), kebabCase("fooBarXMLHttp"), startCase("élan vital"), deburr("déjà vu"), words("héllo wörld 12th")],
		chunks: chunk([1, 2, 3, 4, 5], 2),
		template: template("hi <%- user %>! <% for (const x of list) { %><%= x %>;<% } %>")({ user: "<b>", list: [1, 2] }),
		calls,
	};
}
