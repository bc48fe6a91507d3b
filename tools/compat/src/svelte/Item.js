import * as $ from 'svelte/internal/server';

export default function Item($$renderer, $$props) {
	$$renderer.component(($$renderer) => {
		let { name, index, extra } = $$props;
		let upper = name.toUpperCase();

		$$renderer.push(`<li${$.attr('data-index', index)}${$.attr_style('', { color: 'blue' })}>${$.escape(upper)} &amp; &lt;b>`);
		extra?.($$renderer);
		$$renderer.push(`<!----></li>`);
	});
}
