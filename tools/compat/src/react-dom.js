import { renderToReadableStream, renderToStaticMarkup, renderToString } from "react-dom/server";
import { Suspense, createContext, createElement as h, use, useContext, useId, useMemo, useState } from "react";

const Theme = createContext("light");

function Item({ name }) {
	const [count] = useState(() => name.length);
	const id = useId();
	const upper = useMemo(() => name.toUpperCase(), [name]);
	return h("li", { className: useContext(Theme), style: { color: "red", marginTop: 3 }, "data-n": count, htmlFor: id, onClick() {} }, upper, " & <b>");
}

function App({ names }) {
	return h(Theme, { value: "dark" }, h("ul", null, names.map((name) => h(Item, { key: name, name }))), h("input", { defaultValue: 'a"b', disabled: true }), h("p", { dangerouslySetInnerHTML: { __html: "<i>raw</i>" } }));
}

function Late({ promise }) {
	return h("p", null, use(promise));
}

export default async function () {
	const app = () => h(App, { names: ["ada", "grace"] });
	const promise = new Promise((resolve) => setTimeout(resolve, 5, "loaded"));
	const stream = await renderToReadableStream(h("main", null, h(Suspense, { fallback: "waiting" }, h(Late, { promise }))));
	await stream.allReady;
	const text = await new Response(stream).text();
	let failed;
	try {
		renderToString(h(() => {
			throw new Error("in render");
		}));
	} catch (err) {
		failed = err.message;
	}
	return { html: renderToString(app()), markup: renderToStaticMarkup(app()), stream: [text.includes("<p>loaded</p>"), text.startsWith("<main>")], failed };
}
