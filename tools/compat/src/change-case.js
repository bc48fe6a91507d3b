import * as cases from "change-case";

export default async function () {
	const out = {};
	for (const name of ["camelCase", "capitalCase", "constantCase", "dotCase", "kebabCase", "noCase", "pascalCase", "pathCase", "sentenceCase", "snakeCase", "trainCase"]) {
		out[name] = ["testString", "HTTPServer v2Beta", "élan-vital Straße", "foo_bar.baz12"].map((s) => cases[name](s));
	}
	return { ...out, split: cases.split("helloWorldXMLParser2Go"), prefix: cases.camelCase("_private_name", { prefixCharacters: "_" }) };
}
