// The text beside the graph: what is known of an op, a folded part, a region, or of all.
'use strict';

Object.assign(headrace.GraphPage.prototype, {
  describe(title, ...parts) {
    this.details.replaceChildren(headrace.element('h2', {}, title), ...parts.flat().filter((part) => part !== null));
    this.details.scrollTop = 0;
  },

  paragraph(...parts) { return headrace.element('p', {}, parts); },

  table(headings, rows) {
    const {element} = headrace;
    if (rows.length === 0) return null;
    return element('table', headings[0] === '' ? {class: 'facts'} : {},
      headings[0] === '' ? null : element('thead', {}, element('tr', {}, headings.map((text) => element('th', {}, text)))),
      element('tbody', {}, rows.map((row) => element('tr', {}, row.map((cell) => element('td', {}, cell))))));
  },

  section(title, table) { return table === null ? [] : [headrace.element('h3', {}, title), table]; },

  nameOf(node) {
    const {name, op} = this.graph.nodes[node];
    return name !== '' ? name : op;
  },

  link(node) {
    return headrace.element('button', {class: 'link', type: 'button', on: {click: () => this.reveal(node)}},
      this.nameOf(node));
  },

  describeNode(i) {
    const node = this.graph.nodes[i];
    const row = this.rows[node.placement] ?? null;
    const title = node.op === null ? `${node.kind} ${node.name}` : node.op;
    const facts = [['name', node.name], ['backend', node.backend], ['region', this.regionOf(node)],
      ['calls', node.callee ?? null], ['time', node.seconds == null ? null : headrace.seconds(node.seconds)],
      ['timed as native code', node.fallback ?? null]];
    const fold = this.leaf.get(i).parent;
    this.describe(title, this.table(['', ''], facts.filter(([, value]) => value !== null && value !== '')),
      row === null ? [] : this.why(row, node),
      this.section('Reads', this.inputsOf(i)), this.section('Writes', this.outputsOf(i)),
      fold === this.tree.root ? null : this.foldButton(fold, 'Fold the part around it'));
  },

  regionOf(node) { return node.block === null ? null : this.graph.blocks[node.block].region; },

  why(row, node) {
    return [headrace.element('h3', {}, 'Why here'), this.paragraph(this.reason(row)),
      row.remedy == null ? null : this.paragraph('To change this: ', row.remedy),
      ...this.section('Why not elsewhere',
        this.table(['backend', 'why not', 'what would change it'],
          node.alternatives.map((one) => [one.backend, this.reason(one), one.remedy ?? '']))),
      ...this.section('Costs', this.table(['backend', 'cost'],
        Object.entries(row.costs ?? {}).map(([backend, seconds]) => [backend, headrace.cost(seconds)])))];
  },

  reason({message}) { return message; },

  inputsOf(i) {
    const writers = new Map(this.writers[i].map((edge) => [edge.input, edge.from]));
    return this.table(['tensor', 'bytes', 'from'], this.graph.nodes[i].inputs.map((tensor, n) =>
      [headrace.tensor(tensor), this.bytesOf(tensor), writers.has(n) ? this.link(writers.get(n)) : 'constant']));
  },

  outputsOf(i) {
    return this.table(['tensor', 'bytes', 'to'], this.graph.nodes[i].outputs.map((tensor, n) =>
      [headrace.tensor(tensor), this.bytesOf(tensor),
        [...new Set(this.readers[i].filter((edge) => edge.output === n).map((edge) => edge.to))].map((to) => this.link(to))]));
  },

  bytesOf({bytes}) { return bytes === null ? '?' : headrace.bytes(bytes); },

  foldButton(fold, text) {
    return headrace.element('button', {type: 'button', class: 'fold', on: {click: () => this.toggle(fold)}}, text);
  },

  describeFold(fold) {
    const isOpen = this.folding.isOpen(fold);
    const block = fold.block === null ? null : this.graph.blocks[fold.block];
    const seconds = this.secondsOf(fold.nodes);
    const facts = [['backend', this.backendOf(fold) ?? 'several'],
      ['holds', headrace.count(fold.nodes.length, this.facts.noun)],
      ['reads', this.borderOf(fold, 'to', 'from')], ['writes', this.borderOf(fold, 'from', 'to')],
      ['time', seconds === null ? null : headrace.seconds(seconds)]];
    this.describe(block === null ? 'A folded part' : `Region ${block.region}`,
      this.table(['', ''], facts.filter(([, value]) => value !== null)),
      this.foldButton(fold, isOpen ? 'Fold' : 'Open'),
      this.section('Holds', this.listOf(fold.nodes)));
  },

  // The tensors that cross the border of a fold, each once.
  borderOf(fold, inside, outside) {
    const members = new Set(fold.nodes), tensors = new Map();
    for (const edge of this.graph.edges) {
      if (members.has(edge[inside]) && !members.has(edge[outside]))
        tensors.set(`${edge.from}.${edge.output}`, this.graph.nodes[edge.from].outputs[edge.output].bytes);
    }
    const sum = [...tensors.values()].reduce((all, bytes) => all === null || bytes === null ? null : all + bytes, 0);
    return `${headrace.count(tensors.size, 'tensor')}, ${sum === null ? 'of unknown size' : headrace.bytes(sum)}`;
  },

  // A list of nodes, cut where it would be long.
  listOf(nodes) {
    const most = 200;
    const rows = nodes.slice(0, most).map((i) => [this.link(i), this.graph.nodes[i].op ?? this.graph.nodes[i].kind,
      this.graph.nodes[i].backend ?? '']);
    if (nodes.length > most) rows.push([`and ${nodes.length - most} more`, '', '']);
    return this.table(['name', 'kind', 'backend'], rows);
  },

  describeMatches() {
    this.describe(headrace.count(this.matches.length, 'match').replace('matchs', 'matches'),
      this.paragraph('Enter goes from one to the next.'), this.listOf(this.matches));
  },

  describeAll() {
    this.selected = null;
    this.mark();
    const {nodes} = this.graph;
    const timed = nodes.map((node, i) => ({i, seconds: node.seconds ?? null})).filter(({seconds}) => seconds !== null)
      .sort((a, b) => b.seconds - a.seconds);
    const total = timed.reduce((sum, {seconds}) => sum + seconds, 0);
    const slowest = timed.slice(0, 20).map(({i, seconds}) =>
      [this.link(i), headrace.seconds(seconds), `${(100 * seconds / total).toFixed(1)} %`]);
    this.describe('The graph', this.facts.about.map((text) => this.paragraph(text)),
      this.paragraph('Click a block to see what is known of it; double click opens a folded part. ',
        'Drag to move, turn the wheel to zoom; the keys are + - 0 / and Escape.'),
      timed.length === 0 ? [] : this.section(`Slowest, of ${headrace.seconds(total)}`,
        this.table(['step', 'time', 'share'], slowest)),
      this.section('Regions', this.regionTable()));
  },

  regionTable() {
    const folds = new Map(), waiting = [this.tree.root];
    while (waiting.length > 0) {
      const one = waiting.pop();
      if (!one.children) continue;
      if (one.block !== null) folds.set(one.block, one);
      waiting.push(...one.children);
    }
    const rows = [...folds].sort(([a], [b]) => a - b).slice(0, 200).map(([block, fold]) => [
      headrace.element('button', {class: 'link', type: 'button', on: {click: () => this.goTo(fold)}},
        this.graph.blocks[block].region),
      this.graph.blocks[block].backend, String(fold.nodes.length)]);
    return this.table(['region', 'backend', this.facts.noun + 's'], rows);
  },

  goTo(fold) {
    if (!this.folding.isOpen(fold)) this.folding.open(fold);
    this.draw();
    this.select(fold);
    this.centerOn(fold.nodes[0]);
  },
});
