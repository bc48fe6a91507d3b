import { DomUtils, Parser, parseDocument, parseFeed } from "htmlparser2";

export default async function () {
	const events = [];
	const parser = new Parser({
		onopentag: (name, attributes) => events.push(["open", name, attributes]),
		ontext: (text) => events.push(["text", text]),
		onclosetag: (name) => events.push(["close", name]),
		oncomment: (text) => events.push(["comment", text]),
	}, { decodeEntities: true });
	parser.write("<p class=a>x &lt;");
	parser.write(" y<br><!-- c --><scr");
	parser.end("ipt>if (a < b) {}</script>&copy;");
	const doc = parseDocument("<div><a href='/x'>one</a><a>two</a></div>");
	return {
		events,
		links: DomUtils.getElementsByTagName("a", doc).map((a) => [a.attribs.href ?? null, DomUtils.textContent(a)]),
		html: DomUtils.getOuterHTML(doc),
		feed: parseFeed("<rss><channel><title>T</title><item><title>I</title><link>https://a.b</link></item></channel></rss>"),
	};
}
