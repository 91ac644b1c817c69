// Requests to the lab's own server, and nowhere else.

async function parsed(response) {
  let content = null;
  try {
    content = await response.json();
  } catch {
    throw new Error(`The lab answered with an error (${response.status}).`);
  }
  if (!response.ok) throw new Error(content.error || `The lab answered with an error (${response.status}).`);
  return content;
}

const reached = (promise) =>
  promise.catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Error("The lab does not answer. Is `ebql lab` still running?");
  });

export const get = async (path, parameters = {}, signal = undefined) =>
  parsed(await reached(fetch(`${path}?${new URLSearchParams(parameters)}`, { signal })));

export const post = async (path, body = "", parameters = {}, signal = undefined) =>
  parsed(await reached(fetch(`${path}?${new URLSearchParams(parameters)}`, { method: "POST", body, signal })));

/** Listen to named events; returns a function that stops listening, and with it the work on the server. */
export function listen(path, parameters, handlers, { again = false } = {}) {
  const source = new EventSource(`${path}?${new URLSearchParams(parameters)}`);
  for (const [name, handle] of Object.entries(handlers)) {
    if (name === "lost") continue;
    source.addEventListener(name, (event) => {
      const content = JSON.parse(event.data);
      if (name === "done" || name === "refused") source.close();
      handle(content);
    });
  }
  source.addEventListener("error", () => {
    if (!again) source.close();
    handlers.lost?.();
  });
  return () => source.close();
}

/** Call `work(signal)` soon, once for many calls; an answer that has been overtaken is dropped. */
export function latest(work, onError, delay = 60) {
  let timer = 0;
  let running = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      running?.abort();
      running = new AbortController();
      try {
        await work(running.signal);
        onError(null);
      } catch (error) {
        if (error.name !== "AbortError") onError(error.message);
      }
    }, delay);
  };
}
