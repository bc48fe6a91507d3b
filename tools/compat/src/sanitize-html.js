import sanitize from "sanitize-html";

export default async function () {
	return {
		plain: sanitize('<p onclick="x()">hi <script>alert(1)</script><b>there</b><a href="javascript:alert(1)">a</a><a href="https://a.b">b</a></p>'),
		custom: sanitize('<img src="x.png" onerror="x"><h1 style="color: red; position: fixed">t</h1>', {
			allowedTags: ["img", "h1"],
			allowedAttributes: { img: ["src"], h1: ["style"] },
			allowedStyles: { "*": { color: [/^red$/] } },
		}),
		text: sanitize("a < b & <i>c</i>", { allowedTags: [] }),
		transformed: sanitize("<ol><li>x</li></ol>", { allowedTags: ["ul", "li"], transformTags: { ol: "ul" } }),
	};
}
