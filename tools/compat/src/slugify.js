import slugify from "slugify";

export default async function () {
	return [slugify("Some Text! with (stuff) & more"), slugify("Ärger über Öl, ß", { lower: true, locale: "de" }), slugify("Привет мир"), slugify("unicode ♥ is ☢"), slugify("a*b c", { replacement: "_", remove: /[*]/g }), slugify("C++ & C#", { strict: true })];
}
