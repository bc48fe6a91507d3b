import { render } from "svelte/server";
import App from "./svelte/App.js";

export default async function () {
	const { head, body } = render(App, { props: { title: "<T>", names: ["ada", "grace"], html: "<i>raw</i>" } });
	return { head, body };
}
