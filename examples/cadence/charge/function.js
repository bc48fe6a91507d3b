// Charges an order's card. What it throws with a code is a reason that the workflow's
// retry policy can name; whatever else it throws is CS_RUNTIME_EXCEPTION.
export default async function charge(event, ctx) {
  const order = event.input.json;
  if (order.card === "declined") {
    throw Object.assign(new Error("the bank declines the card"), { code: "CardDeclined" });
  }
  if (order.card === "busy" && event.cadence.attempt < 2) {
    throw Object.assign(new Error("the bank is busy"), { code: "BankBusy" });
  }
  // A retry must not charge twice: the workflow's id is the same in each attempt.
  const receipt = `${event.cadence.workflowId}/${event.cadence.activityId}`;
  cs.log.info(`charged ${order.total}`, receipt, `attempt ${ctx.attempt}`);
  return { receipt, attempts: ctx.attempt };
}
