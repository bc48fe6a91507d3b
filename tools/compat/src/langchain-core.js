import { HumanMessage, SystemMessage, AIMessage, trimMessages } from "@langchain/core/messages";
import { JsonOutputParser, StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate, PromptTemplate } from "@langchain/core/prompts";
import { RunnableLambda, RunnableParallel, RunnablePassthrough } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { z } from "zod";

export default async function () {
	const prompt = ChatPromptTemplate.fromMessages([["system", "You are {role}."], ["human", "{question}"]]);
	const chain = prompt.pipe(new FakeListChatModel({ responses: ["hello"] })).pipe(new StringOutputParser());
	const parts = [];
	for await (const part of await prompt.pipe(new FakeListChatModel({ responses: ["abc"] })).pipe(new StringOutputParser()).stream({ role: "x", question: "y" })) parts.push(part);
	const parallel = RunnableParallel.from({ n: new RunnableLambda({ func: (x) => x.n + 1 }), all: new RunnablePassthrough() });
	const add = tool(({ a, b }) => String(a + b), { name: "add", description: "adds", schema: z.object({ a: z.number(), b: z.number() }) });
	const messages = [new SystemMessage("s"), new HumanMessage("one two"), new AIMessage("three"), new HumanMessage("four")];
	return {
		formatted: (await prompt.formatMessages({ role: "a poet", question: "why?" })).map((m) => [m.getType(), m.content]),
		text: await PromptTemplate.fromTemplate("{a} {{b}}").format({ a: 1 }),
		chain: await chain.invoke({ role: "x", question: "y" }),
		batch: await chain.batch([{ role: "x", question: "y" }]),
		parts,
		parallel: await parallel.invoke({ n: 1 }),
		json: await new JsonOutputParser().parse('```json\n{"a": [1]}\n```'),
		tool: await add.invoke({ a: 1, b: 2 }),
		trimmed: (await trimMessages(messages, { maxTokens: 2, tokenCounter: (m) => m.length, strategy: "last", includeSystem: true })).map((m) => m.content),
	};
}
