// The page of a graph: blocks for ops and folded parts, boxes for regions, edges with their bytes, and what is known of
// the part that is selected. Its data is the JSON of `headrace explain` or of a program of `headrace inspect`.
'use strict';

headrace.GraphPage = class {
  constructor(graph, rows, facts) {
    this.graph = graph;
    this.rows = rows;
    this.facts = facts;
    this.tree = headrace.foldTree(graph, facts.boxes);
    this.folding = new headrace.Folding(this.tree);
    this.leaf = new Map();
    const waiting = [this.tree.root];
    while (waiting.length > 0) {
      const one = waiting.pop();
      if (one.children) waiting.push(...one.children);
      else this.leaf.set(one.node, one);
    }
    this.readers = graph.nodes.map(() => []);
    this.writers = graph.nodes.map(() => []);
    for (const edge of graph.edges) {
      this.readers[edge.from].push(edge);
      this.writers[edge.to].push(edge);
    }
    this.slowest = Math.max(0, ...graph.nodes.map((node) => node.seconds ?? 0));
    this.setColours();
    this.build();
    this.draw();
    this.showAll();
    this.describeAll();
    document.getElementById('page').dataset.drawn = String(Math.round(performance.now()));  // milliseconds
  }

  setColours() {
    this.colours = new Map([['native', headrace.nativeColour]]);
    for (const node of this.graph.nodes) {
      if (node.backend === null || this.colours.has(node.backend)) continue;
      this.colours.set(node.backend, headrace.colours[(this.colours.size - 1) % headrace.colours.length]);
    }
  }

  // ---- the frame

  build() {
    const {element, shape} = headrace;
    this.scene = shape('g');
    const arrow = shape('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8,
      markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto'}, shape('path', {d: 'M0 0 L8 4 L0 8 z', class: 'arrow'}));
    this.drawing = shape('svg', {id: 'drawing', role: 'img', 'aria-label': 'the graph'},
      shape('defs', {}, arrow), this.scene);
    this.controls = headrace.panZoom(this.drawing, this.scene);
    this.details = element('aside', {id: 'details'});
    const page = document.getElementById('page');
    page.append(this.header(), element('main', {}, this.drawing, this.details));
    document.addEventListener('keydown', (event) => this.onKey(event));
  }

  header() {
    const {element} = headrace;
    const button = (id, text, title, click) => element('button', {id, title, type: 'button', on: {click}}, text);
    this.search = element('input', {id: 'search', type: 'search', placeholder: 'Find an op by its name',
      autocomplete: 'off', 'aria-label': 'find an op by its name', on: {
        input: () => this.find(),
        keydown: (event) => { if (event.key === 'Enter') this.nextFound(); },
      }});
    this.found = element('span', {id: 'found', role: 'status'});
    return element('header', {},
      element('h1', {}, document.title), this.legend(),
      element('div', {class: 'tools'}, this.search, this.found,
        button('out', '\u2212', 'Zoom out', () => this.controls.zoom(1 / 1.4)),
        button('in', '+', 'Zoom in', () => this.controls.zoom(1.4)),
        button('fit', 'Fit', 'Show all of the graph', () => this.showWhole()),
        button('fold', 'Fold', 'Fold as at first', () => this.refold())));
  }

  legend() {
    const {element, shape} = headrace;
    const counts = new Map();
    for (const {backend} of this.graph.nodes) {
      if (backend !== null) counts.set(backend, (counts.get(backend) ?? 0) + 1);
    }
    const items = [...counts].map(([backend, count]) => {
      const [line, fill] = this.colours.get(backend);
      return element('li', {}, shape('svg', {width: 14, height: 14, 'aria-hidden': 'true'},
        shape('rect', {x: 1, y: 1, width: 12, height: 12, rx: 3, fill, stroke: line, 'stroke-width': 2})),
      `${backend}: ${headrace.count(count, this.facts.noun)}`);
    });
    return element('ul', {id: 'legend'}, items);
  }

  onKey(event) {
    if (event.target === this.search) return;
    const act = {'+': () => this.controls.zoom(1.4), '-': () => this.controls.zoom(1 / 1.4),
      '0': () => this.showWhole(), '/': () => this.search.focus(), Escape: () => this.describeAll()}[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  }

  // ---- what is drawn

  // Returns the blocks that are drawn, and which of them holds each node.
  blocks() {
    const shown = this.folding.visible();
    const holder = new Array(this.graph.nodes.length);
    shown.forEach((part, i) => {
      for (const node of part.children ? part.nodes : [part.node]) holder[node] = i;
    });
    return {shown, holder};
  }

  // Returns the edges between blocks: for each pair the tensors that pass, each once.
  edgesBetween(holder) {
    const between = new Map();
    for (const {from, output, to, border_seconds = 0} of this.graph.edges) {
      const a = holder[from], b = holder[to];
      if (a === b) continue;
      const key = `${a} ${b}`;
      if (!between.has(key)) between.set(key, {a, b, tensors: new Map(), isBorder: false, seconds: 0});
      const edge = between.get(key);
      if (!edge.tensors.has(`${from}.${output}`)) edge.seconds += border_seconds;  // converted once for a region
      edge.tensors.set(`${from}.${output}`, this.graph.nodes[from].outputs[output]);
      const [one, other] = [this.graph.nodes[from], this.graph.nodes[to]];
      if (one.block !== other.block) edge.isBorder = true;
    }
    return [...between.values()].map((edge) => ({...edge, label: this.edgeLabel(edge)}));
  }

  edgeLabel({tensors, isBorder, seconds}) {
    if (!isBorder) return null;
    let sum = 0;
    for (const {bytes} of tensors.values()) {
      if (bytes === null) return '? B';
      sum += bytes;
    }
    return headrace.bytes(sum) + (seconds > 0 ? `, layout ${headrace.cost(seconds)}` : '');
  }

  // Returns the innermost open region around a part, or null.
  regionAround(part) {
    for (let fold = part.parent; fold !== null; fold = fold.parent) {
      if (fold.block !== null) return fold;
    }
    return null;
  }

  layout(shown, between) {
    const graph = new dagre.graphlib.Graph({compound: true, multigraph: false});
    // "tight-tree" takes half the time of "network-simplex" for graphs of networks, which look the same.
    graph.setGraph({rankdir: 'TB', ranker: 'tight-tree', nodesep: 26, edgesep: 14, ranksep: 36, marginx: 16, marginy: 16});
    graph.setDefaultEdgeLabel(() => ({}));
    shown.forEach((part, i) => graph.setNode(`n${i}`, this.sizeOf(part)));
    const regions = new Map();
    shown.forEach((part, i) => {
      const region = this.regionAround(part);
      if (region === null) return;
      if (!regions.has(region)) graph.setNode(`r${region.id}`, {});
      regions.set(region, `r${region.id}`);
      graph.setParent(`n${i}`, `r${region.id}`);
    });
    for (const {a, b, label} of between) {
      graph.setEdge(`n${a}`, `n${b}`, label === null ? {} : {width: label.length * 6.4 + 8, height: 14, labelpos: 'c'});
    }
    dagre.layout(graph);
    return {graph, regions};
  }

  sizeOf(part) {
    const lines = this.linesOf(part);
    const longest = Math.max(lines[0].length * 8, ...lines.slice(1).map((line) => line.length * 6.3));
    return {width: Math.max(90, longest + 26), height: 12 + lines.length * 15};
  }

  // Returns the lines of text of a block: what it is, its name, its shape.
  linesOf(part) {
    const short = (text) => headrace.shorten(text, 34);
    if (part.children) return this.linesOfFold(part, short);
    const node = this.graph.nodes[part.node];
    const lines = [short(node.op === null ? node.name : node.op)];
    if (node.op !== null && node.name !== '' && node.name !== node.op) lines.push(short(node.name));
    const tensors = node.outputs.length > 0 ? node.outputs : node.inputs;
    if (tensors.length > 0) {
      const more = tensors.length > 1 ? ` +${tensors.length - 1}` : '';
      lines.push(short(headrace.tensor(tensors[0])) + more);
    }
    if (node.seconds !== null && node.seconds !== undefined) lines.push(headrace.seconds(node.seconds));
    return lines;
  }

  linesOfFold(fold, short) {
    const kinds = new Map();
    for (const i of fold.nodes) {
      const {op} = this.graph.nodes[i];
      if (op !== null) kinds.set(op, (kinds.get(op) ?? 0) + 1);
    }
    const most = [...kinds].sort((a, b) => b[1] - a[1]).slice(0, 2).map(([op, count]) => `${count} ${op}`);
    const lines = [`\u25b8 ${headrace.count(fold.nodes.length, this.facts.noun)}`];
    if (fold.block !== null) lines.push(short(this.graph.blocks[fold.block].region));
    lines.push(short(most.join(', ')));
    const seconds = this.secondsOf(fold.nodes);
    if (seconds !== null) lines.push(headrace.seconds(seconds));
    return lines;
  }

  secondsOf(nodes) {
    const times = nodes.map((i) => this.graph.nodes[i].seconds ?? null).filter((time) => time !== null);
    return times.length === 0 ? null : times.reduce((sum, time) => sum + time, 0);
  }

  draw() {
    const {shape} = headrace;
    const {shown, holder} = this.blocks();
    const between = this.edgesBetween(holder);
    const {graph, regions} = this.layout(shown, between);
    this.holder = holder;
    this.size = {x: 0, y: 0, width: graph.graph().width || 1, height: graph.graph().height || 1};
    this.places = shown.map((_, i) => graph.node(`n${i}`));
    this.scene.replaceChildren(
      shape('g', {class: 'regions'}, [...regions].map(([fold, name]) => this.drawRegion(fold, graph.node(name)))),
      shape('g', {class: 'edges'}, between.map((edge) => this.drawEdge(edge, graph.edge(`n${edge.a}`, `n${edge.b}`)))),
      shape('g', {class: 'blocks'}, shown.map((part, i) => this.drawBlock(part, this.places[i]))),
      shape('g', {class: 'names'}, [...regions].map(([fold, name]) => this.drawRegionName(fold, graph.node(name)))),
      shape('g', {class: 'labels'}, between.map((edge) => this.drawLabel(edge, graph.edge(`n${edge.a}`, `n${edge.b}`)))));
    this.mark();
  }

  drawRegion(fold, {x, y, width, height}) {
    const {shape} = headrace;
    const {region, backend} = this.graph.blocks[fold.block];
    const [line, fill] = this.colours.get(backend);
    return shape('g', {class: 'region', 'data-region': region, 'data-fold': fold.id, tabindex: 0, on: this.selects(fold)},
      shape('title', {}, `${region}, by ${backend}`),
      shape('rect', {x: x - width / 2, y: y - height / 2 - 12, width, height: height + 12, rx: 8, fill, stroke: line}));
  }

  // The name of a region lies over the edges, in the strip above its blocks.
  drawRegionName(fold, {x, y, width, height}) {
    const {shape} = headrace;
    const {backend} = this.graph.blocks[fold.block];
    const [line, fill] = this.colours.get(backend);
    const text = headrace.shorten(this.shortName(fold.block), Math.max(8, Math.floor((width - 12) / 6.9)));
    const left = x - width / 2 + 4, top = y - height / 2 - 9;
    return shape('g', {class: 'name'},
      shape('rect', {x: left, y: top, width: text.length * 6.9 + 6, height: 15, rx: 3, fill}),
      shape('text', {x: left + 3, y: top + 11, fill: line}, text));
  }

  // "ccompiler 3" for the region tvmgen_default_ccompiler_main_3, where others begin as that does.
  shortName(block) {
    const {region, backend} = this.graph.blocks[block];
    const stem = region.slice(0, region.lastIndexOf('_') + 1);
    const isShared = stem !== '' && this.graph.blocks.some((other) => other.region !== region &&
      other.backend === backend && other.region.startsWith(stem));
    return isShared ? `${backend} ${region.slice(stem.length)}` : `${backend}: ${region}`;
  }

  drawEdge({a, b}, {points}) {
    let path = `M${points[0].x} ${points[0].y}`;
    for (let i = 1; i < points.length - 1; ++i) {
      const to = i === points.length - 2 ? points[i + 1]
        : {x: (points[i].x + points[i + 1].x) / 2, y: (points[i].y + points[i + 1].y) / 2};
      path += `Q${points[i].x} ${points[i].y} ${to.x} ${to.y}`;
    }
    if (points.length === 2) path += `L${points[1].x} ${points[1].y}`;
    return headrace.shape('path', {d: path, 'data-from': a, 'data-to': b, 'marker-end': 'url(#arrow)'});
  }

  drawLabel({label, tensors}, edge) {
    const {shape} = headrace;
    if (label === null) return null;
    const text = [...tensors.values()].map(headrace.tensor).join(', ');
    return shape('g', {}, shape('title', {}, text),
      shape('rect', {x: edge.x - edge.width / 2, y: edge.y - 8, width: edge.width, height: 15, rx: 3}),
      shape('text', {x: edge.x, y: edge.y + 4, 'text-anchor': 'middle'}, label));
  }

  // The backend of a part; null where it has several or none.
  backendOf(part) {
    const backends = new Set((part.children ? part.nodes : [part.node]).map((i) => this.graph.nodes[i].backend));
    backends.delete(null);
    return backends.size === 1 ? [...backends][0] : null;
  }

  drawBlock(part, {x, y, width, height}) {
    const {shape} = headrace;
    const backend = this.backendOf(part);
    const [line, fill] = this.colours.get(backend) ?? ['#444', '#fff'];
    const left = x - width / 2, top = y - height / 2;
    const isPort = !part.children && this.graph.nodes[part.node].backend === null;
    const lines = this.linesOf(part).map((text, i) =>
      shape('text', {x, y: top + 18 + i * 15, 'text-anchor': 'middle', class: i === 0 ? 'first' : 'more'}, text));
    const rect = {x: left, y: top, width, height, rx: isPort ? height / 2 : 5, fill: isPort ? '#fff' : fill, stroke: line};
    const names = part.children ? {'data-fold': part.id} : {'data-node': part.node};
    return shape('g', {class: part.children ? 'block fold' : 'block', tabindex: 0, ...names, on: this.selects(part)},
      part.children ? shape('rect', {...rect, x: left + 4, y: top + 4}) : null,
      shape('title', {}, part.children ? 'Double click opens it' : this.graph.nodes[part.node].name),
      shape('rect', rect), this.heatOf(part, left, top, width, height, backend), lines, this.stripes(part, left, top, width));
  }

  // A bar whose length says how long a step takes, beside the slowest.
  heatOf(part, left, top, width, height) {
    const seconds = part.children ? null : this.graph.nodes[part.node].seconds ?? null;
    if (seconds === null || this.slowest === 0) return null;
    return headrace.shape('rect', {class: 'heat', x: left + 4, y: top + height - 5,
      width: Math.max(1, (width - 8) * seconds / this.slowest), height: 3});
  }

  // The colours of the backends of a folded part that has several, by their share.
  stripes(part, left, top, width) {
    if (!part.children || this.backendOf(part) !== null) return [];
    const counts = new Map();
    for (const i of part.nodes) {
      const {backend} = this.graph.nodes[i];
      if (backend !== null) counts.set(backend, (counts.get(backend) ?? 0) + 1);
    }
    const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
    let at = left + 6;
    return [...counts].map(([backend, count]) => {
      const size = (width - 12) * count / all;
      const made = headrace.shape('rect', {x: at, y: top + 2, width: size, height: 4, fill: this.colours.get(backend)[0]});
      at += size;
      return made;
    });
  }

  // ---- what is selected

  selects(part) {
    const isFold = Boolean(part.children);
    return {
      click: (event) => { event.stopPropagation(); this.select(part); },
      dblclick: (event) => { event.stopPropagation(); if (isFold) this.toggle(part); },
      keydown: (event) => {
        if (event.key !== 'Enter') return;
        if (isFold) this.toggle(part);
        else this.select(part);
      },
    };
  }

  select(part) {
    this.selected = part;
    this.mark();
    if (part.children) this.describeFold(part);
    else this.describeNode(part.node);
  }

  // Marks the selected block and the edges at it.
  mark() {
    const part = this.selected ?? null;
    const node = part === null ? null : part.children ? part.nodes[0] : part.node;
    for (const block of this.scene.querySelectorAll('.block, .region')) {
      const isIt = part !== null && (part.children
        ? block.dataset.fold === String(part.id) : block.dataset.node === String(part.node));
      block.classList.toggle('selected', isIt);
    }
    const at = node === null || (part.children && this.folding.isOpen(part)) ? '' : String(this.holder[node]);
    for (const edge of this.scene.querySelectorAll('.edges path'))
      edge.classList.toggle('near', edge.dataset.from === at || edge.dataset.to === at);
  }

  toggle(fold) {
    if (this.folding.isOpen(fold)) this.folding.close(fold);
    else this.folding.open(fold);
    this.draw();
    this.select(fold);
    this.centerOn(fold.nodes[0]);
  }

  refold() {
    this.folding.reset();
    this.draw();
    this.showAll();
  }

  // Opens what hides a node, selects it and moves there.
  reveal(node) {
    const leaf = this.leaf.get(node);
    if (this.holder[node] === undefined || !this.isShown(leaf)) {
      this.folding.open(leaf.parent);
      this.draw();
    }
    this.select(leaf);
    this.centerOn(node);
  }

  isShown(leaf) {
    for (let fold = leaf.parent; fold !== null; fold = fold.parent) {
      if (!this.folding.isOpen(fold)) return false;
    }
    return true;
  }

  centerOn(node) {
    const place = this.places[this.holder[node]];
    this.controls.center(place.x, place.y);
  }

  // Shows the graph from its first node, as large as can be read.
  showAll() { this.controls.show(this.size, this.places[this.holder[0]].x, 0.8, 1.2); }
  showWhole() { this.controls.show(this.size, this.size.width / 2, 0.02, 1.2); }

  // ---- search

  find() {
    const text = this.search.value.toLowerCase();
    this.matches = text === '' ? [] : this.tree.line.filter((i) => {
      const {name, op} = this.graph.nodes[i];
      return name.toLowerCase().includes(text) || (op ?? '').toLowerCase().includes(text);
    });
    this.at = -1;
    this.found.textContent = text === '' ? '' : headrace.count(this.matches.length, 'match').replace('matchs', 'matches');
    if (text !== '') this.describeMatches();
  }

  nextFound() {
    if (!this.matches || this.matches.length === 0) return;
    this.at = (this.at + 1) % this.matches.length;
    this.found.textContent = `${this.at + 1} of ${this.matches.length}`;
    this.reveal(this.matches[this.at]);
  }
};
