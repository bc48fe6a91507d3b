import * as $ from 'svelte/internal/server';
import Item from "./Item.js";

export default function App($$renderer, $$props) {
	$$renderer.component(($$renderer) => {
		let { title, names = [], html } = $$props;
		let count = $.derived(() => names.length);

		$.head('n50uah', $$renderer, ($$renderer) => {
			$$renderer.title(($$renderer) => {
				$$renderer.push(`<title>${$.escape(title)}</title>`);
			});
		});

		$$renderer.push(`<h1${$.attr_class('svelte-n50uah', void 0, { 'many': count() > 1 })}>${$.escape(title)} (${$.escape(count())})</h1> `);

		if (count() > 0) {
			$$renderer.push(`<!--[0--><ul>`);

			const each_array = $.ensure_array_like(names);

			if (each_array.length !== 0) {
				$$renderer.push('<!--[-->');

				for (let i = 0, $$length = each_array.length; i < $$length; i++) {
					let name = each_array[i];

					{
						function extra($$renderer) {
							$$renderer.push(`<b>!</b>`);
						}

						Item($$renderer, { name, index: i, extra, $$slots: { extra: true } });
					}
				}
			} else {
				$$renderer.push(`<!--[!--><li>none</li>`);
			}

			$$renderer.push(`<!--]--></ul>`);
		} else {
			$$renderer.push('<!--[-1-->');
		}

		$$renderer.push(`<!--]--> ${$.html(html)} `);

		$.await(
			$$renderer,
			Promise.resolve(1),
			() => {
				$$renderer.push(`<p>waiting</p>`);
			},
			(value) => {
				$$renderer.push(`<p>${$.escape(value)}</p>`);
			}
		);

		$$renderer.push(`<!--]-->`);
	});
}
