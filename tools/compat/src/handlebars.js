import Handlebars from "handlebars";

export default async function () {
	const hb = Handlebars.create();
	hb.registerHelper("loud", (s) => new hb.SafeString("<b>" + s.toUpperCase() + "</b>"));
	hb.registerPartial("item", "<li>{{name}}{{#if last}}!{{else}},{{/if}}</li>");
	const template = hb.compile("{{#with user}}{{name}} {{loud name}}{{/with}} {{#each items as |it i|}}{{i}}{{> item it last=@last}}{{/each}} {{lookup map key}} {{{raw}}} {{nope.x}}{{!-- c --}}");
	let error;
	try {
		hb.compile("{{#if}")({});
	} catch (err) {
		error = err.message.split("\n")[0];
	}
	return {
		out: template({ user: { name: "<Ada>" }, items: [{ name: "x" }, { name: "y" }], map: { k: "v" }, key: "k", raw: "<i>" }),
		error,
		parsed: Handlebars.parse("a {{b}}").body.map((n) => n.type),
	};
}
