import ejs from "ejs";

export default async function () {
	const template = "<% for (const u of users) { %><li><%= u.name %><%- u.raw %></li>\n<% } -%>\n<%# note %><%_ if (false) { _%>never<%_ } _%>end";
	let error;
	try {
		ejs.render("<%= none.x %>", {});
	} catch (err) {
		error = err.name;
	}
	return {
		out: ejs.render(template, { users: [{ name: "<a>", raw: "<i>" }, { name: "b&", raw: "" }] }),
		compiled: ejs.compile("<%= locals.a ?? 'none' %>")({}),
		async: await ejs.render("<%= await p %>", { p: Promise.resolve("done") }, { async: true }),
		included: ejs.render("<%- include('x', { n: 1 }) %>", {}, { includer: () => ({ template: "<b><%= n %></b>" }) }),
		error,
	};
}
