import { setTimeout as sleep } from "node:timers/promises";

/** Loads the reviews. It stands for a slow query. */
export async function loadReviews() {
  await sleep(200);
  return [
    { author: "Ada", text: "It holds tea." },
    { author: "Grace", text: "5 < 6 cups, but still." },
  ];
}
