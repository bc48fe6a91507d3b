import PQueue from "p-queue";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export default async function () {
	const queue = new PQueue({ concurrency: 2 });
	let running = 0;
	let most = 0;
	const order = [];
	const task = (n) => async () => {
		most = Math.max(most, ++running);
		await sleep(2);
		running--;
		order.push(n);
		return n;
	};
	queue.pause();
	const all = [queue.add(task(1)), queue.add(task(2), { priority: -1 }), queue.add(task(3), { priority: 5 })];
	const waiting = queue.size;
	queue.start();
	const values = await Promise.all(all);
	const failed = await queue.add(() => Promise.reject(new Error("no"))).catch((err) => err.message);
	const late = await new PQueue({ timeout: 5 }).add(() => sleep(1000)).catch((err) => err.name);
	const controller = new AbortController();
	const aborted = queue.add(() => sleep(1000), { signal: controller.signal }).catch((err) => err.name);
	controller.abort();
	await queue.onIdle().catch(() => {});
	return { values, most, waiting, first: order.includes(3), failed, late, aborted: await aborted, pending: queue.pending };
}
