import Mustache from "mustache";

export default async function () {
	const view = { name: "<Ada>", list: [{ n: 1 }, { n: 2 }], empty: [], upper: () => (text, render) => render(text).toUpperCase(), deep: { a: { b: "c" } } };
	return {
		out: Mustache.render("{{name}} {{{name}}} {{#list}}{{n}}{{^last}};{{/last}}{{/list}} {{^empty}}none{{/empty}} {{#upper}}x{{name}}{{/upper}} {{deep.a.b}} {{> part}}", view, { part: "[{{deep.a.b}}]" }),
		tags: Mustache.render("<% name %>", { name: "x" }, {}, ["<%", "%>"]),
		parsed: Mustache.parse("a {{#b}}c{{/b}}").length,
	};
}
