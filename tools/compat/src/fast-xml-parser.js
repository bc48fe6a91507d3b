import { XMLBuilder, XMLParser, XMLValidator } from "fast-xml-parser";

export default async function () {
	const xml = '<?xml version="1.0"?><order id="7"><!-- c --><item n="1">A &amp; B</item><item n="2"><![CDATA[<x>]]></item><empty/><price>1.50</price></order>';
	const parser = new XMLParser({ ignoreAttributes: false, attributeNamePrefix: "@", cdataPropName: "cdata" });
	const builder = new XMLBuilder({ ignoreAttributes: false, attributeNamePrefix: "@", format: true });
	return {
		parsed: parser.parse(xml),
		ordered: new XMLParser({ preserveOrder: true }).parse("<a><b>1</b>t<b/></a>"),
		built: builder.build({ a: { "@x": "1 & 2", b: ["é", { c: "<" }] } }),
		valid: XMLValidator.validate("<a><b></a>").err,
	};
}
