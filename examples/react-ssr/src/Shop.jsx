import { Suspense, use } from "react";

/** The page. It is sent at once; the reviews follow when they are loaded. */
export function Shop({ name, reviews }) {
  return (
    <html lang="en">
      <head>
        <title>Cups</title>
      </head>
      <body>
        <h1>Hello, {name}!</h1>
        <Suspense fallback={<p>Loading the reviews …</p>}>
          <Reviews reviews={reviews} />
        </Suspense>
      </body>
    </html>
  );
}

function Reviews({ reviews }) {
  return (
    <ul>
      {use(reviews).map(({ author, text }) => (
        <li key={author}>
          <b>{author}</b>: {text}
        </li>
      ))}
    </ul>
  );
}
