import { createDraft, current, enableMapSet, enablePatches, finishDraft, isDraft, produce, produceWithPatches, applyPatches } from "immer";

enablePatches();
enableMapSet();

export default async function () {
	const base = { user: { name: "Ada", tags: ["a"] }, map: new Map([["x", { n: 1 }]]), set: new Set([1]) };
	const [next, patches, inverse] = produceWithPatches(base, (d) => {
		d.user.tags.push("b");
		d.user.name = "Grace";
		d.map.get("x").n++;
		d.set.add(2);
	});
	const draft = createDraft(base);
	draft.user.name = "Lin";
	let frozen = false;
	try {
		next.user.name = "x";
	} catch (err) {
		frozen = err instanceof TypeError;
	}
	return {
		next: [next.user, [...next.map], [...next.set]],
		base: [base.user, [...base.map]],
		shared: produce(base, (d) => void (d.user.name = "z")).map === base.map,
		patches,
		inverse: applyPatches(next, inverse).user,
		draft: [isDraft(draft), current(draft).user.name, finishDraft(draft).user.name],
		frozen,
	};
}
