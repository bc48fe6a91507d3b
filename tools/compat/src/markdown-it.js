import MarkdownIt from "markdown-it";

export default async function () {
	const md = new MarkdownIt({ html: false, linkify: true, typographer: true });
	return {
		html: md.render('# Title\n\n"quoted" -- text... (c)\n\n1. one\n2. two\n   - deep\n\nhttps://example.com/ä and <b>\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n![alt](/x.png "t")\n'),
		inline: md.renderInline("**ü**_n_ `c`"),
		tokens: md.parse("> a\n\n***\n", {}).map((t) => t.type),
		entities: md.renderInline("&copy; &#x41; &nope;"),
	};
}
