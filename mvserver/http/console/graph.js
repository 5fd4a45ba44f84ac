// Where the nodes of a graph without cycles are drawn: in layers from left to right, each as near to its neighbours as
// its layer allows. Edges that would close a cycle are drawn, but count for nothing.

export const WIDTH = 190;
export const HEIGHT = 46;
const GAP_X = 70;
const GAP_Y = 16;
const SWEEPS = 6;

// "nodes" are ids, "edges" pairs of them. Gives the places of nodes, the points of each edge, and the size of it all.
export function layout(nodes, edges) {
  const known = new Set(nodes);
  const forward = acyclic(nodes, edges.filter(([from, to]) => known.has(from) && known.has(to) && from !== to));
  const layerOf = layers(nodes, forward);
  const columns = [];
  const put = (id, layer) => (columns[layer] ??= []).push(id);
  for (const id of nodes) put(id, layerOf.get(id));
  // an edge over several layers gets a place in each of them, so that it passes between nodes
  const near = new Map();
  const join = (a, b) => {
    near.set(a, [...(near.get(a) ?? []), b]);
    near.set(b, [...(near.get(b) ?? []), a]);
  };
  const chains = forward.map(([from, to]) => {
    const chain = [from];
    for (let layer = layerOf.get(from) + 1; layer < layerOf.get(to); layer += 1) {
      const id = Symbol("bend");
      put(id, layer);
      chain.push(id);
    }
    chain.push(to);
    for (let at = 1; at < chain.length; at += 1) join(chain[at - 1], chain[at]);
    return chain;
  });
  const middle = order(columns, near);
  const x = layer => layer * (WIDTH + GAP_X);
  const places = new Map(nodes.map(id => [id, {x: x(layerOf.get(id)), y: middle.get(id) - HEIGHT / 2}]));
  const lines = chains.map(chain => ({
    from: chain[0], to: chain.at(-1),
    points: chain.flatMap((id, at) => {
      const left = x(layerOf.get(chain[0]) + at);
      const y = middle.get(id);
      if (at === 0) return [[left + WIDTH, y]];
      return at === chain.length - 1 ? [[left, y]] : [[left, y], [left + WIDTH, y]];
    }),
  }));
  const bottom = Math.max(0, ...middle.values()) + HEIGHT / 2;
  return {places, lines, width: columns.length ? x(columns.length - 1) + WIDTH : 0, height: bottom};
}

function acyclic(nodes, edges) {
  const out = new Map(nodes.map(id => [id, []]));
  for (const edge of edges) out.get(edge[0]).push(edge);
  const state = new Map();
  const kept = [];
  for (const root of nodes) {
    if (state.has(root)) continue;
    const stack = [{id: root, at: 0}];
    state.set(root, "open");
    while (stack.length) {
      const top = stack.at(-1);
      const edge = out.get(top.id)[top.at];
      top.at += 1;
      if (!edge) {
        state.set(top.id, "done");
        stack.pop();
      } else if (state.get(edge[1]) !== "open") {
        kept.push(edge);
        if (!state.has(edge[1])) {
          state.set(edge[1], "open");
          stack.push({id: edge[1], at: 0});
        }
      }
    }
  }
  return kept;
}

function layers(nodes, edges) {
  const waits = new Map(nodes.map(id => [id, 0]));
  const out = new Map(nodes.map(id => [id, []]));
  for (const [from, to] of edges) {
    waits.set(to, waits.get(to) + 1);
    out.get(from).push(to);
  }
  const found = new Map(nodes.map(id => [id, 0]));
  const ready = nodes.filter(id => waits.get(id) === 0);
  for (const id of ready)
    for (const next of out.get(id)) {
      found.set(next, Math.max(found.get(next), found.get(id) + 1));
      waits.set(next, waits.get(next) - 1);
      if (waits.get(next) === 0) ready.push(next);
    }
  return found;
}

function order(columns, near) {
  const middle = new Map();
  const step = HEIGHT + GAP_Y;
  const spread = column => column.forEach((id, at) => middle.set(id, at * step + HEIGHT / 2));
  columns.forEach(spread);
  const wish = id => {
    const others = (near.get(id) ?? []).map(each => middle.get(each));
    return others.length ? others.reduce((sum, y) => sum + y, 0) / others.length : middle.get(id);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1)
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      const wishes = new Map(column.map(id => [id, wish(id)]));
      column.sort((a, b) => wishes.get(a) - wishes.get(b));
      let free = -Infinity;
      for (const id of column) {
        const y = Math.max(free, wishes.get(id));
        middle.set(id, y);
        free = y + step;
      }
    }
  const top = Math.min(...middle.values(), Infinity) - HEIGHT / 2;
  for (const [id, y] of middle) middle.set(id, y - top);
  return middle;
}
