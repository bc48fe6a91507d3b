import * as cheerio from "cheerio";

export default async function () {
	const $ = cheerio.load('<ul id="fruits"><li class="apple">Apple</li><li class="pear">P&eacute;ar</li></ul><p data-x="1">hi <b>there</b>');
	$("li.apple").attr("title", 'a "quote"').after("<li>Plum</li>");
	return {
		text: $("#fruits li").map((i, el) => $(el).text()).get(),
		html: $.html(),
		nth: $("li:nth-child(2)").text(),
		data: $("p").data("x"),
		not: $("li:not([class])").length,
		extract: $.extract({ first: "li", all: ["li"], title: { selector: "li", value: "title" } }),
		xml: cheerio.load("<a><b/></a>", { xml: true }).xml(),
	};
}
