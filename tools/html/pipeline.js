// Shows the JSON of `headrace pipeline inspect`: the stages as boxes, the connections as lines, and a table of what each
// stage is. The colour of a box is that of its group, whose stages share a thread.
'use strict';

// Returns the stage, or null, and the port of an end of a connection, such as "detect.boxes". Names may have dots.
headrace.endOf = (text, stages) => {
  let found = null;
  for (const {name} of stages) {
    if (text.startsWith(`${name}.`) && (found === null || name.length > found.length)) found = name;
  }
  return found === null ? {stage: null, port: text} : {stage: found, port: text.slice(found.length + 1)};
};

headrace.PipelinePage = class {
  constructor(data) {
    this.data = data;
    const {element} = headrace;
    const page = document.getElementById('page');
    this.groups = [...new Set(data.stages.map(({group}) => group))];
    this.said = element('p', {id: 'connection'}, 'Point at a line to see what passes there.');
    page.append(
      element('header', {}, element('h1', {}, document.title), this.legend()),
      element('p', {id: 'about'}, this.about()), this.picture(), this.said, this.table());
    page.dataset.drawn = String(Math.round(performance.now()));
  }

  about() {
    const {stages, max_inflight: places, bytes} = this.data;
    return `${headrace.count(stages.length, 'stage')} in ${headrace.count(this.groups.length, 'group')}, at most ` +
      `${headrace.count(places, 'request')} at once, ${headrace.bytes(bytes)}.`;
  }

  colour(group) {
    return headrace.colours[this.groups.indexOf(group) % headrace.colours.length];
  }

  legend() {
    const {element, shape} = headrace;
    return element('ul', {id: 'legend'}, this.groups.map((group) => {
      const [line, fill] = this.colour(group);
      return element('li', {'data-group': group}, shape('svg', {width: 14, height: 14},
        shape('rect', {x: 1, y: 1, width: 12, height: 12, fill, stroke: line})), group);
    }));
  }

  // The lines of a box of a stage.
  linesOf(stage) {
    const places = [stage.device === 'cpu:0' ? null : stage.device,
      stage.cpus.length === 0 ? null : `processors ${stage.cpus.join(', ')}`,
      stage.replicas === 1 ? null : headrace.count(stage.replicas, 'replica'),
      stage.isolation === 'process' ? 'own process' : null,
      stage.batch === null ? null : `batches of ${stage.batch.max_batch}`,
      stage.memory_bytes === null ? null : headrace.bytes(stage.memory_bytes)];
    return [stage.name, stage.model === null ? `function ${stage.function}` : stage.backend,
      ...places.filter((part) => part !== null)].map((text) => headrace.shorten(text, 28));
  }

  // The graph with places for all: stages, and the ports of the pipeline.
  layout() {
    const graph = new dagre.graphlib.Graph({multigraph: true});
    graph.setGraph({rankdir: 'LR', ranksep: 60, nodesep: 24, marginx: 16, marginy: 16});
    graph.setDefaultEdgeLabel(() => ({}));
    for (const stage of this.data.stages) {
      const lines = this.linesOf(stage);
      const width = Math.max(90, 14 + 7.2 * Math.max(...lines.map(({length}) => length)));
      graph.setNode(`stage ${stage.name}`, {lines, stage, width, height: 12 + 17 * lines.length});
    }
    this.data.connections.forEach(({from, to}, number) => {
      const ends = [headrace.endOf(from, this.data.stages), headrace.endOf(to, this.data.stages)];
      const names = ends.map(({stage, port}) => stage === null ? `port ${port}` : `stage ${stage}`);
      names.forEach((name, i) => {
        if (graph.hasNode(name)) return;
        const lines = [headrace.shorten(ends[i].port, 28)];
        graph.setNode(name, {lines, stage: null, width: 14 + 7.2 * lines[0].length, height: 26});
      });
      graph.setEdge(names[0], names[1], {text: `${from} \u2192 ${to}`}, String(number));
    });
    dagre.layout(graph);
    return graph;
  }

  picture() {
    const {shape} = headrace;
    const graph = this.layout();
    const {width, height} = graph.graph();
    const drawing = shape('svg', {id: 'plan', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img',
      'aria-label': 'The stages and their connections'});
    for (const edge of graph.edges()) {
      const {points, text} = graph.edge(edge);
      const path = `M${points.map(({x, y}) => `${x} ${y}`).join('L')}`;
      const say = () => { this.said.textContent = text; };
      drawing.append(shape('path', {class: 'edge', d: path, 'marker-end': 'url(#arrow)'}),
        shape('path', {class: 'reach', d: path, on: {pointerenter: say}}, shape('title', {}, text)));
    }
    for (const name of graph.nodes()) drawing.append(this.box(graph.node(name)));
    drawing.append(shape('defs', {}, shape('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 8, refY: 4, markerWidth: 7,
      markerHeight: 7, orient: 'auto'}, shape('path', {d: 'M0 0L8 4L0 8z'}))));
    return headrace.element('div', {id: 'drawing'}, drawing);
  }

  box({x, y, width, height, lines, stage}) {
    const {shape} = headrace;
    const [line, fill] = stage === null ? headrace.nativeColour : this.colour(stage.group);
    return shape('g', {class: stage === null ? 'port' : 'stage', 'data-name': lines[0]},
      shape('rect', {x: x - width / 2, y: y - height / 2, width, height, rx: stage === null ? 12 : 3, fill, stroke: line}),
      lines.map((text, i) => shape('text', {x, y: y - height / 2 + 18 + 17 * i, class: i === 0 ? 'name' : 'part'}, text)));
  }

  table() {
    const {element} = headrace;
    const heading = ['stage', 'runs', 'inputs', 'outputs', 'group', 'device', 'processors', 'replicas', 'threads', 'memory'];
    const ports = (list) => list.map(({name, dtype, shape}) =>
      dtype === null ? name : `${name} ${headrace.tensor({dtype, shape})}`).join(', ');
    const rows = this.data.stages.map((stage) => [
      stage.name, stage.model === null ? `function ${stage.function}` : `${stage.program} of ${stage.model}`,
      ports(stage.inputs), ports(stage.outputs), stage.group, stage.device,
      stage.cpus.length === 0 ? 'any' : stage.cpus.join(', '), stage.replicas, stage.threads,
      stage.memory_bytes === null ? '-' : headrace.bytes(stage.memory_bytes)]);
    return element('table', {id: 'stages'}, element('thead', {}, element('tr', {}, heading.map((text) =>
      element('th', {}, text)))), element('tbody', {}, rows.map((row) => element('tr', {}, row.map((cell) =>
      element('td', {}, String(cell)))))));
  }
};

headrace.page = new headrace.PipelinePage(JSON.parse(document.getElementById('data').textContent));
