import { renderToReadableStream } from "react-dom/server";
import { Shop } from "./src/Shop.jsx";
import { loadReviews } from "./src/reviews.js";

export default {
  async fetch(request) {
    const name = new URL(request.url).searchParams.get("name") ?? "world";
    const stream = await renderToReadableStream(<Shop name={name} reviews={loadReviews()} />, {
      signal: request.signal,
      onError: (error) => request.signal.aborted || console.error(error),
    });
    // Crawlers do not run the script that fills in late parts: they wait for the whole page.
    if (/bot|crawler/i.test(request.headers.get("user-agent") ?? "")) await stream.allReady;
    return new Response(stream, { headers: { "content-type": "text/html; charset=utf-8" } });
  },
};
