// Which parts of a graph are drawn as one block. The nodes stand in a line, each after those it reads, with each region
// in one piece; a fold is a stretch of that line, so that a path that leaves a fold never comes back.
'use strict';

headrace.foldLimits = {visible: 300, items: 40};

// Returns the numbers 0 to count - 1, each after its predecessors; those in a cycle come where the first of them would.
headrace.inOrder = (count, edges) => {
  const next = Array.from({length: count}, () => []);
  const missing = new Array(count).fill(0);
  for (const [from, to] of edges) {
    if (from === to) continue;
    next[from].push(to);
    ++missing[to];
  }
  const order = [], done = new Array(count).fill(false);
  // Goes deep first, so that branches stay together.
  for (let start = 0; start < count; ++start) {
    const open = missing[start] === 0 && !done[start] ? [start] : [];
    while (open.length > 0) {
      const one = open.pop();
      done[one] = true;
      order.push(one);
      for (const to of next[one].reverse()) {
        if (--missing[to] === 0 && !done[to]) open.push(to);
      }
    }
  }
  for (let i = 0; i < count; ++i) {
    if (!done[i]) order.push(i);
  }
  return order;
};

// Returns units, each a list of nodes in order: the members of a region together, every other node alone.
headrace.unitsOf = ({nodes, edges, blocks}) => {
  const unitOf = nodes.map((node, i) => node.block === null ? blocks.length + i : node.block);
  const units = headrace.inOrder(blocks.length + nodes.length, edges.map(({from, to}) => [unitOf[from], unitOf[to]]));
  const members = new Map(units.map((unit) => [unit, []]));
  for (const i of headrace.inOrder(nodes.length, edges.map(({from, to}) => [from, to]))) members.get(unitOf[i]).push(i);
  return units.map((unit) => ({block: unit < blocks.length ? unit : null, members: members.get(unit)}))
    .filter((unit) => unit.members.length > 0);
};

// Counts for each place between two nodes of the line the values that cross it: there a fold had best begin.
headrace.crossings = (line, edges) => {
  const at = new Map(line.map((node, i) => [node, i]));
  const last = new Map();
  for (const {from, output, to} of edges) {
    const key = `${from}.${output}`;
    last.set(key, Math.max(last.get(key) ?? 0, at.get(to)));
  }
  const changes = new Array(line.length + 2).fill(0);
  for (const [key, end] of last) {
    const begin = at.get(parseInt(key, 10)) + 1;
    if (end < begin) continue;
    ++changes[begin];
    --changes[end + 1];
  }
  for (let i = 1; i < changes.length; ++i) changes[i] += changes[i - 1];
  return changes;  // changes[i]: before the node at i
};

// Groups items into at most `items` folds of similar size, which begin where few values cross.
headrace.grouped = (items, crossings, makeFold) => {
  const limit = headrace.foldLimits.items;
  if (items.length <= limit) return items;
  const size = Math.max(8, Math.min(limit, Math.ceil(items.length / limit)));
  const folds = [];
  for (let begin = 0; begin < items.length;) {
    let end = Math.min(items.length, begin + size);
    const farthest = Math.min(items.length, begin + Math.ceil(size * 1.5));
    for (let i = begin + Math.ceil(size / 2); i <= farthest; ++i) {
      const cost = (place) => place >= items.length ? 0 : crossings[items[place].begin];
      if (cost(i) < cost(end)) end = i;
    }
    folds.push(makeFold(items.slice(begin, end)));
    begin = end;
  }
  return headrace.grouped(folds, crossings, makeFold);
};

// Returns the tree of folds: {children, parent, block, begin, nodes} and leaves {node, begin, parent}. `begin` is a
// place of the line. A fold with a block is a region; without `boxes` a region of one node is that node.
headrace.foldTree = (graph, boxes) => {
  const units = headrace.unitsOf(graph);
  const line = units.flatMap((unit) => unit.members);
  const crossings = headrace.crossings(line, graph.edges);
  let place = 0, count = 0;
  const makeFold = (children, block = null) => {
    const fold = {id: count++, children, block, begin: children[0].begin, nodes: [], parent: null};
    for (const child of children) {
      child.parent = fold;
      fold.nodes.push(...(child.children ? child.nodes : [child.node]));
    }
    return fold;
  };
  const parts = units.map(({block, members}) => {
    const leaves = members.map((node) => ({node, begin: place++, parent: null}));
    return block === null || (!boxes && leaves.length === 1) ? leaves[0] : makeFold(headrace.grouped(leaves, crossings, makeFold), block);
  });
  const root = makeFold(headrace.grouped(parts, crossings, makeFold));
  return {root, line};
};

// The folds that are open. At most `visible` blocks are drawn at once: opening a fold closes those opened longest ago.
headrace.Folding = class {
  constructor(tree) {
    this.tree = tree;
    this.reset();
  }

  // Opens all, if there is room; otherwise folds from the top, as far as there is room.
  reset() {
    this.opened = [this.tree.root];
    const waiting = [...this.tree.root.children];
    for (let i = 0; i < waiting.length; ++i) {
      const fold = waiting[i];
      if (!fold.children || this.visible().length + fold.children.length > headrace.foldLimits.visible) continue;
      if (this.tree.line.length > headrace.foldLimits.visible && fold.parent !== this.tree.root) continue;
      if (this.tree.line.length > headrace.foldLimits.visible && this.visible().length > 60) continue;
      this.opened.push(fold);
      waiting.push(...fold.children);
    }
  }

  isOpen(fold) { return this.opened.includes(fold); }

  // Returns the leaves and closed folds that are drawn, in order.
  visible() {
    const shown = [], waiting = [this.tree.root], open = new Set(this.opened);
    while (waiting.length > 0) {
      const one = waiting.pop();
      if (one.children && open.has(one)) {
        for (let i = one.children.length; i-- > 0;) waiting.push(one.children[i]);
      } else {
        shown.push(one);
      }
    }
    return shown;
  }

  // Opens a fold and all around it.
  open(fold) {
    const path = [];
    for (let one = fold; one !== null; one = one.parent) path.unshift(one);
    this.opened = this.opened.filter((one) => !path.includes(one)).concat(path);
    for (let i = 0; i < this.opened.length && this.visible().length > headrace.foldLimits.visible;) {
      if (path.includes(this.opened[i])) ++i;
      else this.close(this.opened[i]);
    }
  }

  // Closes a fold and all inside.
  close(fold) {
    const isInside = (one) => {
      for (; one !== null; one = one.parent) {
        if (one === fold) return true;
      }
      return false;
    };
    this.opened = this.opened.filter((one) => !isInside(one));
  }
};
