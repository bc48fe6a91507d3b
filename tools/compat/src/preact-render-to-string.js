import { Fragment, createContext, h } from "preact";
import { Suspense, lazy } from "preact/compat";
import { useContext, useMemo, useState } from "preact/hooks";
import { renderToString, renderToStringAsync } from "preact-render-to-string";

const Theme = createContext("light");

function Item({ name }) {
	const [n] = useState(name.length);
	return h("li", { class: useContext(Theme), style: { color: "red" }, "data-n": n }, useMemo(() => name.toUpperCase(), [name]), " & <b>");
}

export default async function () {
	const Late = lazy(async () => {
		await new Promise((resolve) => setTimeout(resolve, 5));
		return { default: () => h("p", null, "loaded") };
	});
	return {
		html: renderToString(h(Theme.Provider, { value: "dark" }, h(Fragment, null, ["ada", "grace"].map((name) => h(Item, { key: name, name })), h("input", { value: 'a"b', checked: true })))),
		svg: renderToString(h("svg", null, h("path", { strokeWidth: 2 }))),
		late: await renderToStringAsync(h("main", null, h(Suspense, { fallback: "waiting" }, h(Late)))),
	};
}
