// Sends the request of a form and shows the answer below it. The API key stays in the input
// of this page: it is neither stored nor part of an address.
"use strict";
const key = document.getElementById("key");
for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { path, body } = form.elements;
    const output = form.querySelector("output");
    const headers = {};
    if (key.value) headers.Authorization = "Bearer " + key.value;
    if (body && body.value) headers["Content-Type"] = "application/json";
    output.textContent = "…";
    try {
      // Relative to this page, since a proxy may serve the API below a prefix.
      const answer = await fetch(new URL(".." + path.value, location.href), {
        method: form.dataset.method, headers, credentials: "omit", body: (body && body.value) || undefined,
      });
      const text = await answer.text();
      output.textContent = answer.status + " " + answer.statusText + "\n" + text;
    } catch (error) {
      output.textContent = "The request was not answered: " + error.message;
    }
  });
}
