// Works off the items of a job. The queue repeats an attempt that failed or whose server died;
// the checkpoint keeps it from starting over.

interface Order {
  items: string[];
}

export default async function handle(event: Order | null) {
  const items = event?.items ?? [];
  let done = cs.job.id === undefined ? 0 : (cs.job.lastCheckpoint<number>() ?? 0);
  if (done > 0) cs.log.info({ resumed: done });
  for (; done < items.length; done++) {
    await work(items[done]);
    if (cs.job.id !== undefined) { // undefined if the function was called without a queue
      await cs.job.checkpoint(done + 1);
      await cs.job.progress({ current: done + 1, total: items.length });
    }
  }
  return { done };
}

// work must be safe to repeat: an item whose checkpoint was lost is worked on again.
async function work(item: string): Promise<void> {
  await cs.kv.set("item:" + item, { done: true });
}
