// Shows the times of `headrace bench`: for each number of threads a plot with a lane for each model and for the other
// runtime, and a table of percentiles. Dots of runs go down a lane in the order of the rounds, so that a drift shows.
'use strict';

// Returns the time that `share` of the sorted times did not exceed.
headrace.percentile = (sorted, share) => sorted[Math.max(Math.ceil(share * sorted.length), 1) - 1];

// Returns the text of a time of an axis, with as many digits as tell it from the next one, `step` later.
headrace.tickText = (time, step, longest) => {
  const [unit, factor] = longest < 1e-3 ? ['us', 1e6] : longest < 1 ? ['ms', 1e3] : ['s', 1];
  return `${(time * factor).toFixed(Math.max(0, Math.ceil(-Math.log10(step * factor) - 1e-9)))} ${unit}`;
};

headrace.BenchPage = class {
  static width = 1000;
  static names = 200;
  static top = 26;
  static laneHeight = 66;

  constructor(data) {
    this.data = data;
    this.fromZero = false;
    const {element} = headrace;
    const page = document.getElementById('page');
    this.plots = element('div', {id: 'plots'});
    this.button = element('button', {id: 'zero', on: {click: () => this.toggle()}});
    page.append(
      element('header', {}, element('h1', {}, document.title), element('div', {class: 'tools'}, this.button)),
      element('p', {id: 'machine'}, this.machine()), element('p', {id: 'rounds'}, this.rounds()),
      element('p', {}, 'A dot is a run; they go down in the order of the rounds. The box spans the middle half of ' +
        'the times, and its line is the median. Runs that are longer than the axis are drawn at its right end.'),
      this.plots, this.table());
    this.draw();
    page.dataset.drawn = String(Math.round(performance.now()));
  }

  machine() {
    const {processor, processors, system} = this.data.machine;
    return `${processor ?? 'A processor that the system does not name'}, ` +
      `${headrace.count(processors, 'processor')} online, ${system}.`;
  }

  rounds() {
    const {rounds, clients, interrupted} = this.data;
    const ended = interrupted ? ' A Ctrl-C ended them early.' : '';
    if (clients > 1)
      return `${headrace.count(clients, 'client')} ran at once; the dots of one follow those of another.${ended}`;
    const many = rounds === null ? 'Rounds went on for a given time' : `${headrace.count(rounds, 'round')}`;
    return `${many}; each ran all that is compared once, in turns.${ended}`;
  }

  // The numbers of threads, and the lanes of each.
  groups() {
    const groups = new Map();
    for (const lane of this.data.lanes) groups.set(lane.threads, [...(groups.get(lane.threads) ?? []), lane]);
    return groups;
  }

  toggle() {
    this.fromZero = !this.fromZero;
    this.draw();
  }

  draw() {
    const {element} = headrace;
    this.button.textContent = this.fromZero ? 'From the best time' : 'From zero';
    this.plots.replaceChildren(...[...this.groups()].flatMap(([threads, lanes]) =>
      [element('h2', {}, headrace.count(threads, 'thread')), this.plot(lanes)]));
  }

  // Draws lanes that share an axis. It ends where a few disturbed runs do not squeeze the others.
  plot(lanes) {
    const {width, names, top, laneHeight} = headrace.BenchPage;
    const {colours} = headrace;
    const all = lanes.map(({seconds}) => [...seconds].sort((a, b) => a - b));
    const ends = lanes.map(({median_seconds: median, p90_seconds: p90, best_seconds: best, longest_seconds: longest}) =>
      Math.min(longest, median + 4 * (p90 - best)));
    const end = Math.max(...ends);
    const begin = this.fromZero ? 0 : Math.min(...all.map((sorted) => sorted[0]));
    const span = Math.max(end - begin, end * 1e-3, 1e-9);
    const place = (time) => names + 8 + (width - names - 40) * Math.min((time - begin) / span, 1.02);
    const height = top + laneHeight * lanes.length;
    const drawn = lanes.map((lane, i) =>
      this.lane(lane, all[i], place, top + laneHeight * i, colours[i % colours.length]));
    return headrace.shape('svg', {class: 'plot', viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-label': 'The times of all runs'}, this.ticks(begin, span, place, height), drawn);
  }

  ticks(begin, span, place, height) {
    const power = 10 ** Math.floor(Math.log10(span / 6));
    const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= span / 6);
    const ticks = [];
    for (let i = Math.ceil(begin / step); i * step <= begin + span; ++i) {
      const x = place(i * step);
      ticks.push(headrace.shape('g', {class: 'tick'},
        headrace.shape('line', {x1: x, x2: x, y1: 18, y2: height}),
        headrace.shape('text', {x, y: 12, 'text-anchor': 'middle'}, headrace.tickText(i * step, step, begin + span))));
    }
    return ticks;
  }

  lane({name, seconds}, sorted, place, y, [line, fill]) {
    const {laneHeight} = headrace.BenchPage;
    const {shape} = headrace;
    const inner = laneHeight - 16;
    const row = (i) => y + 8 + (seconds.length < 2 ? inner / 2 : inner * i / (seconds.length - 1));
    const dots = seconds.map((time, i) => `M${place(time).toFixed(1)} ${row(i).toFixed(1)}h0`).join('');
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => place(headrace.percentile(sorted, share)));
    return shape('g', {class: 'lane'},
      shape('title', {}, `${name}: ${headrace.count(seconds.length, 'run')}`),
      shape('text', {x: 4, y: y + laneHeight / 2 + 4}, headrace.shorten(name, 28)),
      shape('rect', {class: 'box', x: low, y: y + 14, width: Math.max(high - low, 1), height: laneHeight - 28, fill,
        stroke: line}),
      shape('line', {class: 'median', x1: middle, x2: middle, y1: y + 10, y2: y + laneHeight - 10, stroke: line}),
      shape('path', {class: 'rounds', d: dots, stroke: line}));
  }

  // The percentiles, as the table of the command has them, and how many times the median of the group's first lane is.
  table() {
    const {element} = headrace;
    const heads = ['', 'threads', 'processors', 'runs', 'best', 'median', 'p90', 'p99', 'longest', 'runs/s',
      'median / first'];
    const rows = [...this.groups().values()].flatMap((lanes) => lanes.map((lane) => {
      const times = [lane.best_seconds, lane.median_seconds, lane.p90_seconds].map(headrace.seconds);
      const last = lane.seconds.length < 100 ? '-' : headrace.seconds(lane.p99_seconds);  // as the command shows it
      const cells = [lane.name, lane.threads, lane.processors.join(',') || '-', lane.seconds.length, ...times, last,
        headrace.seconds(lane.longest_seconds), lane.runs_per_second.toFixed(lane.runs_per_second < 100 ? 1 : 0),
        (lane.median_seconds / lanes[0].median_seconds).toFixed(2)];
      return element('tr', {}, cells.map((cell) => element('td', {}, String(cell))));
    }));
    return element('table', {id: 'percentiles'}, element('tr', {}, heads.map((head) => element('th', {}, head))), rows);
  }
};

headrace.page = new headrace.BenchPage(JSON.parse(document.getElementById('data').textContent));
