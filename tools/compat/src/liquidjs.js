import { Liquid } from "liquidjs";

export default async function () {
	const engine = new Liquid({ templates: { part: "[{{ x }}]" }, timezoneOffset: 0 });
	engine.registerFilter("add", (a, b) => a + b);
	const template = `{% assign total = 0 %}{% for p in products limit:2 offset:1 %}{{ forloop.index }}{{ p.name | upcase | escape }}{% assign total = total | plus: p.price %}{% endfor %} {{ total | add: 1 | round: 1 }} {% case kind %}{% when "a" %}A{% else %}other{% endcase %} {{ "2026-01-02" | date: "%a %d %b %Y" }} {% render "part", x: 3 %} {{ list | where: "ok" | map: "n" | join: "," }} {% raw %}{{ x }}{% endraw %}`;
	return {
		out: await engine.parseAndRender(template, { products: [{ name: "x" }, { name: "<y>", price: 1.25 }, { name: "z", price: 2 }], kind: "b", list: [{ n: 1, ok: true }, { n: 2 }] }),
		sync: engine.parseAndRenderSync("{{ 'a,b' | split: ',' | reverse | json }}"),
		error: await engine.parseAndRender("{% if %}").catch((err) => err.name),
	};
}
