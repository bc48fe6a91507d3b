import { Marked } from "marked";

export default async function () {
	const marked = new Marked({ gfm: true });
	marked.use({ renderer: { heading: ({ tokens, depth }) => `<h${depth} class="x">${tokens.map((t) => t.raw).join("")}</h${depth}>\n` } });
	return {
		html: marked.parse("# Title\n\n- [x] done\n- *em* **strong** `code`\n\n| a | b |\n|---|:-:|\n| 1 | ~~2~~ |\n\n```js\nif (a < b) {}\n```\n\n> quote https://example.com\n"),
		tokens: marked.lexer("a [b](c 'd')\n\n1. x").map((t) => t.type),
		inline: marked.parseInline("**é** _ü_ <b>"),
		async: await marked.parse("*x*", { async: true }),
	};
}
