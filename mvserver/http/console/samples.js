// The state of all queries, asked every two seconds while the page is seen, and the last half hour of it.

import {problem, rows} from "./session.js";

const EVERY_MS = 2000;
const MOST = 900;
const READY_EVERY = 5; // samples
const STATEMENT = "SELECT q.*, v.rows, v.bytes, v.lag_seconds FROM mv_catalog.queries q "
  + "LEFT JOIN mv_catalog.views v ON v.query_id = q.id ORDER BY q.sink, q.id";

export class Samples extends EventTarget {
  queries = null; // until the first sample
  #histories = new Map();
  #told;

  constructor(told) {
    super();
    this.#told = told;
  }

  async run() {
    for (let turn = 0; ; turn += 1) {
      if (!document.hidden) {
        try {
          this.#take(await rows(STATEMENT));
          if (turn % READY_EVERY === 0) {
            const reason = await problem();
            this.#told(reason ? `Views do not follow their sources now: ${reason}` : "");
          }
        } catch (error) {
          if (error.status === 401) return;
          this.#told(`The state of queries cannot be read: ${error.message}`);
          turn = -1; // so that the next good one clears these words
        }
      }
      await new Promise(resolve => setTimeout(resolve, EVERY_MS));
    }
  }

  #take(queries) {
    const now = Date.now() / 1000;
    const kept = new Map();
    for (const query of queries) {
      const history = this.#histories.get(query.id) ?? [];
      history.push({
        at: now, rate: query.rows_in_per_second, lag: query.lag_records, late: query.lag_seconds,
        fresh: query.freshness_ms === null ? null : query.freshness_ms / 1000,
      });
      if (history.length > MOST) history.shift();
      kept.set(query.id, history);
    }
    this.#histories = kept;
    this.queries = queries;
    this.dispatchEvent(new Event("sample"));
  }

  history(id) {
    return this.#histories.get(id) ?? [];
  }

  // Calls at once, where there is a sample, and after each; until the signal.
  each(act, signal) {
    this.addEventListener("sample", act, {signal});
    if (this.queries) act();
  }
}
