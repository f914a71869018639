// The parts that all pages share: elements, numbers for people, colours, zoom and pan. Text only ever becomes text nodes and
// attributes, never markup.
'use strict';

const headrace = {};

// Makes an element of HTML. `attributes` may hold `on`, an object of event listeners.
headrace.element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  return headrace.fill(made, attributes, children);
};

// Makes an element of SVG.
headrace.shape = (tag, attributes = {}, ...children) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  return headrace.fill(made, attributes, children);
};

headrace.fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (value !== null && value !== undefined) {
      made.setAttribute(name, value);
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
};

headrace.bytes = (count) => {
  if (count < 1e3) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  if (count < 1e9) return `${(count / 1e6).toFixed(1)} MB`;
  return `${(count / 1e9).toFixed(1)} GB`;
};

headrace.seconds = (time) => {
  if (time < 1e-3) return `${(time * 1e6).toFixed(1)} us`;
  if (time < 1) return `${(time * 1e3).toFixed(2)} ms`;
  return `${time.toFixed(2)} s`;
};

// A cost, in the units of `headrace explain`: that of one op may be a few nanoseconds.
headrace.cost = (seconds) => seconds < 1e-3 ? `${Number((seconds * 1e6).toPrecision(3))} us` : headrace.seconds(seconds);

headrace.count = (number, noun) => `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;

headrace.shorten = (text, length) => {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - tail)}\u2026${text.slice(text.length - tail)}`;
};

// "f32[1,64,56,56]"; a type that is no tensor as it is.
headrace.tensor = ({dtype, shape}) => {
  const short = dtype.replace(/^(u?)(int|float|bfloat)(\d)/, (_, u, kind, digit) =>
    u + {int: 'i', float: 'f', bfloat: 'bf'}[kind] + digit);
  return shape === null ? dtype : `${short}[${shape.join(',')}]`;
};

// Colours that people with any colour vision tell apart (Okabe and Ito, 2008): [line, fill]. Native code is grey.
headrace.colours = [
  ['#0072b2', '#d3e8f5'], ['#d55e00', '#fbe3d3'], ['#009e73', '#d2f0e6'], ['#cc79a7', '#f7e4ee'],
  ['#8f7a00', '#fbf6c6'], ['#3a9bd0', '#dff1fb'], ['#8c510a', '#efe0cb'],
];
headrace.nativeColour = ['#6b7682', '#eef0f2'];

// Lets a group inside of a drawing be moved with the pointer and zoomed with the wheel. Returns its controls.
headrace.panZoom = (drawing, group) => {
  const view = {x: 0, y: 0, scale: 1};
  const apply = () => group.setAttribute('transform', `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const zoomAt = (x, y, factor) => {
    const scale = Math.min(4, Math.max(0.02, view.scale * factor));
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    apply();
  };
  headrace.wheel(drawing, zoomAt);
  headrace.drag(drawing, (dx, dy) => {
    view.x += dx;
    view.y += dy;
    apply();
  });
  return {
    zoom: (factor) => zoomAt(drawing.clientWidth / 2, drawing.clientHeight / 2, factor),
    // Shows a rectangle of the group whole, or where it would be too small to read, its top around `middle`.
    show: ({x, y, width, height}, middle, smallest, largest) => {
      const margin = 24;
      const fitted = Math.min((drawing.clientWidth - margin) / width, (drawing.clientHeight - margin) / height);
      view.scale = Math.min(largest, Math.max(smallest, fitted));
      const isWide = width * view.scale > drawing.clientWidth - margin;
      view.x = drawing.clientWidth / 2 - (isWide ? middle : x + width / 2) * view.scale;
      view.y = height * view.scale > drawing.clientHeight - margin
        ? margin / 2 - y * view.scale
        : drawing.clientHeight / 2 - (y + height / 2) * view.scale;
      apply();
    },
    center: (x, y) => {
      view.scale = Math.max(view.scale, 0.8);
      view.x = drawing.clientWidth / 2 - x * view.scale;
      view.y = drawing.clientHeight / 2 - y * view.scale;
      apply();
    },
  };
};

// Calls `zoom` with a place and a factor where the wheel turns.
headrace.wheel = (target, zoom) => {
  target.addEventListener('wheel', (event) => {
    event.preventDefault();
    const box = target.getBoundingClientRect();
    zoom(event.clientX - box.left, event.clientY - box.top, Math.exp(-event.deltaY * 0.0015));
  }, {passive: false});
};

// Calls `move` with how far the pointer went while its button is down. A press that does not move stays a click.
headrace.drag = (target, move) => {
  let last = null;
  target.addEventListener('pointerdown', (event) => {
    if (event.button === 0) last = {x: event.clientX, y: event.clientY, far: false};
  });
  target.addEventListener('pointermove', (event) => {
    if (last === null) return;
    const dx = event.clientX - last.x, dy = event.clientY - last.y;
    if (!last.far && Math.hypot(dx, dy) < 4) return;
    if (!last.far) target.setPointerCapture(event.pointerId);
    last = {x: event.clientX, y: event.clientY, far: true};
    move(dx, dy);
  });
  const end = () => { last = null; };
  target.addEventListener('pointerup', end);
  target.addEventListener('pointercancel', end);
};
