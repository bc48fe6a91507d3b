// Charges the card of an order. The code of a thrown error becomes a reason that the
// workflow's retry policy can name. An error without a code becomes
// CS_RUNTIME_EXCEPTION.
export default async function charge(event, ctx) {
  const order = event.input.json;
  if (order.card === "declined") {
    throw Object.assign(new Error("the bank declines the card"), { code: "CardDeclined" });
  }
  if (order.card === "busy" && event.cadence.attempt < 2) {
    throw Object.assign(new Error("the bank is busy"), { code: "BankBusy" });
  }
  // The workflow's id is the same in each attempt, so a retry does not charge twice.
  const receipt = `${event.cadence.workflowId}/${event.cadence.activityId}`;
  cs.log.info(`charged ${order.total}`, receipt, `attempt ${ctx.attempt}`);
  return { receipt, attempts: ctx.attempt };
}
