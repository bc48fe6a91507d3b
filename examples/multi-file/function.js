import greetings from "./data/greetings.json";
import { pick } from "./lib/language.js";
import { greet } from "./lib/greet.ts";

export default function handle(event) {
  const wanted = event?.headers?.["accept-language"] ?? event?.language ?? "";
  const language = pick(wanted, Object.keys(greetings));
  const name = event?.queryStringParameters?.name ?? event?.name ?? "world";
  return { language, greeting: greet(greetings[language], name) };
}
