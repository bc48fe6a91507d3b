import { Subject, concatMap, debounceTime, delay, firstValueFrom, from, fromEvent, groupBy, interval, lastValueFrom, map, mergeMap, of, reduce, retry, scan, take, throwError, timeout, timer, toArray, zip } from "rxjs";

export default async function () {
	const subject = new Subject();
	const seen = [];
	const sub = subject.pipe(scan((a, b) => a + b, 0)).subscribe((v) => seen.push(v));
	[1, 2, 3].forEach((n) => subject.next(n));
	sub.unsubscribe();
	subject.next(4);
	let attempts = 0;
	const target = new EventTarget();
	const event = firstValueFrom(fromEvent(target, "ping").pipe(map((e) => e.type)));
	target.dispatchEvent(new Event("ping"));
	return {
		seen,
		grouped: await lastValueFrom(from([1, 2, 3, 4, 5]).pipe(groupBy((n) => n % 2), mergeMap((g) => g.pipe(reduce((a, b) => a + b))), toArray())),
		ticks: await lastValueFrom(interval(2).pipe(take(3), toArray())),
		ordered: await lastValueFrom(of(3, 1, 2).pipe(concatMap((n) => of(n).pipe(delay(n))), toArray())),
		retried: await lastValueFrom(of(1).pipe(mergeMap(() => (++attempts < 3 ? throwError(() => new Error("no")) : of(attempts))), retry(5))),
		late: await firstValueFrom(timer(1000).pipe(timeout(5))).catch((err) => err.name),
		zipped: await lastValueFrom(zip(of(1, 2), of("a", "b")).pipe(toArray())),
		debounced: await lastValueFrom(of(1, 2, 3).pipe(debounceTime(2))),
		event: await event,
	};
}
