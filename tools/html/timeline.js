// Shows the trace of a pipeline (the events of `headrace pipeline run --trace`): a lane for each stage or replica, with
// the times that it worked, waited for requests (starved) or for room (blocked), and a table of the lanes.
'use strict';

// Returns the lanes of a trace, in their order, and its length. Times are microseconds.
headrace.readTrace = ({traceEvents, otherData}) => {
  const lanes = new Map();
  const groups = new Map();
  for (const event of traceEvents) {
    if (event.ph === 'M' && event.name === 'process_name')
      groups.set(event.pid, event.args.name.replace(/^group /, ''));
    if (event.ph === 'M' && event.name === 'thread_name')
      lanes.set(event.tid, {name: event.args.name, group: event.pid, events: []});
  }
  for (const event of traceEvents) {
    if (event.ph !== 'X') continue;
    const kind = event.cat === 'wait' ? event.name : event.args.failed ? 'failed' : 'call';
    lanes.get(event.tid).events.push({begin: event.ts, end: event.ts + event.dur, kind, ...event.args});
  }
  const sorted = [...lanes.values()];
  for (const lane of sorted) lane.events.sort((a, b) => a.begin - b.begin);
  return {lanes: sorted, groups, length: otherData.seconds * 1e6, overwritten: otherData.overwritten_events};
};

// Returns what a lane did between two times: calls, requests, failures, the share of the time by kind, and the median
// call in seconds.
headrace.sumLane = (lane, begin, end) => {
  const sums = {call: 0, failed: 0, starved: 0, blocked: 0};
  const calls = [];
  let requests = 0, failures = 0;
  for (const event of lane.events) {
    const inside = Math.min(event.end, end) - Math.max(event.begin, begin);
    if (inside < 0 || (inside === 0 && event.end > event.begin)) continue;  // it only touches the time
    sums[event.kind] += inside;
    if (event.kind === 'starved' || event.kind === 'blocked') continue;
    calls.push(event.end - event.begin);
    requests += event.requests;
    if (event.kind === 'failed') failures += 1;
  }
  calls.sort((a, b) => a - b);
  const share = (time) => end > begin ? time / (end - begin) : 0;
  return {calls: calls.length, requests, failures, busy: share(sums.call + sums.failed), starved: share(sums.starved),
    blocked: share(sums.blocked), median: calls.length === 0 ? null : calls[Math.floor((calls.length - 1) / 2)] * 1e-6};
};

// The page. `view` is what is seen, in microseconds.
headrace.TimelinePage = class {
  static laneHeight = 34;
  static top = 24;
  static names = 150;
  static kinds = [['call', '#0072b2', 'works'], ['failed', '#d55e00', 'fails'],
    ['starved', '#e4e8eb', 'waits for requests'], ['blocked', '#e8d48a', 'waits for room']];

  constructor(trace) {
    this.trace = trace;
    this.view = {begin: 0, end: Math.max(trace.length, 1)};
    this.chosen = null;
    const page = document.getElementById('page');
    const {element} = headrace;
    this.canvas = element('canvas', {id: 'lanes', tabindex: 0, 'aria-label': 'When each stage worked'});
    this.said = element('p', {id: 'event'}, 'Point at a bar; the wheel zooms, dragging moves.');
    this.table = element('table', {id: 'sums'});
    page.append(element('header', {}, element('h1', {}, document.title), this.legend(),
      element('div', {class: 'tools'}, element('button', {id: 'whole', on: {click: () => this.show(0, trace.length)}},
        'Whole'))), this.canvas, this.said, this.table, ...this.notes());
    this.listen();
    this.draw();
    this.fillTable();
    page.dataset.drawn = String(Math.round(performance.now()));
  }

  legend() {
    const {element} = headrace;
    return element('ul', {id: 'legend'}, headrace.TimelinePage.kinds.map(([kind, colour, meaning]) => {
      const sample = headrace.shape('svg', {width: 14, height: 14},
        headrace.shape('rect', {width: 14, height: 14, fill: colour}));
      return element('li', {'data-kind': kind}, sample, meaning);
    }));
  }

  notes() {
    const {overwritten} = this.trace;
    if (overwritten === 0) return [];
    return [headrace.element('p', {}, `${headrace.count(overwritten, 'older event')} had no room in the trace.`)];
  }

  listen() {
    headrace.wheel(this.canvas, (x, y, factor) => this.zoom(this.timeAt(x), factor));
    headrace.drag(this.canvas, (dx) => {
      const moved = dx * (this.view.end - this.view.begin) / this.width();
      this.show(this.view.begin - moved, this.view.end - moved);
    });
    this.canvas.addEventListener('pointermove', (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.point(event.clientX - box.left, event.clientY - box.top);
    });
    this.canvas.addEventListener('keydown', (event) => {
      const middle = (this.view.begin + this.view.end) / 2, step = (this.view.end - this.view.begin) / 5;
      if (event.key === '+') this.zoom(middle, 1.5);
      if (event.key === '-') this.zoom(middle, 1 / 1.5);
      if (event.key === 'ArrowLeft') this.show(this.view.begin - step, this.view.end - step);
      if (event.key === 'ArrowRight') this.show(this.view.begin + step, this.view.end + step);
    });
    window.addEventListener('resize', () => this.draw());
  }

  width() { return Math.max(this.canvas.clientWidth - headrace.TimelinePage.names, 1); }
  timeAt(x) {
    const share = (x - headrace.TimelinePage.names) / this.width();
    return this.view.begin + share * (this.view.end - this.view.begin);
  }
  placeOf(time) {
    const share = (time - this.view.begin) / (this.view.end - this.view.begin);
    return headrace.TimelinePage.names + share * this.width();
  }

  zoom(time, factor) {
    this.show(time - (time - this.view.begin) / factor, time + (this.view.end - time) / factor);
  }

  // Shows the time from `begin` to `end`, at least 10 ns of it.
  show(begin, end) {
    const length = Math.min(Math.max(end - begin, 0.01), Math.max(this.trace.length, 1));
    const first = Math.min(Math.max(begin, 0), Math.max(this.trace.length, 1) - length);
    this.view = {begin: first, end: first + length};
    this.draw();
    this.fillTable();
  }

  // Returns the event at a place of the canvas; null where there is none.
  eventAt(x, y) {
    const {top, laneHeight, names} = headrace.TimelinePage;
    const lane = this.trace.lanes[Math.floor((y - top) / laneHeight)];
    if (lane === undefined || y < top || x < names) return null;
    const time = this.timeAt(x);
    const event = lane.events.find(({begin, end}) => begin <= time && time <= end);
    return event === undefined ? null : {lane, event};
  }

  point(x, y) {
    const found = this.eventAt(x, y);
    if (found?.event === this.chosen?.event) return;
    this.chosen = found;
    if (found !== null) this.said.textContent = this.describe(found);
    this.draw();
  }

  describe({lane, event}) {
    const length = headrace.seconds((event.end - event.begin) * 1e-6);
    const at = `at ${headrace.seconds(event.begin * 1e-6)}`;
    if (event.kind === 'starved') return `${lane.name} waits ${length} for requests, ${at}`;
    if (event.kind === 'blocked') return `${lane.name} waits ${length} for room after it, ${at}`;
    const what = event.requests === 1 ? `request ${event.request}`
      : `${event.requests} requests from ${event.request} on`;
    return `${lane.name} ${event.kind === 'failed' ? 'fails in' : 'works on'} ${what} for ${length}, ${at}`;
  }

  draw() {
    const {laneHeight, top} = headrace.TimelinePage;
    const height = top + laneHeight * this.trace.lanes.length;
    const scale = window.devicePixelRatio;
    this.canvas.height = height * scale;
    this.canvas.width = this.canvas.clientWidth * scale;
    const pen = this.canvas.getContext('2d');
    pen.scale(scale, scale);
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    this.trace.lanes.forEach((lane, i) => this.drawLane(pen, lane, top + laneHeight * i));
    this.drawAxis(pen, height);
  }

  // Bars of less than a pixel are joined to one, so that a long trace takes as many bars as it has pixels.
  drawLane(pen, lane, y) {
    const {names, laneHeight, kinds} = headrace.TimelinePage;
    const colours = Object.fromEntries(kinds);
    pen.fillStyle = '#1c2126';
    pen.fillText(headrace.shorten(lane.name, 20), 4, y + laneHeight / 2);
    const last = {};
    for (const event of lane.events) {
      if (event.end < this.view.begin || event.begin > this.view.end) continue;
      const left = Math.max(this.placeOf(event.begin), names), right = this.placeOf(event.end);
      if (right - left < 1 && Math.floor(left) === last[event.kind]) continue;
      last[event.kind] = Math.floor(left);
      pen.fillStyle = colours[event.kind];
      const isCall = event.kind === 'call' || event.kind === 'failed';
      const inset = isCall ? 4 : 10;
      pen.fillRect(left, y + inset, Math.max(right - left - (right - left > 3 ? 0.5 : 0), 1), laneHeight - 2 * inset);
      if (this.chosen !== null && this.chosen.event === event) {
        pen.strokeStyle = '#14181b';
        pen.strokeRect(left, y + inset, Math.max(right - left, 1), laneHeight - 2 * inset);
      }
      if (isCall && right - left > 30) this.drawLabel(pen, event, left, right, y);
    }
  }

  drawLabel(pen, event, left, right, y) {
    pen.fillStyle = '#ffffff';
    const text = event.requests === 1 ? String(event.request) : `${event.request}+${event.requests - 1}`;
    if (pen.measureText(text).width < right - left - 6)
      pen.fillText(text, left + 3, y + headrace.TimelinePage.laneHeight / 2);
  }

  drawAxis(pen, height) {
    const length = this.view.end - this.view.begin;
    const rough = length / Math.max(this.width() / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough);
    for (let time = Math.ceil(this.view.begin / step) * step; time <= this.view.end; time += step) {
      const x = this.placeOf(time);
      pen.strokeStyle = '#dfe3e6';
      pen.beginPath();
      pen.moveTo(x, headrace.TimelinePage.top - 6);
      pen.lineTo(x, height);
      pen.stroke();
      pen.fillStyle = '#555f68';
      pen.fillText(headrace.seconds(time * 1e-6), x + 3, 10);
    }
  }

  // Shows how long each lane worked in the time that is seen.
  fillTable() {
    const {element} = headrace;
    const percent = (share) => `${(100 * share).toFixed(1)} %`;
    const rows = this.trace.lanes.map((lane) => {
      const sums = headrace.sumLane(lane, this.view.begin, this.view.end);
      const cells = [lane.name, this.trace.groups.get(lane.group) ?? '', sums.calls, sums.requests, sums.failures,
        percent(sums.busy), percent(sums.starved), percent(sums.blocked),
        sums.median === null ? '-' : headrace.seconds(sums.median)];
      return element('tr', {}, cells.map((cell) => element('td', {}, String(cell))));
    });
    const heads = ['stage', 'group', 'calls', 'requests', 'failed', 'works', 'starved', 'blocked', 'median call'];
    this.table.replaceChildren(element('tr', {}, heads.map((head) => element('th', {}, head))), ...rows);
  }
};

headrace.page = new headrace.TimelinePage(
  headrace.readTrace(JSON.parse(document.getElementById('data').textContent)));
