import { computed, createSSRApp, defineComponent, h, inject, provide, ref, resolveComponent } from "vue";
import { renderToString, renderToWebStream } from "vue/server-renderer";

const Item = defineComponent({
	props: { name: String },
	async setup(props, { slots }) {
		const theme = inject("theme");
		await Promise.resolve();
		const upper = computed(() => props.name.toUpperCase());
		return () => h("li", { class: [theme, { long: props.name.length > 3 }], style: { color: "red" } }, [upper.value, " & <b>", slots.default?.()]);
	},
});
const App = {
	components: { Item },
	setup() {
		provide("theme", "dark");
		const names = ref(["ada", "grace"]);
		return () => h("ul", { onClick() {} }, names.value.map((name) => h(resolveComponent("Item"), { key: name, name }, { default: () => h("i", "slot") })));
	},
};

export default async function () {
	return {
		html: await renderToString(createSSRApp(App)),
		stream: await new Response(renderToWebStream(createSSRApp({ render: () => h("p", { innerHTML: "<b>x</b>" }) }))).text(),
		teleports: await (async () => {
			const ctx = {};
			const app = createSSRApp({ data: () => ({ n: 1 }), computed: { twice() { return this.n * 2; } }, render() { return h("p", this.twice); } });
			return renderToString(app, ctx);
		})(),
	};
}
