import nunjucks from "nunjucks";

class Memory extends nunjucks.Loader {
	constructor(files) {
		super();
		this.files = files;
	}
	getSource(name) {
		return { src: this.files[name], path: name, noCache: true };
	}
}

export default async function () {
	const env = new nunjucks.Environment(
		new Memory({
			"base.html": "<h1>{% block title %}base{% endblock %}</h1>{% block body %}{% endblock %}",
			"page.html": '{% extends "base.html" %}{% import "macros.html" as m %}{% block title %}{{ super() }}+{{ title }}{% endblock %}{% block body %}{% for k, v in map %}{{ loop.index }}{{ m.field(k, v) }}{% else %}none{% endfor %}{% endblock %}',
			"macros.html": '{% macro field(name, value="-") %}<{{ name }}={{ value | upper }}>{% endmacro %}',
		}),
		{ autoescape: true },
	);
	env.addFilter("twice", (s) => s + s);
	return {
		page: env.render("page.html", { title: "<t>", map: { a: "x", b: "y" } }),
		text: env.renderString('{{ "ab" | twice | safe }} {{ [3, 1, 2] | sort | join("-") }} {% set x = 5 %}{{ x if x > 3 else "no" }} {{ none }} {{ 7 // 2 }} {{ "%s" | replace("%s", "r") }}', {}),
		async: await new Promise((resolve, reject) => env.renderString("{{ a }}", { a: 1 }, (err, out) => (err ? reject(err) : resolve(out)))),
	};
}
